"""Group names are queried from the gateway in small batches, stored, refreshed, and never logged. The tests run on both
databases.
"""

from datetime import timedelta

import pytest

from app.contexts.comum.disjuntor import Disjuntor
from app.contexts.comum.whatsapp import NO_LINE, Grupo, Unavailable
from app.contexts.grupos.nomes_dos_grupos import AGAIN_AFTER, NomesDosGrupos, regiao_de
from app.contexts.leitura_grupos.api import Vocabulario
from batuta.queue.outcome import Done, Partial, Skipped
from batuta.receive.endpoints import JobCall
from tests.julia.grupos.bancada import GRUPO, Bancada, vaga

OUTRO = "120363000000000002@g.us"


class Line:
    """A gateway that knows some of the groups. ``asked`` contains the instance and the group of each request."""

    def __init__(self, nomes: dict[str, str | None], instead: Unavailable | None = None) -> None:
        self.nomes, self.instead = nomes, instead
        self.asked: list[tuple[str, str]] = []

    async def group(self, instance: str, jid: str) -> Grupo | Unavailable:
        self.asked.append((instance, jid))
        if self.instead is not None:
            return self.instead
        if jid not in self.nomes:
            return Unavailable("nobody", permanent=True, not_found=True)
        return Grupo(jid=jid, nome=self.nomes[jid])


def nomes_dos_grupos(mesa: Bancada, line: Line | None) -> NomesDosGrupos:
    return NomesDosGrupos(
        mesa.work.database, line, Disjuntor(mesa.work.circuits, mesa.clock), mesa.groups.dicionario, mesa.clock
    )


def call(mesa: Bancada) -> JobCall:
    now = mesa.clock.now()
    return JobCall(key="k", params={}, started_at=now, deadline=now + timedelta(minutes=5))


async def test_group_name_is_queried_by_its_chip_stored_and_refreshed_after_a_week(
    mesa: Bancada,
) -> None:
    await mesa.dizem("bom dia")
    line = Line({GRUPO: "Plantões Recife"})
    answer = await nomes_dos_grupos(mesa, line).sincronizar_grupos(call(mesa))
    assert isinstance(answer, Done)
    assert answer.result == {"grupos": 1, "nomeados": 1, "com_regiao": 1, "sem_nome": 0}
    row = await mesa.one("SELECT nome, regiao, regiao_origem FROM grupos_whatsapp")
    assert (tuple(row.values()), line.asked) == (("Plantões Recife", "Recife/PE", "nome"), [("escuta", GRUPO)])
    await nomes_dos_grupos(mesa, line).sincronizar_grupos(call(mesa))
    assert len(line.asked) == 1
    await mesa.clock.advance(AGAIN_AFTER + timedelta(minutes=1))
    line.nomes[GRUPO] = "Plantões Salvador"
    await nomes_dos_grupos(mesa, line).sincronizar_grupos(call(mesa))
    assert (await mesa.one("SELECT nome, regiao FROM grupos_whatsapp")) == {
        "nome": "Plantões Salvador", "regiao": "Salvador/BA",
    }  # fmt: skip


async def test_region_set_by_an_operator_is_kept(mesa: Bancada) -> None:
    await mesa.dizem("bom dia")
    await mesa.write("UPDATE grupos_whatsapp SET regiao = 'Santos/SP'")
    await nomes_dos_grupos(mesa, Line({GRUPO: "Plantões Recife"})).sincronizar_grupos(call(mesa))
    assert (await mesa.one("SELECT nome, regiao FROM grupos_whatsapp")) == {
        "nome": "Plantões Recife", "regiao": "Santos/SP",
    }  # fmt: skip


async def test_unknown_group_is_queried_rarely_and_a_silent_gateway_changes_nothing(
    mesa: Bancada,
) -> None:
    await mesa.dizem("bom dia")
    silent = await nomes_dos_grupos(mesa, Line({}, Unavailable("no answer"))).sincronizar_grupos(call(mesa))
    assert isinstance(silent, Partial)
    assert (await mesa.one("SELECT apresentado_em FROM grupos_whatsapp"))["apresentado_em"] is None
    line = Line({})
    for _ in range(2):
        await nomes_dos_grupos(mesa, line).sincronizar_grupos(call(mesa))
    assert len(line.asked) == 1
    assert await nomes_dos_grupos(mesa, None).sincronizar_grupos(call(mesa)) == Skipped(NO_LINE())


async def test_new_hospital_without_a_town_gets_the_region_of_its_group(mesa: Bancada) -> None:
    await mesa.dizem("bom dia", grupo=OUTRO)
    await mesa.dizem(vaga())
    await nomes_dos_grupos(mesa, Line({GRUPO: "Plantões Recife", OUTRO: None})).sincronizar_grupos(call(mesa))
    await mesa.trabalha()
    assert (await mesa.one("SELECT cidade, estado FROM hospitais")) == {"cidade": "Recife", "estado": "PE"}


@pytest.mark.parametrize(
    ("nome", "regiao"),
    [
        ("Plantões Recife", "Recife/PE"),
        ("🚑 PLANTÕES MÉDICOS - salvador 🚑", "Salvador/BA"),
        ("Plantão Santos e Campinas", None),
        ("Vagas médicas - MG", "MG"),
        ("Médicos de plantão (RS)", "RS"),
        ("Plantões PS/PA", None),
        ("Vagas GO e pediatria", None),
        ("Plantões", None),
    ],
)
def test_region_is_derived_from_a_name_that_contains_one(nome: str, regiao: str | None) -> None:
    assert regiao_de(nome, Vocabulario.padrao()) == regiao
