"""A test environment for the groups pipeline: its stages run on a real database, tests post arbitrary messages, and a
simple reader, which understands only lines of one form, replaces the real one.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, TypeAlias

from app.composition.catalogue import migrations
from app.composition.conversas import build_messages
from app.composition.grupos import Groups, add_groups
from app.composition.julia import add_guards
from app.contexts.comum.telefone import address
from app.contexts.esteira.leituras import Leitor
from app.contexts.leitura_grupos.api import Campo, Categoria, Leitura, Periodo, VagaLida, ValorTipo
from app.contexts.webhooks.api import DeGrupo
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.engine.extension import Extension
from batuta.kernel.clock import Clock
from batuta.queue.item import Lease
from batuta.queue.outcome import StageOutcome
from batuta.queue.pipeline import Pipeline, Stage
from batuta.stores.sql.database import Row
from tests.julia.tables import rows, write

# Hospital; speciality; day; period; value. Any other text is not an offer.
_LINHA = re.compile(
    r"^vaga: ([^;]+); ([^;]+); (\d{4}-\d\d-\d\d); (\w+)(?:; R\$ (\d+))?(?:; (\d{12,13}))?$", re.MULTILINE
)
Handler: TypeAlias = Callable[[Lease], Awaitable[StageOutcome]]
Around: TypeAlias = Callable[[Handler, Lease], Awaitable[StageOutcome]]
GRUPO = "120363000000000001@g.us"
AUTOR = "5511900000077@s.whatsapp.net"


def vaga(
    hospital: str = "Hospital Fictício", area: str = "Pediatria", dia: str = "2026-03-20", periodo: str = "noturno",
    valor: int | None = 1500,
) -> str:  # fmt: skip
    """Return a line that this module's reader understands, with so many words that the pipeline takes the line for an
    offer.
    """
    return f"vaga: {hospital}; {area}; {dia}; {periodo}" + (f"; R$ {valor}" if valor is not None else "")


async def leitor_de_linhas(texto: str, mensagem: Row) -> Leitura:
    found = []
    for each in _LINHA.finditer(texto):
        hospital, area, dia, periodo, valor, fone = each.groups()

        def campo(n: int, value: Any, line: re.Match[str] = each) -> Campo[Any]:
            return Campo(value, line.span(n))

        found.append(
            VagaLida(
                campo(1, hospital), campo(2, area), campo(3, date.fromisoformat(dia)), campo(4, Periodo(periodo)),
                valor=None if valor is None else campo(5, Decimal(valor)),
                valor_tipo=None if valor is None else campo(5, ValorTipo.FIXO),
                contato_whatsapp=None if fone is None else campo(6, fone),
                hora_inicio=Campo(time(19), None) if periodo == "noturno" else None,
            )
        )  # fmt: skip
    if not found:
        return Leitura(False, 0.9, Categoria.CONVERSA, "no vaga line")
    return Leitura(True, 0.95, Categoria.OFERTA, "vaga lines", tuple(found))


class Bancada:
    """The groups pipeline for one test. ``instead`` maps stages to handlers that replace the stages' own."""

    def __init__(self, work: Batuta, groups: Groups, clock: Any, instead: dict[str, Handler]) -> None:
        self.work, self.groups, self.clock, self.instead = work, groups, clock, instead
        self.handlers = {**groups.handlers, **{each.name: each.handler for each in work.endpoints}}
        self.dicionario = groups.dicionario
        self.operacao = groups.operacao
        self.grupos = groups.grupos
        self._said = 0

    async def dizem(
        self, texto: str, *, grupo: str = GRUPO, id: str | None = None, autor: str = AUTOR, citada: str | None = None,
        outro: str | None = None, em: datetime | None = None,
    ) -> str:  # fmt: skip
        """Post a message in a group and return its id. ``outro`` is the author's second address. ``em`` is when the
        message is posted; None means now.
        """
        self._said += 1
        id = id or f"3EB0{self._said:06d}"
        fato = DeGrupo(
            message_id=id, instance="escuta", grupo=grupo, autor=address(autor, outro), nome="Pessoa Teste", texto=texto,
            midia=None, encaminhada=False, em=em or self.clock.now(), citada=citada,
        )  # fmt: skip
        async with self.work.database.transaction() as transaction:
            await self.grupos.ingerir(transaction, fato, now=self.clock.now())
        return id

    async def trabalha(self) -> dict[str, int]:
        """Run every stage in order, until no item is due."""
        return (await self.operacao.ciclo(5_000, 200)).por_estagio

    async def carrega(self, nome: str, *, aliases: Sequence[str] = (), **where: str) -> None:
        """Add a hospital to the customer's list of names."""
        place = {"canonico": nome, "aliases": list(aliases), **where}
        await self.dicionario.carregar({"hospitais": [place]}, now=self.clock.now())

    async def write(self, sql: str, **values: Any) -> int:
        return await write(self.work.database, sql, **values)

    async def fila(self, what: str = "estagio") -> list[Any]:
        return [
            row[what]
            for row in await self.rows(f"SELECT {what} FROM fila_processamento_grupos ORDER BY created_at, id")
        ]

    async def rows(self, sql: str, **values: Any) -> list[dict[str, Any]]:
        return await rows(self.work.database, sql, **values)

    async def one(self, sql: str, **values: Any) -> dict[str, Any]:
        (row,) = await self.rows(sql, **values)
        return row


@asynccontextmanager
async def bancada(
    url: str, clock: Clock, leitor: Leitor | None = leitor_de_linhas, around: Around | None = None, **settings: Any
) -> AsyncIterator[Bancada]:
    """Open the groups pipeline. ``around`` wraps every call to a stage's handler."""
    values = Settings(database_url=url, **settings)
    work = Batuta(url, clock=clock, extension=Extension(migrations=migrations()), settings=values)
    add_guards(work, values)
    instead: dict[str, Handler] = {}
    add = work.add_pipeline

    def add_open(pipeline: Pipeline, **options: Any) -> None:
        stages = tuple(replace(stage, handle=_open(stage, instead, around)) for stage in pipeline.stages)
        add(replace(pipeline, stages=stages), **options)

    work.add_pipeline = add_open  # type: ignore[method-assign]
    groups = add_groups(work, values, build_messages(work, values).conversas, leitor=leitor)
    async with work:
        yield Bancada(work, groups, clock, instead)


def _open(stage: Stage, instead: dict[str, Handler], around: Around | None) -> Handler:
    async def handle(lease: Lease) -> StageOutcome:
        handler = instead.get(stage.name, stage.handle)
        return await (handler(lease) if around is None else around(handler, lease))

    return handle


async def waits(mesa: Bancada, line: str) -> str:
    """Create a vacancy that is waiting for review, and return its id."""
    await mesa.dizem("plantão\n" + line)
    await mesa.trabalha()
    return str((await mesa.one("SELECT id FROM vagas_grupo WHERE status = 'aguardando_revisao'"))["id"])
