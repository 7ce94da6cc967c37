"""Fetch group names from the gateway, and find the region that a group name implies."""

import re
from datetime import timedelta
from typing import Final, Protocol

from app.contexts.comum.disjuntor import Disjuntor
from app.contexts.comum.whatsapp import NO_LINE, Grupo, Unavailable
from app.contexts.leitura_grupos.api import UFS, Texto, Vocabulario, cidades
from app.contexts.nomes.api import Dicionario
from batuta import Done, Outcome, Partial, Skipped
from batuta.jobs import JobCall
from batuta.kernel import Clock, Json, dataclass
from batuta.sql import Database, Query, load_queries

# How long a group's name is valid. Names change rarely, and each query may draw WhatsApp's attention to the chip.
AGAIN_AFTER: Final = timedelta(days=7)
AT_MOST: Final = 50
MARGIN: Final = timedelta(seconds=20)
_STATE: Final = re.compile(r"(?:[/(|-] ?|\b(?i:estado d[aeo]) )([A-Z]{2})\b")
# State abbreviations that mean something else in group names: pronto atendimento, ginecologia.
_AMBIGUOUS: Final = frozenset({"pa", "go"})


class Line(Protocol):
    async def group(self, instance: str, jid: str) -> Grupo | Unavailable: ...


@dataclass(frozen=True, slots=True)
class GroupNameQueries:
    due: Query
    introduced: Query


def regiao_de(nome: str, vocabulario: Vocabulario) -> str | None:
    """Return the region that a group's name implies: "Recife/PE" for "Plantões Recife", "PE" if the name contains only
    a state. Return None if the name has several towns or no region.
    """
    towns = {(each.nome, each.uf) for each in cidades(Texto.de(nome), vocabulario)}
    if towns:
        return "/".join(next(iter(towns))) if len(towns) == 1 else None
    states = {each[1] for each in _STATE.finditer(nome) if each[1].lower() in UFS - _AMBIGUOUS}
    return states.pop() if len(states) == 1 else None


class NomesDosGrupos:
    def __init__(
        self, database: Database, line: Line | None, gateway: Disjuntor, dicionario: Dicionario, clock: Clock
    ) -> None:
        """Create the job that fetches group names. ``line`` is the WhatsApp client, or None if no gateway is
        configured.
        """
        self._database = database
        self._line = line
        self._gateway = gateway
        self._dicionario = dicionario
        self._clock = clock
        self._queries = load_queries(GroupNameQueries, "sql/nomes_dos_grupos.sql", database.dialect)

    async def sincronizar_grupos(self, call: JobCall) -> Outcome:
        """Query the gateway for missing or outdated group names, a few per run. The job's result has counts, but no
        names.
        """
        if self._line is None:
            return Skipped(NO_LINE())
        before = self._clock.now() - AGAIN_AFTER
        due = await self._database.all(self._queries.due, before=before, limite=AT_MOST)
        counts: dict[str, int] = {"grupos": len(due), "nomeados": 0, "com_regiao": 0, "sem_nome": 0}
        for row in due:
            if row["instance"] is None or self._clock.now() >= call.deadline - MARGIN:
                continue
            found = await self._group(self._line, row["instance"], row["jid"])
            if isinstance(found, Unavailable) and not found.not_found:
                return Partial(found.why, items=counts["nomeados"], result=_json(counts))
            named = await self._keep(row["id"], None if isinstance(found, Unavailable) else found.nome)
            counts["nomeados" if named is not None else "sem_nome"] += 1
            counts["com_regiao"] += bool(named)
        return Done(items=counts["nomeados"], result=_json(counts))

    async def _group(self, line: Line, instance: str, jid: str) -> Grupo | Unavailable:
        return await self._gateway.ask("findGroupInfos", lambda: line.group(instance, jid))

    async def _keep(self, id: str, nome: str | None) -> str | None:
        """Store a group's name and the time of the query. Return the region that the name implies, an empty string if
        it implies no region, or None if the group has no name.
        """
        region = None if nome is None else regiao_de(nome, (await self._dicionario.nomes()).vocabulario)
        await self._database.run(
            self._queries.introduced,
            id=id,
            nome=nome,
            regiao=region,
            tem_regiao=region is not None,
            now=self._clock.now(),
        )
        return None if nome is None else region or ""


def _json(counts: dict[str, int]) -> dict[str, Json]:
    return {**counts}
