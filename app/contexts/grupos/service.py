"""Store group messages and enqueue them for the pipeline, in one transaction."""

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Final

from app.contexts.comum.fila import Fila
from app.contexts.comum.telefone import Address
from app.contexts.conversas.service import Conversas
from app.contexts.grupos.fila import da_mensagem
from app.contexts.grupos.pessoas import Pessoas
from app.contexts.webhooks.api import DeGrupo
from batuta.kernel import Ids, dataclass
from batuta.sql import Dialect, Query, Row, Transaction, load_queries

SHORTEST = 5
_APART = re.compile(r"(?<!\s)\s++[-–|]\s++")
# Companies whose employees often append the company to their name without a separator.
EMPRESAS: Final = ("Quero Plantão", "SMPV", "SERGES", "Medtrust", "Hapvida", "Medscalle", "Medopen", "MP Doctor")
_NO_NAME = re.compile(r"\b(?:adm|jr)\b\.?", re.IGNORECASE)


def primeiro_status(texto: str, midia: str | None, *, monitorado: bool = True) -> str:
    """Return a group message's first status. A picture's caption is treated as text, because many offers are pictures
    with a caption.
    """
    if not monitorado:
        return "descartada"
    if len(texto.strip()) >= SHORTEST:
        return "pendente"
    return "ignorada_midia" if midia is not None else "ignorada_curta"


def nome_e_empresa(push_name: str | None) -> tuple[str | None, str | None]:
    """Split a display name into person and company: "Fulana Teste - Empresa Teste"."""
    if not push_name:
        return None, None
    nome, *rest = _APART.split(push_name.strip(), maxsplit=1)
    empresa = rest[0].strip() if rest else next((each for each in EMPRESAS if _ends_with(nome, each)), None)
    if not rest and empresa:
        nome = nome.strip()[: -len(empresa)]
    return " ".join(_NO_NAME.sub(" ", nome).split()) or None, empresa or None


def _ends_with(nome: str, empresa: str) -> bool:
    plain, known = nome.strip().casefold(), empresa.casefold()
    return plain.endswith(f" {known}")


@dataclass(frozen=True, slots=True)
class GroupQueries:
    add_group: Query
    add_canary_group: Query
    group: Query
    upsert_contact: Query
    contact: Query
    add_message: Query
    count_on_group: Query
    count_on_contact: Query


CANARIO_JID = "canario@g.us"


class Grupos:
    """Receives group messages. ``fila`` is the first pipeline stage's queue."""

    def __init__(self, dialect: Dialect, ids: Ids, conversas: Conversas, fila: Fila) -> None:
        self._queries = load_queries(GroupQueries, "sql/grupos.sql", dialect)
        self._ids = ids
        self._conversas = conversas
        self._pessoas = Pessoas(dialect)
        self._fila = fila

    async def ingerir(self, transaction: Transaction, fato: DeGrupo, *, now: datetime) -> None:
        """Store a group message and enqueue it.

        The author, the message and the group are locked in this order. The pipeline locks them in the same order, which
        prevents deadlocks.
        """
        group = await self._group(transaction, fato.grupo, now)
        author = [] if fato.autor is None else await self._contact(transaction, fato.autor, fato.nome, now)
        contact_id = author[0]["id"] if author else None
        is_watched = bool(group["ativo"] and group["monitorar_ofertas"])
        is_blocked = any(each["bloqueado_em"] is not None for each in author)
        unread = "grupo_nao_monitorado" if not is_watched else "autor_bloqueado" if is_blocked else None
        status, id = primeiro_status(fato.texto, fato.midia, monitorado=unread is None), self._ids.new()
        is_new = await transaction.run(
            self._queries.add_message,
            id=id,
            grupo_id=group["id"],
            contato_id=contact_id,
            message_id=fato.message_id,
            jid=None if fato.autor is None else fato.autor.jid,
            nome=fato.nome,
            texto=fato.texto,
            midia=fato.midia,
            tem_midia=fato.midia is not None,
            em=fato.em,
            encaminhada=fato.encaminhada,
            citada=fato.citada,
            instance=fato.instance,
            status=status,
            motivo=unread,
            now=now,
        )
        if is_new:
            await transaction.run(self._queries.count_on_group, id=group["id"], em=fato.em)
            await transaction.run(self._queries.count_on_contact, id=contact_id)
        if is_new and status == "pendente":
            await self._fila.put([da_mensagem(id)], within=transaction)

    async def ensaiar(self, transaction: Transaction, texto: str, dia: date, *, now: datetime) -> None:
        """Enqueue a day's canary message, which is a synthetic offer in a fictitious group."""
        await transaction.run(self._queries.add_canary_group, id=self._ids.new(), jid=CANARIO_JID, now=now)
        fato = DeGrupo(
            message_id=f"canario-{dia.isoformat()}", instance="canario", grupo=CANARIO_JID, autor=None, nome=None, texto=texto,
            midia=None, encaminhada=False, em=now,
        )  # fmt: skip
        await self.ingerir(transaction, fato, now=now)

    async def _group(self, transaction: Transaction, jid: str, now: datetime) -> Row:
        """Return the group, inserting it if it does not exist. Try to read it first, because an insert would wait for
        transactions that update the group's counters.
        """
        if (known := await transaction.one(self._queries.group, jid=jid)) is not None:
            return known
        await transaction.run(self._queries.add_group, id=self._ids.new(), jid=jid, now=now)
        made = await transaction.one(self._queries.group, jid=jid)
        assert made is not None
        return made

    async def _contact(
        self, transaction: Transaction, autor: Address, push_name: str | None, now: datetime
    ) -> Sequence[Row]:
        """Store a message's author, and return all contacts of this person, one for each address."""
        nome, empresa = nome_e_empresa(push_name)
        await transaction.run(
            self._queries.upsert_contact,
            id=self._ids.new(),
            jid=autor.sem_aparelho,
            telefone=await self._conversas.telefone_de(transaction, autor, now=now),
            nome=nome,
            empresa=empresa,
            now=now,
        )
        found = await transaction.one(self._queries.contact, jid=autor.sem_aparelho)
        assert found is not None
        return await self._pessoas.mesma(transaction, found["id"], found["telefone"], autor.lid)
