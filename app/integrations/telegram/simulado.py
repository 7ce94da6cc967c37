"""Client for the simulated Telegram (``simulador/telegram/api.py``). It uses HTTP on loopback.

It follows the real Telegram's update protocol: pushed updates have a position (``pts``), and repeated updates are
dropped. Missing updates are fetched as a difference, even after the server was silent or answered too late.
"""

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx2

from app.contexts.telegram.porta import (
    DISCONNECTED,
    NO_ANSWER,
    AlreadySent,
    Apagadas,
    Arquivo,
    Atualizacao,
    Entidade,
    Entidades,
    Enviadas,
    Falha,
    Feito,
    FloodWait,
    Historico,
    LidaPeloOutro,
    Linha,
    MensagemVista,
    Metodo,
    Midia,
    Novidades,
    Peer,
    PeerBlocked,
    PeerFlood,
    PeerUnknown,
    Refused,
    SendResult,
    Sent,
    SessionRevoked,
    SlowMode,
    TipoDeChat,
    Unavailable,
    Unknown,
    Vivo,
)
from app.contexts.telegram.sessoes import Sessoes
from app.integrations.telegram.conexao import Ok, Prazo, close_client, connect_line
from batuta.errors import DeadlineExceeded
from batuta.kernel import Clock, Json

NEVER_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
CONNECT_SECONDS: Final = 5.0
MOST_PAGES: Final = 20
PAGE: Final = 100
# Fraction of the time limit during which the server waits for an update.
ASKED_SHARE: Final = 0.8
_WAIT = re.compile(r"^(FLOOD_WAIT|SLOWMODE_WAIT)_(\d+)$")
_UNKNOWN_PEER = frozenset({"PEER_ID_INVALID", "USERNAME_NOT_OCCUPIED", "USERNAME_INVALID", "PHONE_NUMBER_INVALID"})
_BLOCKED = frozenset({"USER_IS_BLOCKED", "CHAT_WRITE_FORBIDDEN", "USER_PRIVACY_RESTRICTED"})
_REVOKED = frozenset({"AUTH_KEY_UNREGISTERED", "SESSION_REVOKED", "USER_DEACTIVATED_BAN"})


class TelegramSimulado:
    def __init__(self, base_url: str, sessoes: Sessoes, entidades: Entidades, clock: Clock) -> None:
        self._base_url = base_url.rstrip("/")
        self._sessoes = sessoes
        self._entidades = entidades
        self._clock = clock

    async def connect(self, conta: str, *, marca: str | None, limit: timedelta) -> Linha | Falha:
        def make(sessao: str) -> LinhaSimulada:
            parts = (self._base_url, sessao, self._sessoes, self._entidades, self._clock)
            return LinhaSimulada(conta, marca, *parts)

        return await connect_line(self._sessoes, conta, Prazo(limit, self._clock), make)


