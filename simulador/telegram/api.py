"""Simulated Telegram over HTTP: the calls of ``app.integrations.telegram.simulado`` and the routes that control it. It
is a separate application, so that tests can kill its process alone.

POST   /telegram/auth/{code|sign_in|password}   log in: {"telefone", "codigo", "senha"}
POST   /telegram/{method}                       a call of an account: header Authorization with its session, JSON body
GET    /telegram/updates                        wait for pushed updates: ?conexao=&espera=seconds

GET    /controle/telegram                       the current behaviour, the accounts, and counts of calls
GET    /controle/telegram/contas/{id}           the current behaviour of one account, and counts of its calls
PATCH  /controle/telegram                       change the behaviour of all accounts: {"lost_answers": 0.3}
PATCH  /controle/telegram/contas/{id}           change the behaviour of one account: {"hang": true}
DELETE /controle/telegram                       restore the default behaviour
POST   /controle/telegram/contas                {"nome", "telefone", "senha"} creates an account; returns a session. A
                                                number that has an account gets another session
POST   /controle/telegram/contas/{id}/revogar   end its sessions: {"banida": false}
POST   /controle/telegram/pessoas               {"nome", "username", "telefone", "bloqueia": true}
POST   /controle/telegram/grupos                {"titulo", "membros": [ids], "tipo": "grupo|canal", "username"}
POST   /controle/telegram/mensagens             a person writes: {"de", "conta", "texto"} or {"de", "chat", "texto"}
POST   /controle/telegram/leituras              a person reads the messages of an account: {"de", "conta"}
GET    /controle/telegram/recibos?depois=N      messages that were sent, in order, after receipt N
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from batuta.kernel import Clock, Json
from simulador.body import NotAnObject, json_object
from simulador.comportamento import ComportamentoTelegram, Unheard
from simulador.evolution.gateway import CutOff
from simulador.main import application
from simulador.recebidos import Recebidos
from simulador.telegram.mundo import Mundo, Plan, RpcError, digest

PAGE = 5_000
LONGEST_WAIT = 60.0


class Telegram:
    name = "telegram"
    path = "/telegram"
    line = "Telegram: POST a method with the session of an account; /controle/telegram creates accounts"

    def __init__(
        self,
        clock: Clock,
        *,
        seed: int = 0,
        at_rest: ComportamentoTelegram | None = None,
        journal: Path | None = None,
    ) -> None:
        self.recebidos = Recebidos(clock)
        self._clock = clock
        self.mundo = Mundo(clock, seed=seed, at_rest=at_rest, journal=journal)
        self.controle = Controle(self.mundo)
        self._woken: dict[str, asyncio.Event] = {}
        self._uploads: dict[str, dict[str, Json]] = {}

    def mount(self) -> Mount:
        routes = [
            Route("/auth/{step}", self.auth, methods=["POST"]),
            Route("/updates", self.updates),
            Route("/upload", self.upload, methods=["POST"]),
            Route("/{metodo}", self.call, methods=["POST"]),
        ]
        handlers: Mapping[Any, Callable[[Request, Exception], Awaitable[Response]]] = {
            RpcError: _rpc_error,
            HTTPException: _refusal,
        }
        return Mount(self.path, Starlette(routes=routes, exception_handlers=handlers))

    def forget(self) -> None:
        self.recebidos.clear()

    async def auth(self, request: Request) -> Response:
        """Log in with a code and, if the person has one, a password. Logins are not recorded."""
        body, step = await _body(request), request.path_params["step"]
        telefone = str(body.get("telefone", ""))
        if self.mundo.behaviour().hang:
            await _hang(request)
        if self.mundo.behaviour().down:
            return CutOff()
        if step == "code":
            self.mundo.person_by_phone(telefone)
            return JSONResponse({})
        if step == "sign_in":
            pessoa = self.mundo.sign_in(telefone, str(body.get("codigo")))
            if pessoa.senha is not None:
                raise RpcError(401, "SESSION_PASSWORD_NEEDED")
        else:
            pessoa = self.mundo.check_password(telefone, str(body.get("senha")))
        shown = self.mundo.entity(pessoa.id, f"pessoa:{pessoa.id}")
        return JSONResponse({"sessao": self.mundo.open_session(pessoa.id), "eu": shown})

    async def call(self, request: Request) -> Response:
        metodo, body = request.path_params["metodo"], await _body(request)
        if metodo not in self._methods:
            raise HTTPException(404, f"no method has this name; the methods are {', '.join(self._methods)}")
        conta = self.mundo.account(_session(request))
        self.recebidos.record(conta=conta, metodo=metodo)
        plan = self.mundo.plan(conta, metodo, body.get("random_id"))
        if plan.hang:
            await _hang(request)
        if plan.cut_before:
            return CutOff()
        if plan.error is not None:
            raise plan.error
        result = self._methods[metodo](self, conta, body)
        return await self._answer(plan, JSONResponse({"result": result}))

    async def updates(self, request: Request) -> Response:
        name = request.query_params.get("conexao", "")
        wait = min(float(request.query_params.get("espera", "0")), LONGEST_WAIT)
        conta = self.mundo.account(_session(request))
        how = self.mundo.behaviour(conta)
        if how.hang:
            await _hang(request)
        if how.down:
            return CutOff()
        conexao, woken = self.mundo.connection(name), self._woken[name]
        if not conexao.pushed:
            woken.clear()
            await request.body()  # after the body, the next event is the end of the connection
            update, left = asyncio.ensure_future(woken.wait()), asyncio.ensure_future(request.receive())
            ended, _ = await asyncio.wait([update, left], timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            update.cancel()
            left.cancel()
            if left in ended:
                return CutOff()
            self.mundo.account(_session(request))  # the session may have been revoked meanwhile
        pushed, conexao.pushed = conexao.pushed, []
        return JSONResponse({"result": pushed})

    async def upload(self, request: Request) -> Response:
        conta = self.mundo.account(_session(request))
        plan = self.mundo.plan(conta, "upload")
        if plan.hang:
            await _hang(request)
        if plan.cut_before:
            return CutOff()
        content = await request.body()
        name = digest(content)
        self._uploads[name] = {"sha256": name, "tamanho": len(content)}
        return await self._answer(plan, JSONResponse({"result": name}))

    async def _answer(self, plan: Plan, response: Response) -> Response:
        if plan.slow_seconds:
            await self._clock.sleep(plan.slow_seconds)
        if plan.cut_after:
            return CutOff()
        if plan.fail_after:
            raise RpcError(500, "RPC_CALL_FAIL")
        return response

    def _connect(self, conta: int, body: Mapping[str, Any]) -> Json:
        woken = asyncio.Event()
        name = self.mundo.connect(conta, woken.set)
        self._woken[name] = woken
        return {"conexao": name, "pts": self.mundo.pts(conta), "eu": conta}

    def _disconnect(self, conta: int, body: Mapping[str, Any]) -> Json:
        self.mundo.disconnect(body["conexao"])
        self._woken.pop(body["conexao"], None)
        return True

    def _get_me(self, conta: int, body: Mapping[str, Any]) -> Json:
        return self.mundo.entity(conta, f"pessoa:{conta}")

    def _state(self, conta: int, body: Mapping[str, Any]) -> Json:
        self.mundo.connection(body["conexao"])
        return {"pts": self.mundo.pts(conta), "eu": conta}

    def _difference(self, conta: int, body: Mapping[str, Any]) -> Json:
        return list(self.mundo.difference(conta, body["pts"]))

    def _send_text(self, conta: int, body: Mapping[str, Any]) -> Json:
        sent = self.mundo.send(
            conta,
            body["chat"],
            body["acesso"],
            body["texto"],
            random_id=body["random_id"],
            resposta_a=body.get("resposta_a"),
        )
        return {"id": sent.id, "em": sent.em}

    def _send_file(self, conta: int, body: Mapping[str, Any]) -> Json:
        uploaded = self._uploads.get(body["arquivo"])
        if uploaded is None:
            raise RpcError(400, "FILE_PARTS_INVALID")
        midia = {"tipo": "documento", "nome": body["nome"], "mime": body["mime"], **uploaded}
        sent = self.mundo.send(
            conta, body["chat"], body["acesso"], body["texto"], random_id=body["random_id"], midia=midia
        )
        return {"id": sent.id, "em": sent.em}

    def _forward(self, conta: int, body: Mapping[str, Any]) -> Json:
        sent = self.mundo.forward(
            conta, body["origem"], body["id"], body["chat"], body["acesso"], random_id=body["random_id"]
        )
        return {"id": sent.id, "em": sent.em}

    def _edit(self, conta: int, body: Mapping[str, Any]) -> Json:
        self.mundo.edit(conta, body["chat"], body["acesso"], body["id"], body["texto"])
        return True

    def _delete(self, conta: int, body: Mapping[str, Any]) -> Json:
        self.mundo.delete(conta, body["chat"], body["acesso"], body["ids"])
        return True

    def _mark_read(self, conta: int, body: Mapping[str, Any]) -> Json:
        self.mundo.mark_read(conta, body["chat"], body["acesso"], body["ate"])
        return True

    def _resolve(self, conta: int, body: Mapping[str, Any]) -> Json:
        return self.mundo.resolve(conta, body["destino"])

    def _history(self, conta: int, body: Mapping[str, Any]) -> Json:
        found = self.mundo.history(conta, body["chat"], body["acesso"], after=body["after"], most=body["most"])
        return [self.mundo.shown(conta, each) for each in found]

    def _list_sent(self, conta: int, body: Mapping[str, Any]) -> Json:
        found = self.mundo.latest(conta, body["chat"], body["acesso"], before=body["before"])
        # The original does not return the random_id of a stored message.
        return [self.mundo.shown(conta, each) | {"random_id": None} for each in found]

    _methods: Mapping[str, Callable[["Telegram", int, Mapping[str, Any]], Json]] = {
        "connect": _connect,
        "disconnect": _disconnect,
        "get_me": _get_me,
        "probe": _state,
        "difference": _difference,
        "send_text": _send_text,
        "send_file": _send_file,
        "forward": _forward,
        "edit": _edit,
        "delete": _delete,
        "mark_read": _mark_read,
        "resolve": _resolve,
        "history": _history,
        "list_sent": _list_sent,
    }


def create_app(clock: Clock, *, seed: int = 0, journal: Path | None = None) -> Starlette:
    """Build the simulated Telegram. ``journal`` is a file that preserves the simulator's state when its process is
    killed.
    """
    telegram = Telegram(clock, seed=seed, journal=journal)
    app = application([telegram], telegram.controle.mount())
    app.state.telegram = telegram
    return app


class Controle:
    def __init__(self, mundo: Mundo) -> None:
        self._mundo = mundo

    def mount(self) -> Mount:
        routes = [
            Route("/", self.show),
            Route("/", self.change, methods=["PATCH"]),
            Route("/", self.restore, methods=["DELETE"]),
            Route("/contas", self.add_account, methods=["POST"]),
            Route("/contas/{conta:int}", self.show_account),
            Route("/contas/{conta:int}", self.change, methods=["PATCH"]),
            Route("/contas/{conta:int}/revogar", self.revoke, methods=["POST"]),
            Route("/pessoas", self.add_person, methods=["POST"]),
            Route("/grupos", self.add_chat, methods=["POST"]),
            Route("/mensagens", self.message, methods=["POST"]),
            Route("/leituras", self.read, methods=["POST"]),
            Route("/recibos", self.receipts),
        ]
        handlers: Mapping[Any, Callable[[Request, Exception], Awaitable[Response]]] = {
            RpcError: _rpc_error,
            HTTPException: _refusal,
        }
        return Mount("/controle/telegram", Starlette(routes=routes, exception_handlers=handlers))

    async def show(self, request: Request) -> Response:
        mundo = self._mundo
        calls: dict[str, int] = {}
        for (_, metodo), count in mundo.calls.items():
            calls[metodo] = calls.get(metodo, 0) + count
        return JSONResponse(
            mundo.behaviour().shown()
            | {
                "contas": sorted(set(mundo.sessoes.values())),
                "recibos": len(mundo.receipts),
                "chamadas": calls,
                "chamadas_durante_flood": mundo.calls_during_flood,
            }
        )

    async def show_account(self, request: Request) -> Response:
        conta = request.path_params["conta"]
        calls = {metodo: count for (who, metodo), count in self._mundo.calls.items() if who == conta}
        return JSONResponse(self._mundo.behaviour(conta).shown() | {"chamadas": calls})

    async def change(self, request: Request) -> Response:
        try:
            changed = self._mundo.change(await _body(request), request.path_params.get("conta"))
        except Unheard as error:
            raise HTTPException(400, str(error)) from None
        return JSONResponse(changed.shown())

    async def restore(self, request: Request) -> Response:
        self._mundo.restore()
        return JSONResponse(self._mundo.behaviour().shown())

    async def add_account(self, request: Request) -> Response:
        match await _body(request):
            case {"nome": str(nome), "telefone": str(telefone), **rest}:
                senha, is_logged_in = rest.get("senha"), rest.get("sessao", True)
                id = self._with_phone(telefone) or self._mundo.add_person(
                    nome, telefone=telefone, senha=None if senha is None else str(senha)
                )
                token = self._mundo.open_session(id) if is_logged_in else None
            case _:
                raise HTTPException(400, "send a name (nome) and a telephone number (telefone)")
        return JSONResponse({"id": id, "sessao": token}, 201)

    async def revoke(self, request: Request) -> Response:
        self._mundo.revoke(request.path_params["conta"], banned=(await _body(request)).get("banida") is True)
        return JSONResponse({})

    async def add_person(self, request: Request) -> Response:
        body = await _body(request)
        username, telefone = body.get("username"), body.get("telefone")
        id = self._with_phone(telefone) or self._mundo.add_person(
            str(body.get("nome", "Pessoa")),
            username=None if username is None else str(username),
            telefone=None if telefone is None else str(telefone),
        )
        if body.get("bloqueia") is True:
            self._mundo.block(id)
        return JSONResponse({"id": id}, 201)

    def _with_phone(self, telefone: Json) -> int | None:
        """Return the id of the simulated person who has this phone number, or None. A number belongs to only one
        person, even after a restart.
        """
        people = self._mundo.pessoas.values()
        return next((each.id for each in people if telefone is not None and each.telefone == telefone), None)

    async def add_chat(self, request: Request) -> Response:
        match await _body(request):
            case {"titulo": str(titulo), "membros": list(membros), **rest}:
                username = rest.get("username")
                chave = self._mundo.add_chat(
                    titulo,
                    [int(str(each)) for each in membros],
                    tipo="canal" if rest.get("tipo") == "canal" else "grupo",
                    username=None if username is None else str(username),
                )
            case _:
                raise HTTPException(400, "send a title (titulo) and the ids of the members (membros)")
        return JSONResponse({"chat": chave}, 201)

    async def message(self, request: Request) -> Response:
        match await _body(request):
            case {"de": int(de), "conta": int(conta), "texto": str(texto)}:
                return JSONResponse({"id": self._mundo.says(de, conta, texto)}, 201)
            case {"de": int(de), "chat": str(chat), "texto": str(texto)}:
                self._mundo.says_in_chat(de, chat, texto)
                return JSONResponse({}, 201)
            case _:
                raise HTTPException(400, "send the sender (de), the account (conta) or the chat, and the text (texto)")

    async def read(self, request: Request) -> Response:
        match await _body(request):
            case {"de": int(de), "conta": int(conta)}:
                self._mundo.reads(de, conta)
            case _:
                raise HTTPException(400, "send the person who reads (de) and the account (conta)")
        return JSONResponse({})

    async def receipts(self, request: Request) -> Response:
        after = request.query_params.get("depois", "0")
        if not after.isdecimal():
            raise HTTPException(400, "depois must be the number of a receipt")
        return JSONResponse([asdict(each) for each in islice(self._mundo.receipts, int(after), int(after) + PAGE)])


async def _hang(request: Request) -> None:
    """Send no answer, and wait until the client closes the connection."""
    await request.receive()  # the body was already read, so the next event is the end of the connection
    raise RpcError(500, "TIMEOUT")


def _session(request: Request) -> str:
    return request.headers.get("authorization", "").removeprefix("Bearer ")


async def _body(request: Request) -> Mapping[str, Json]:
    try:
        return await json_object(request)
    except NotAnObject:
        raise HTTPException(400, "the body must be a JSON object") from None


async def _rpc_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RpcError)
    return JSONResponse({"error": error.name, "code": error.code}, max(400, error.code))


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    content = {"status": error.status_code, "title": error.detail, "detail": "GET / lists the simulated services"}
    return JSONResponse(content, error.status_code, media_type="application/problem+json")
