"""Hostile texts are in every table, and every page shows them to a reader with every scope. None of them runs or
changes the page.
"""

import re
from urllib.parse import urlencode

from app.contexts.lgpd.dados_pessoais import TABELAS
from batuta.errors import StatementRefused, StoreConflict
from tests.julia.lgpd.pessoas import add_everywhere, add_shift
from tests.julia.tables import rows, write
from tests.julia.web.browser.conftest import Desk
from tests.julia.web.test_access import routes

HOSTILE = '"\'><img src=x onerror="window.attacked=1"><script>window.attacked=1</script>{{7*7}}\u202e`<b>'
# Columns whose values are words of the program, which pages look up.
KEPT = {
    "status",
    "tipo",
    "motivo",
    "acao",
    "de",
    "para",
    "event_type",
    "source",
    "canal",
    "evento",
    "autor_tipo",
    "envio_estado",
}


async def write_everywhere(desk: Desk) -> int:
    """Write the text into every column of text that accepts it."""
    database, written = desk.painel.database, 0
    for table in TABELAS:
        own = {column for each in table.dados for column in each.colunas} | {*table.livres.split()}
        for column in own - KEPT - {"id"}:
            try:
                written += await write(
                    database, f"UPDATE {table.nome} SET {column} = :said WHERE typeof({column}) = 'text'", said=HOSTILE
                )
            except (StatementRefused, StoreConflict):  # a constraint, or a column that is not text
                continue
    return written


async def test_no_text_of_a_stranger_runs_in_a_page(desk: Desk) -> None:
    work = desk.painel.julia.work
    who = await add_everywhere(work, 3)
    shift = await add_shift(work, who, "aberta")
    await desk.painel.offers(1)
    for reason in (HOSTILE, HOSTILE[::-1]):
        await work.access.note(actor=HOSTILE, action="x.y", subject=HOSTILE, reason=reason)
    message = str((await rows(work.database, "SELECT id FROM fila_mensagens LIMIT 1"))[0]["id"])
    assert await write_everywhere(desk) > 50
    page = await desk.sign_in("")
    ids = {"/painel/conversas": who.conversa, "/painel/vagas": shift, "/painel/filas": message}
    seen = 0
    known = {"conversa": who.conversa, "vaga": shift, "id": message, "fila": "fila_mensagens", "medico": who.medico}
    for name, action in desk.painel.api.state.batuta.actions.items():
        for given in ({}, known):
            query = {each.name: HOSTILE for each in action.fields} | given
            form = await page.request.get(
                f"{desk.address}/painel/acoes/{name}?{urlencode(query | {'voltar': HOSTILE})}"
            )
            assert "<img" not in await form.text(), name
            seen += "onerror" in await form.text()
    assert seen > 10  # the forms show the given texts as plain text
    for method, path in routes(desk.painel.api):
        if method != "GET" or not path.startswith("/painel") or "/acoes/" in path or path.endswith((".csv", "/entrar")):
            continue
        id = next((id for place, id in ids.items() if path.startswith(place)), "x")
        found = re.sub(r"{\w+}", "fila_mensagens", path.replace("{id}", id).replace("{rest:path}", "x"), count=1)
        await page.goto(f"{desk.address}{found}?mostrar=dados&{urlencode({'q': HOSTILE, 'nome': HOSTILE})}")
        content = await page.content()
        assert await page.evaluate("window.attacked") is None, path
        assert "<img" not in content, path
        seen += "onerror" in content
    assert seen > 3  # the pages show the texts as plain text
