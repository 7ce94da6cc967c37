"""Each process has one object graph, so its caches, limits and services exist only once."""

import asyncio
import gc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.composition.julia import Julia, julia_of
from app.contexts.agendamentos.planilha.processo import LeitorDeArquivos
from app.contexts.esteira.leituras import LeitorPorRegras
from app.contexts.nomes.dicionario import Dicionario
from app.contexts.vagas.vagas import Vagas
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from app.web.boards import appointments_board, groups_board, sending_board
from batuta.engine.batuta import Batuta
from batuta.testing import FakeClock
from tests.julia.agendamentos.sheets import HEADER, patient, xlsx
from tests.julia.grupos.bancada import bancada


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(database_url=f"sqlite:///{tmp_path}/julia.db")


@pytest.mark.parametrize("cached", [Dicionario, LeitorDeArquivos, LeitorPorRegras, Vagas])
async def test_api_boards_and_commands_share_one_instance_of_each_cache(
    cached: type, settings: Settings, clock: FakeClock
) -> None:
    before = {id(each) for each in gc.get_objects() if type(each) is cached}
    julia = build(settings, clock=clock)
    create_app(julia)
    async with julia.work:
        for board in (sending_board, groups_board, appointments_board):
            await board(julia)
        made = [each for each in gc.get_objects() if type(each) is cached and id(each) not in before]
    assert len(made) == 1


def test_object_graph_is_found_through_its_batuta(settings: Settings) -> None:
    julia = build(settings)
    assert julia_of(julia.work) is julia
    with pytest.raises(TypeError, match=r"app\.main\.build"):
        julia_of(Batuta(settings.database_url.get_secret_value()))


async def test_name_taught_or_forgotten_is_known_at_once_in_the_whole_process(
    database_url: str, clock: FakeClock
) -> None:
    async with bancada(database_url, clock) as mesa:
        reader = mesa.groups.dicionario
        before = await reader.achar("HFI Inventado", "Santos", "SP", None)
        await mesa.carrega("Hospital Fictício", aliases=["HFI Inventado"], cidade="Santos", uf="SP")
        taught = await reader.achar("HFI Inventado", "Santos", "SP", None)
        await mesa.groups.ensino.esquecer("HFI Inventado", por="gestora")
        forgotten = await reader.achar("HFI Inventado", "Santos", "SP", None)
    assert taught.id is not None
    assert before.id is None
    assert forgotten.id is None


async def test_imports_of_one_process_share_its_limit_of_open_files(julia_open: Julia) -> None:
    content, leitura = xlsx([HEADER, patient()]), julia_open.appointments.leitura
    async with leitura.aberta(content, "a.xlsx"), leitura.aberta(content, "b.xlsx"):
        third = asyncio.create_task(julia_open.appointments.importacao.importar(content, "c.xlsx", by="teste"))
        done, _ = await asyncio.wait({third}, timeout=0.5)
        assert not done
    row = await third
    assert row["imported"] == 1


@pytest.fixture
async def julia_open(settings: Settings) -> AsyncIterator[Julia]:
    julia = build(settings)
    async with julia.work:
        yield julia
