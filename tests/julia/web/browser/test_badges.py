"""Badges of Julia's pages in a real browser: apart from the name on a telephone."""

import pytest

from tests.julia.tables import write
from tests.julia.web.browser.conftest import Desk
from tests.julia.web.test_conversas_screen import escalate, talk_with

# Rows whose name and badge share a rectangle of the page, or whose badge leaves the row.
OVERLAPS = """[...document.querySelectorAll('tbody tr')].filter(row => {
    const [name, badge, line] = [row.querySelector('th a, th'), row.querySelector('.pill'), row]
        .map(each => each.getBoundingClientRect());
    const apart = name.right <= badge.left || badge.right <= name.left || name.bottom <= badge.top || badge.bottom <= name.top;
    return !apart || badge.left < line.left || badge.right > line.right;
}).map(row => row.innerText)"""


@pytest.mark.parametrize("language", ["pt-BR", "en"])
async def test_names_and_badges_of_conversations_do_not_overlap_on_a_telephone(desk: Desk, language: str) -> None:
    for number in (1, 2):
        await escalate(desk.painel, await talk_with(desk.painel, number))
    await write(desk.painel.database, "UPDATE clientes SET primeiro_nome = 'Pessoa Inventada de Nome Comprido'")
    page = await desk.sign_in("/conversas?mostrar=dados", width=390, locale=language)
    assert await page.locator("tbody tr").count() == 2
    assert await page.evaluate(OVERLAPS) == []
