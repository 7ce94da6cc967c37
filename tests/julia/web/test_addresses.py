"""Page addresses with values that no page generates. Each of them shows a page instead of an error."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from batuta.testing import FakeClock
from tests.julia.tables import write
from tests.julia.web.painel import EVERYTHING, READER, Painel, open_painel, text_of
from tests.julia.web.test_access import routes

ROOT = Path(__file__).parents[3]
SOURCES = ("src/batuta/web/panel", "app/web/screens")
ID = "01890000-0000-7000-8000-000000000001"
ODD = ("x'\"<b>", "9" * 40, f"99999999999999999_{ID}")
# More values, which the tests use only with MATRIX=full.
MORE = (
    f"9999-12-31_23:59_{'-' * 36}",
    "-1",
    "٣٤:٥٦",
    "",
    " ",
    "0",
    "dead",
    "1e309",
    "NaN",
    "2026-02-30",
    "é" * 3000,
    f"1_{ID}",
    ID,
    "%00",
    "99999999d",
    "0" * 30 + "1",
)
LONGEST = 8_000  # characters of all values together, because the client refuses longer addresses
IS_FULL = os.environ.get("MATRIX") == "full"


def parameters() -> set[str]:
    """Return the names of the query parameters that the pages read."""
    found: set[str] = set()
    for folder in SOURCES:
        for file in (ROOT / folder).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            found |= set(re.findall(r'(?:query|params|query_params)(?:\.get(?:list)?\(|\[)"(\w+)"', text))
    return found | {"vaga", "motivo", "comparar"} - {"para"}


def pages(painel: Painel) -> Iterator[str]:
    for method, path in routes(painel.api):
        if method == "GET" and path.startswith("/painel") and not re.search(r"/acoes/|/static/|\.csv|rest:path", path):
            yield path.replace("{name}", "fila_mensagens" if "/filas/" in path else "processar_grupos")


def queries() -> Iterator[dict[str, str]]:
    names = sorted(parameters())
    for odd in (*ODD, *MORE) if IS_FULL else ODD:
        if IS_FULL:
            yield from ({name: odd} for name in names)
        yield dict.fromkeys(names, odd[: LONGEST // len(names)])


async def test_no_value_of_a_parameter_ends_a_page_with_an_error(julia_url: str, tmp_path: Path) -> None:
    assert {"estado", "antes", "depois", "hora", "situacao", "fila", "idade", "de", "origem"} <= parameters()
    async with open_painel(julia_url, FakeClock(), tmp_path) as painel, painel.browser(*EVERYTHING) as client:
        lists = [path for path in pages(painel) if "{id}" not in path]
        assert len(lists) > 15
        for path in lists:
            for query in queries():
                page = await client.get(path, params=query)
                assert page.status_code == 200, (path, query, text_of(page))


async def test_an_unknown_vacancy_to_review_shows_none(julia_url: str, tmp_path: Path) -> None:
    async with open_painel(julia_url, FakeClock(), tmp_path) as painel, painel.browser(*EVERYTHING) as client:
        page = await client.get("/painel/revisao", params={"vaga": ID})
        assert page.status_code == 200, text_of(page)


async def test_an_unknown_id_is_a_page_that_says_so(julia_url: str, tmp_path: Path) -> None:
    async with open_painel(julia_url, FakeClock(), tmp_path) as painel, painel.browser(*READER) as client:
        for path in pages(painel):
            for id in (ID, "x", "9" * 40) if "{id}" in path else ():
                page = await client.get(path.replace("{id}", id))
                assert page.status_code == 404, (path, id)


async def test_a_stored_word_without_a_text_is_shown_as_it_is(julia_url: str, tmp_path: Path) -> None:
    async with open_painel(julia_url, FakeClock(), tmp_path) as painel, painel.browser(*READER) as client:
        await write(
            painel.database,
            "INSERT INTO pendencias (id, quem, provider_message_id, motivo, ultima_em, created_at)"
            " VALUES (:id, 'x', 'x', 'de_outra_versao', :now, :now)",
            id=ID,
            now=painel.clock.now(),
        )
        page = await client.get("/painel/conversas")
        assert page.status_code == 200
        assert "de_outra_versao" in text_of(page)
