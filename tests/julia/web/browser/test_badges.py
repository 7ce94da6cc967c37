"""Badges on Julia's pages in a real browser. On a phone they do not overlap names, and they are as wide as their
text.
"""

import pytest

from tests.julia.tables import write
from tests.julia.web.browser.conftest import Desk
from tests.julia.web.test_campanhas_screen import campaign
from tests.julia.web.test_conversas_screen import escalate, talk_with
from tests.julia.web.test_vagas_screen import created

# Rows whose name and badge share a rectangle of the page, or whose badge leaves the row.
OVERLAPS = """[...document.querySelectorAll('tbody tr')].filter(row => {
    const [name, badge, line] = [row.querySelector('th a, th'), row.querySelector('.pill'), row]
        .map(each => each.getBoundingClientRect());
    const apart = name.right <= badge.left || badge.right <= name.left || name.bottom <= badge.top || badge.bottom <= name.top;
    return !apart || badge.left < line.left || badge.right > line.right;
}).map(row => row.innerText)"""
WIDTHS = "[...document.querySelectorAll('main .title .pill')].map(each => each.getBoundingClientRect().width)"


@pytest.mark.parametrize("language", ["pt-BR", "en"])
async def test_names_and_badges_of_conversations_do_not_overlap_on_a_telephone(desk: Desk, language: str) -> None:
    for number in (1, 2):
        await escalate(desk.painel, await talk_with(desk.painel, number))
    await write(desk.painel.database, "UPDATE clientes SET primeiro_nome = 'Pessoa Inventada de Nome Comprido'")
    page = await desk.sign_in("/conversas?mostrar=dados", width=390, locale=language)
    assert await page.locator("tbody tr").count() == 2
    assert await page.evaluate(OVERLAPS) == []


@pytest.mark.parametrize("width", [1360, 390])
async def test_badge_of_a_cancelled_record_is_as_wide_as_its_text(desk: Desk, width: int) -> None:
    paths = f"/campanhas/{await campaign(desk.painel)}", f"/vagas/{await created(desk.painel)}"
    await write(desk.painel.database, "UPDATE campanhas SET status = 'cancelada'")
    await write(desk.painel.database, "UPDATE vagas SET status = 'cancelada'")
    page = await desk.sign_in("/vagas", width=width)
    for path in paths:
        await page.goto(f"{desk.address}/painel{path}")
        (found,) = await page.evaluate(WIDTHS)
        assert found < 200, path