class LinhaSimulada:
    def __init__(
        self,
        conta: str,
        marca: str | None,
        base_url: str,
        sessao: str,
        sessoes: Sessoes,
        entidades: Entidades,
        clock: Clock,
    ) -> None:
        self._conta = conta
        self._marca = marca
        self._base_url = base_url
        self._sessoes = sessoes
        self._entidades = entidades
        self._clock = clock
        # No TLS is needed on loopback, and loading the default certificates takes longer than all calls of a test.
        self._client = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {sessao}"},
            trust_env=False,
            verify=False,
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS),
        )
        self._conexao = ""
        self._eu = 0
        self._pts = 0
        self._may_lack = False  # True if an answer with updates may have been lost
        self._flooded_until = 0.0  # time on the monotonic clock before which the server refuses the difference
        self._waiting: deque[tuple[int, Atualizacao]] = deque()
        self._random_ids: dict[tuple[str, int], int] = {}

    @property
    def conta(self) -> str:
        return self._conta

    async def begin(self, prazo: Prazo) -> Falha | None:
        found = await self._call(Metodo.CONNECT, {}, prazo)
        if not isinstance(found, Ok):
            return found
        self._conexao, self._eu, self._pts = found.value["conexao"], found.value["eu"], found.value["pts"]
        if self._marca is None:
            return None
        self._pts = int(self._marca)
        return await self._fetch_missing(prazo)

    async def probe(self, *, limit: timedelta) -> Vivo | Falha:
        prazo = self._prazo(limit)
        lost = await prazo.store(self._sessoes.renew(self._conta))
        if lost is not None:
            return lost
        found = await self._call(Metodo.PROBE, {"conexao": self._conexao}, prazo)
        if not isinstance(found, Ok):
            return found
        is_late = found.value["pts"] > self._pts
        if is_late and (failed := await self._fetch_missing(prazo)) is not None:
            return failed
        return Vivo(eu=self._eu, atraso=is_late)

    async def send_text(
        self, peer: Peer, texto: str, *, random_id: int, resposta_a: int | None = None, limit: timedelta
    ) -> SendResult:
        body = {**_address(peer), "texto": texto, "random_id": random_id, "resposta_a": resposta_a}
        return await self._send(Metodo.SEND_TEXT, peer, body, self._prazo(limit))

    async def send_file(
        self, peer: Peer, arquivo: Arquivo, legenda: str, *, random_id: int, limit: timedelta
    ) -> SendResult:
        prazo = self._prazo(limit)
        uploaded = await self._request("POST", "/upload", Metodo.SEND_FILE, prazo, content=arquivo.conteudo)
        if not isinstance(uploaded, Ok):
            return Unavailable(uploaded.why) if isinstance(uploaded, Unknown) else uploaded
        body = {**_address(peer), "texto": legenda, "random_id": random_id, "arquivo": uploaded.value}
        return await self._send(Metodo.SEND_FILE, peer, body | {"nome": arquivo.nome, "mime": arquivo.mime}, prazo)

    async def forward(self, origem: Peer, id: int, destino: Peer, *, random_id: int, limit: timedelta) -> SendResult:
        body = {**_address(destino), "origem": origem.chave, "id": id, "random_id": random_id}
        return await self._send(Metodo.FORWARD, destino, body, self._prazo(limit))

    async def edit(self, peer: Peer, id: int, texto: str, *, limit: timedelta) -> Feito | Falha:
        return await self._act(Metodo.EDIT, {**_address(peer), "id": id, "texto": texto}, self._prazo(limit))

    async def delete(self, peer: Peer, ids: Sequence[int], *, limit: timedelta) -> Feito | Falha:
        return await self._act(Metodo.DELETE, {**_address(peer), "ids": list(ids)}, self._prazo(limit))

    async def mark_read(self, peer: Peer, ate: int, *, limit: timedelta) -> Feito | Falha:
        return await self._act(Metodo.MARK_READ, {**_address(peer), "ate": ate}, self._prazo(limit))

    async def resolve(self, destino: str, *, limit: timedelta) -> Entidade | Falha:
        prazo = self._prazo(limit)
        known = await prazo.store(self._entidades.find(self._conta, destino))
        if known is not None:
            return known
        found = await self._call(Metodo.RESOLVE, {"destino": destino}, prazo)
        if not isinstance(found, Ok):
            return found
        entidade = entity_of(found.value)
        await prazo.store(self._entidades.keep(self._conta, [entidade]))
        return entidade

    async def history(self, peer: Peer, *, after: int, most: int, limit: timedelta) -> Historico | Falha:
        found = await self._call(Metodo.HISTORY, {**_address(peer), "after": after, "most": most}, self._prazo(limit))
        if not isinstance(found, Ok):
            return found
        mensagens = tuple(self._message(each) for each in found.value)
        ate = mensagens[-1].id if mensagens else after
        return Historico(mensagens=mensagens, ate=ate, has_more=len(mensagens) == min(most, PAGE))

    async def list_sent(self, peer: Peer, *, since: datetime, limit: timedelta) -> Enviadas | Falha:
        prazo = self._prazo(limit)
        sent: list[MensagemVista] = []
        before = 0
        for _ in range(MOST_PAGES):
            found = await self._call(Metodo.LIST_SENT, {**_address(peer), "before": before}, prazo)
            if not isinstance(found, Ok):
                return found
            page = [self._message(each) for each in found.value]
            sent += [each for each in page if each.is_own and each.em >= since.replace(microsecond=0)]
            if len(page) < PAGE or page[-1].em < since:
                return Enviadas(mensagens=tuple(sent), is_complete=True)
            before = page[-1].id
        return Enviadas(mensagens=tuple(sent), is_complete=False)

    async def receive(self, *, limit: timedelta) -> Novidades | Falha:
        prazo = self._prazo(limit)
        failed = None if self._waiting else await self._wait_for_updates(prazo)
        # If no answer arrives in time, return no updates. A probe finds a dead connection.
        if failed is not None and (prazo.left or not isinstance(failed, Unknown)):
            return failed
        updates = tuple(update for _, update in self._waiting)
        pts = max((pts for pts, _ in self._waiting), default=self._pts)
        self._waiting.clear()
        return Novidades(atualizacoes=updates, marca=str(pts))

    async def close(self, *, limit: timedelta) -> None:
        if self._client.is_closed:
            return
        prazo = self._prazo(limit)
        if self._conexao:
            await self._request("POST", "/disconnect", Metodo.CONNECT, prazo, body={"conexao": self._conexao})
        await prazo.store(self._sessoes.release(self._conta))  # if this fails, the lease expires by itself
        await close_client(self._client.aclose(), self._clock)

    async def _send(self, metodo: Metodo, peer: Peer, body: Mapping[str, Json], prazo: Prazo) -> SendResult:
        found = await self._call(metodo, body, prazo)
        if isinstance(found, Refused) and found.why == "RANDOM_ID_DUPLICATE":
            return AlreadySent()
        if not isinstance(found, Ok):
            return found
        self._remember(peer.chave, found.value["id"], int(str(body["random_id"])))
        return Sent(id=found.value["id"], em=_instant(found.value["em"]))

    async def _act(self, metodo: Metodo, body: Mapping[str, Json], prazo: Prazo) -> Feito | Falha:
        found = await self._call(metodo, body, prazo)
        if isinstance(found, Refused) and found.why == "MESSAGE_NOT_MODIFIED":
            return Feito()
        return Feito() if isinstance(found, Ok) else found

    async def _wait_for_updates(self, prazo: Prazo) -> Falha | None:
        """Wait for the updates that the server pushes. The server pushes each update only once, so the first step
        fetches the updates that an earlier call may have lost. During a flood wait, nothing is fetched.
        """
        if self._may_lack and self._clock.monotonic() >= self._flooded_until:
            failed = await self._fetch_missing(prazo)
            self._may_lack = failed is not None
            if failed is not None or self._waiting:
                return failed
        self._may_lack = True
        # The server must answer before the limit, so that a missing answer means a dead connection.
        path = f"/updates?conexao={self._conexao}&espera={ASKED_SHARE * prazo.left.total_seconds()}"
        pushed = await self._request("GET", path, Metodo.PROBE, prazo)
        if not isinstance(pushed, Ok):
            return pushed
        failed = await self._take(pushed.value, prazo)
        self._may_lack = failed is not None
        return failed

    async def _fetch_missing(self, prazo: Prazo) -> Falha | None:
        for _ in range(MOST_PAGES):
            if (left := self._flooded_until - self._clock.monotonic()) > 0:
                return FloodWait(Metodo.PROBE, timedelta(seconds=left))
            found = await self._call(Metodo.PROBE, {"pts": self._pts}, prazo, path="/difference")
            if isinstance(found, FloodWait):
                self._flooded_until = self._clock.monotonic() + found.wait.total_seconds()
            if not isinstance(found, Ok):
                return found
            await self._keep(found.value, prazo)
            if len(found.value) < PAGE:
                break
        return None

    async def _take(self, pushed: Sequence[Mapping[str, Any]], prazo: Prazo) -> Falha | None:
        """Accept pushed updates. If earlier updates are missing, fetch the difference, which contains all updates since
        the last known position.
        """
        for each in pushed:
            if each["pts"] > self._pts + 1:
                return await self._fetch_missing(prazo)
            await self._keep([each], prazo)
        return None

    async def _keep(self, updates: Sequence[Mapping[str, Any]], prazo: Prazo) -> None:
        for each in updates:
            if each["pts"] <= self._pts:
                continue  # this update was already received
            self._pts = each["pts"]
            self._waiting.append((each["pts"], self._update(each)))
        seen = [each["mensagem"] for each in updates if "mensagem" in each]
        entities = [entity_of(each[who]) for each in seen for who in ("chat", "autor")]
        if entities:
            await prazo.store(self._entidades.keep(self._conta, entities))

    def _update(self, update: Mapping[str, Any]) -> Atualizacao:
        match update["tipo"]:
            case "mensagem" | "editada":
                return self._message(update["mensagem"])
            case "apagadas":
                return Apagadas(chat=_peer(update["chat"]), ids=tuple(update["ids"]))
            case _:
                return LidaPeloOutro(chat=_peer(update["chat"]), ate=update["ate"])

    def _message(self, row: Mapping[str, Any]) -> MensagemVista:
        chat, midia = entity_of(row["chat"]), row["midia"]
        random_id = row["random_id"] or self._random_ids.get((chat.peer.chave, row["id"]))
        return MensagemVista(
            chat=chat,
            id=row["id"],
            em=_instant(row["em"]),
            texto=row["texto"],
            autor=entity_of(row["autor"]),
            is_own=row["is_own"],
            random_id=random_id if row["is_own"] else None,
            midia=None if midia is None else _media(midia),
            resposta_a=row["resposta_a"],
            encaminhada=row["encaminhada"],
            editada=None if row["editada"] is None else _instant(row["editada"]),
        )

    def _prazo(self, limit: timedelta) -> Prazo:
        return Prazo(limit, self._clock)

    def _remember(self, chave: str, id: int, random_id: int) -> None:
        self._random_ids[(chave, id)] = random_id
        while len(self._random_ids) > PAGE * MOST_PAGES:
            del self._random_ids[next(iter(self._random_ids))]

    async def _call(
        self, metodo: Metodo, body: Mapping[str, Json], prazo: Prazo, *, path: str | None = None
    ) -> Ok | Falha:
        found = await self._request("POST", path or f"/{metodo.value}", metodo, prazo, body=body)
        if isinstance(found, PeerUnknown) and isinstance(chave := body.get("chat"), str):
            await prazo.store(self._entidades.forget(self._conta, _peer(chave)))
        return found

    async def _request(
        self,
        verb: str,
        path: str,
        metodo: Metodo,
        prazo: Prazo,
        *,
        body: Mapping[str, Json] | None = None,
        content: bytes | None = None,
    ) -> Ok | Falha:
        try:
            sent = self._client.request(verb, f"{self._base_url}{path}", json=body, content=content)
            answer = await prazo.run(sent, metodo.value)
        except NEVER_SENT as error:
            return Unavailable(type(error).__name__)
        except DeadlineExceeded:
            return Unknown(NO_ANSWER(limit=prazo.limit))
        except (httpx2.HTTPError, RuntimeError) as error:  # RuntimeError: the client is closed
            return Unavailable(DISCONNECTED()) if self._client.is_closed else Unknown(type(error).__name__)
        read = answer.json()
        return Ok(read["result"]) if answer.status_code == 200 else _failure(metodo, read)


