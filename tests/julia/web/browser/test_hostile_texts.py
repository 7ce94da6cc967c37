"""Every table contains hostile texts, and a reader with every scope opens every page. None of the texts is executed or
changes the page.
"""

import re
from urllib.parse import urlencode

from app.contexts.lgpd.dados_pessoais import TABELAS
from batuta.engine.batuta import Batuta
from batuta.errors import StatementRefused, StoreConflict
from batuta.stores.sql.database import AsJson
from tests.julia.lgpd.pessoas import add_everywhere, add_shift, insert
from tests.julia.tables import rows, write
from tests.julia.web.browser.conftest import Desk
from tests.julia.web.test_access import routes

PAGES = ("/painel", "/docs", "/handoffs")
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


# Columns of text that contain no personal data: names, reasons and errors that operators, gateways and files supply.
MORE = {
    "batches": "name",
    "schedules": "description created_by",
    "feature_flags": "updated_by reason",
    "health_incidents": "details trigger_source",
    "job_executions": "error output owner",
    "worker_heartbeats": "host version",
    "log_lines": "event logger",
    "alertas_enviados": "titulo mensagem next_step",
    "chips": "instance_name ban_reason",
    "chip_transitions": "reason triggered_by",
    "campanhas": "nome_template corpo tom objetivo created_by erro",
    "conversations": "responsavel",
    "conversas_historico": "por",
    "grupos_whatsapp": "nome regiao",
    "hospitais": "nome cidade",
    "especialidades": "nome",
    "vagas": "forma_pagamento criada_por cancelada_motivo",
    "vagas_historico": "por",
    "importacoes": "arquivo created_by",
    "lgpd_pedidos": "por motivo",
    "telegram_contas": "nome erro",
    "diretrizes": "texto documento",
}
RUNS = """[...document.querySelectorAll('*')].filter(element => [...element.attributes].some(
    each => each.name.startsWith('on') || /^\\s*(javascript|data):/i.test(each.value))).map(element => element.outerHTML)"""


async def write_everywhere(desk: Desk) -> int:
    """Write a hostile text into every text column that accepts it. Return the number of changed rows."""
    database, written = desk.painel.database, 0
    columns = {(name, column) for name, listed in MORE.items() for column in listed.split()}
    for table in TABELAS:
        own = {column for each in table.dados for column in each.colunas} | {*table.livres.split()}
        columns |= {(table.nome, column) for column in own - KEPT - {"id"}}
    for name, column in sorted(columns):
        for value in (f"typeof({column}) = 'text'", f"{column} IS NULL"):
            try:
                written += await write(database, f"UPDATE {name} SET {column} = :said WHERE {value}", said=HOSTILE)
            except (StatementRefused, StoreConflict):  # a constraint, or a column that is not text
                continue
    return written


async def add_more(work: Batuta) -> dict[str, str]:
    """Add a run, a batch, a campaign, an import, a schedule and a switch. For each page, return the id of the record
    that it shows.
    """
    now, run, batch, file = work.clock.now(), work.ids.new(), work.ids.new(), work.ids.new()
    await insert(
        work, "job_executions", id=run, job_name="limpar-historico", categoria="x", trigger="manual", started_at=now,
        status="error", error="x", finished_at=now,
    )  # fmt: skip
    await insert(work, "batches", id=batch, name="x", created_at=now)
    await insert(
        work, "campanhas", id=77, nome_template="x", tipo_campanha="discovery", corpo="Oi", created_by="x", created_at=now,
        updated_at=now,
    )  # fmt: skip
    await insert(
        work, "importacoes", id=file, arquivo="x.xlsx", sha256="x", status="concluida", created_at=now, updated_at=now,
        errors=AsJson([]), warnings=AsJson([]),
    )  # fmt: skip
    await work.schedules.create(
        "resumo", task="normalize_appointment", args={"appointment_id": HOSTILE}, every=3600, by=HOSTILE
    )
    await work.switches.set("pause:all", True, by=HOSTILE, reason=HOSTILE, now=now)
    return {"/painel/execucoes": run, "/painel/lotes": batch, "/painel/campanhas": "77", "/painel/agendamentos": file}


async def test_no_text_of_a_stranger_runs_in_a_page(desk: Desk) -> None:
    work = desk.painel.julia.work
    who = await add_everywhere(work, 3)
    shift = await add_shift(work, who, "aberta")
    await desk.painel.offers(1)
    for reason in (HOSTILE, HOSTILE[::-1]):
        await work.access.note(actor=HOSTILE, action="x.y", subject=HOSTILE, reason=reason)
    message = str((await rows(work.database, "SELECT id FROM fila_mensagens LIMIT 1"))[0]["id"])
    more = await add_more(work)
    assert await write_everywhere(desk) > 50
    page = await desk.sign_in("")
    ids = {"/painel/conversas": who.conversa, "/painel/vagas": shift, "/painel/filas": message, **more}
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
        if (
            method != "GET"
            or not path.startswith(PAGES)
            or "/acoes/" in path
            or path.endswith((".csv", ".json", ".css"))
        ):
            continue
        id = next((id for place, id in ids.items() if path.startswith(place)), "x")
        found = re.sub(r"{\w+}", "fila_mensagens", path.replace("{id}", id).replace("{rest:path}", "x"), count=1)
        await page.goto(
            f"{desk.address}{found}?mostrar=dados&{urlencode({'q': HOSTILE, 'nome': HOSTILE, 'para': HOSTILE})}"
        )
        content = await page.content()
        assert await page.evaluate("window.attacked") is None, path
        assert "<img" not in content, path
        assert await page.evaluate(RUNS) == [], path
        seen += "onerror" in content
    assert seen > 3  # the pages show the texts as plain text