def _failure(metodo: Metodo, read: Mapping[str, Any]) -> Falha:
    name, code = str(read.get("error", read.get("title"))), read.get("code", 400)
    if (wait := _WAIT.match(name)) is not None:
        seconds = timedelta(seconds=int(wait[2]))
        return SlowMode(seconds) if wait[1] == "SLOWMODE_WAIT" else FloodWait(metodo, seconds)
    if name == "PEER_FLOOD":
        return PeerFlood()
    if name in _REVOKED:
        return SessionRevoked(name, banned=name == "USER_DEACTIVATED_BAN")
    if name in _UNKNOWN_PEER:
        return PeerUnknown(name)
    if name in _BLOCKED:
        return PeerBlocked(name)
    if name == "CONNECTION_NOT_INITED":
        return Unavailable(name)
    if code >= 500 and name != "RANDOM_ID_DUPLICATE":
        return Unknown(name)
    return Refused(name, permanent=True)


def _address(peer: Peer) -> dict[str, Json]:
    return {"chat": peer.chave, "acesso": peer.acesso}


def _peer(chave: str) -> Peer:
    tipo, _, id = chave.partition(":")
    return Peer(TipoDeChat(tipo), int(id))


def entity_of(row: Mapping[str, Any]) -> Entidade:
    return Entidade(
        peer=replace(_peer(f"{row['tipo']}:{row['id']}"), acesso=row["acesso"]),
        nome=row["nome"],
        username=row["username"],
        telefone=row["telefone"],
    )


def _media(row: Mapping[str, Any]) -> Midia:
    return Midia(tipo=row["tipo"], referencia=row["sha256"], nome=row["nome"], mime=row["mime"], tamanho=row["tamanho"])


def _instant(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
