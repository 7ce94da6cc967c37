"""The dashboard's HTTP responses, tested without a network."""

import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from markupsafe import escape

from app.composition.jobs import CATALOGUE
from app.composition.julia import julia_of
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.config import EngineSettings, load_settings
from batuta.engine.batuta import Batuta
from batuta.guard.switches import SET_BY_WHY, SWITCH_OFF
from batuta.runlog.reasons import BY_HAND, MISSED_OLD, PAUSED_JOB, WINDOW_CLOSED, hold_reason
from batuta.schedule.cron import parse
from batuta.testing.clock import START
from batuta.texts import Language, Texts, fold
from batuta.web import create_api
from batuta.web.panel import words as crons
from batuta.web.panel.pages.overview import Cursor
from batuta.web.panel.words import Words
from tests.engine.web.browser.panel import HOSTILE, HOUR, MINUTE, STATES, Panel, ask, open_panel

PAGES = (
    "/painel",
    "/painel/tarefas",
    "/painel/tarefas/broken",
    "/painel/execucoes",
    "/painel/execucoes/{id}",
    "/painel/filas",
    "/painel/processos",
    "/painel/freios",
    "/painel/incidentes",
    "/painel/auditoria",
    "/painel/acoes/pause?alvo=job:broken",
    "/painel/nowhere",
)


@pytest.fixture
async def panel(tmp_path: Path, work_url: str) -> AsyncIterator[Panel]:
    opened = await open_panel(tmp_path, work_url)
    yield opened
    await opened.work.close()


def words(language: Language) -> Words:
    return Words(Texts(language).for_pages, ZoneInfo("UTC"), START)


class Elements(HTMLParser):
    """Collects every tag with its attributes, as a browser would read them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


def row(html: str, job: str) -> str:
    found = re.search(rf'<tr id="linha-{job}".*?</tr>', html, re.DOTALL)
    assert found, job
    return found[0]


def shown(html: str) -> set[str]:
    return set(re.findall(r'<tr id="linha-(\w+)"[^>]*(?<! hidden)>', html))


async def test_every_job_of_the_timetable_is_listed_with_its_state(panel: Panel) -> None:
    html = (await panel.ask("/painel/tarefas")).text
    for job, state in STATES.items():
        assert f'data-state="{state}"' in row(html, job), job
    assert len(re.findall(r'<tr id="linha-', html)) == len(STATES)


async def test_every_job_of_the_catalogue_is_listed(julia_url: str) -> None:
    settings = load_settings(Settings, {"DATABASE_URL": julia_url})
    work = build(settings).work
    async with work:
        html = (await ask(create_app(julia_of(work)), "/painel/tarefas")).text
    assert [entry.name for entry in CATALOGUE if entry.continuo and f'id="linha-{entry.name}"' not in html] == []
    assert "nenhum agendador deu sinal" in html or "Nenhum agendador deu sinal de vida ainda" in html


async def test_summary_names_the_worst_problem_and_its_jobs_first(panel: Panel) -> None:
    html = (await panel.ask("/painel/tarefas")).text
    sentence = re.sub(r"<[^>]+>|\s+", " ", re.search(r'<p class="sentence">(.*?)</p>', html, re.DOTALL)[1])  # type: ignore[index]
    text = " ".join(sentence.replace(" ,", ",").split())
    assert (
        text == "Crítico: 1 tarefa agendada atrasada: overdue ; 1 tarefa agendada falhando: broken ; "
        "1 tarefa agendada terminou com sucesso parcial: partly ."
    )


async def test_summary_says_that_nothing_is_wrong(work_url: str) -> None:
    work = Batuta(work_url)
    async with work:
        html = (await ask(create_api(work, load_settings(EngineSettings, {})), "/painel")).text
    assert "Tudo em dia." in html
    assert "v-healthy" in html


def test_panel_writes_instants_in_the_language_of_the_reader() -> None:
    portuguese, english = words("pt-BR"), words("en")
    assert portuguese.minute(START) == f"{START:%d/%m/%Y %H:%M}"
    assert english.minute(START) == "05 Jan 2026 12:00"
    assert english.second(START) == "05 Jan 2026 12:00:00"
    assert english.whole(START) == "Mon 05 Jan 2026 12:00:00 +0000"


async def test_row_shows_the_last_run_the_next_fire_and_the_outcome(panel: Panel) -> None:
    html = (await panel.ask("/painel/tarefas")).text
    pulse = row(html, "pulse")
    assert "a cada minuto" in pulse
    assert 'title="seg 05/01/2026 08:59:00 -0300">08:59</time>' in pulse
    assert "09:01</time><small>em 60 s" in pulse
    assert "1,2 s" in pulse
    assert "<small>3 min</small>" in pulse
    assert "30 de 30 com sucesso" in pulse
    assert "a cada 5 min, 8h–19h" in row(html, "overdue")


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ("overdue", "nenhuma execução desde o último disparo esperado"),
        ("broken", "HTTP 500: "),
        ("partly", "parcial: 3 of 5"),
        ("planned_for_a_day_nobody_knows", "não implementada"),
        ("paused", "pausa da categoria campanha por ana: "),
        ("paused", " (até 05/01/2026 09:30)"),
        ("morning", "janela manha fechada (até 05/01/2026 10:00)"),
    ],
)
async def test_row_with_a_problem_shows_the_reason(panel: Panel, job: str, why: str) -> None:
    assert why in row((await panel.ask("/painel/tarefas")).text, job)


@pytest.mark.parametrize(
    ("query", "jobs"),
    [
        ("estado=failing", {"broken"}),
        ("categoria=sync", {"broken", "partly", "going"}),
        ("q=PARCIAL+3", {"partly"}),
        ("q=execucao+disparo", {"overdue"}),  # the search ignores accents
        ("categoria=sync&estado=running&q=go", {"going"}),
        ("q=nobody+at+all", set()),
        ("estado=nonsense&categoria=" + "%3Cb%3E", set(STATES)),
    ],
)
async def test_filters_are_in_the_address_and_need_no_script(panel: Panel, query: str, jobs: set[str]) -> None:
    html = (await panel.ask(f"/painel/tarefas?{query}")).text
    assert shown(html) == jobs
    assert (' id="nada" hidden' in html) == bool(jobs)
    assert f"{len(jobs)} de {len(STATES)}" in html


async def test_last_24_hours_have_a_lane_per_category_and_a_shape_per_outcome(panel: Panel) -> None:
    html = (await panel.ask("/painel")).text
    lanes = re.findall(r'<li class="lane">.*?</li>', html, re.DOTALL)
    assert len(lanes) == 4
    sync = next(lane for lane in lanes if "categoria=sync" in lane)
    assert all(f'class="o-{outcome}"' in sync for outcome in ("success", "failed", "running"))
    assert "<title>08:45–09:00: 1 com sucesso, 1 falha, 1 em execução</title>" in sync
    assert "1 perdida" in next(lane for lane in lanes if "categoria=campanha" in lane)


async def test_first_page_leads_from_a_job_that_did_not_run_to_its_reason_and_its_remedy(panel: Panel) -> None:
    page = (await panel.ask("/painel?lang=en")).text
    section = page.partition('id="nao-rodaram"')[2].partition("</section>")[0]
    rows = dict(re.findall(r'<li data-job="(\w+)">(.*?)</li>', section, re.DOTALL))
    assert set(rows) == {"overdue", "paused"}
    assert "no run since the last expected fire" in rows["overdue"]
    assert "/acoes/job.run?tarefa=overdue" in rows["overdue"]
    assert "rui" in rows["paused"]
    assert "/acoes/resume?alvo=job%3Apaused" in rows["paused"]
    assert "/acoes/job.run?tarefa=paused" in rows["paused"]
    # The job's page explains that fire without any further input.
    job = (await panel.ask("/painel/tarefas/overdue?lang=en")).text
    assert "no record" in job.partition('id="porque-titulo"')[2].partition("</section>")[0]


async def test_first_page_names_the_fire_that_was_missed_and_leads_to_its_explanation(panel: Panel) -> None:
    due = panel.clock.now().replace(minute=15) - 5 * HOUR  # recorded hours later, when a scheduler ran again
    await panel.keep("broken", MINUTE, "missed", reason=MISSED_OLD(), due=due)
    page = (await panel.ask("/painel?lang=en")).text
    section = page.partition('id="nao-rodaram"')[2].partition("</section>")[0]
    row = dict(re.findall(r'<li data-job="(\w+)">(.*?)</li>', section, re.DOTALL))["broken"]
    (address,) = re.findall(r'<a href="([^"#]+)#porque-titulo"><time[^>]*>[^<]*04:15</time></a>', row)
    assert address == "/painel/tarefas/broken?hora=04:15"
    why = (await panel.ask(f"{address}&lang=en")).text.partition('id="porque-titulo"')[2].partition("</section>")[0]
    assert "missed" in why


async def test_first_page_offers_to_run_a_job_whose_pause_was_released_until_it_runs(panel: Panel) -> None:
    async def listed() -> str:
        page = (await panel.ask("/painel?lang=en")).text
        section = page.partition('id="nao-rodaram"')[2].partition("</section>")[0]
        rows: dict[str, str] = dict(re.findall(r'<li data-job="(\w+)">(.*?)</li>', section, re.DOTALL))
        return rows.get("broken", "")

    switched_off = hold_reason(SWITCH_OFF(switch="broken.enabled", setting=""))
    await panel.keep("broken", 3 * MINUTE, "skipped", reason=switched_off)
    assert await listed() == ""  # the operators turned the switch off on purpose, so the job is not listed
    paused = hold_reason(PAUSED_JOB(name="broken", setting=SET_BY_WHY(by="rui", said="repair")))
    await panel.keep("broken", 2 * MINUTE, "skipped", reason=paused)
    row = await listed()
    assert "held: job broken is paused, set by rui: repair" in row
    assert ("/acoes/job.run?tarefa=broken" in row, "/acoes/resume" in row) == (True, False)
    await panel.keep("broken", MINUTE)
    assert await listed() == ""


async def test_first_page_says_once_that_everything_is_paused(panel: Panel) -> None:
    await panel.work.switches.set("pause.all", True, by="ana", reason="storm", now=panel.clock.now())
    page = (await panel.ask("/painel?lang=en")).text
    section = page.partition('id="nao-rodaram"')[2].partition("</section>")[0]
    assert section.count("<li") == 1
    assert "storm" in section
    assert "/acoes/resume?alvo=all%3A" in section


async def test_job_page_shows_its_definition_fires_runs_and_errors(panel: Panel) -> None:
    html = (await panel.ask("/painel/tarefas/broken")).text
    assert html.count('<li class=""><span><time') == 10
    for word in (
        "*/15 * * * *",
        "a cada 15 min",
        "/jobs/test",
        "pausa geral<br>pausa da categoria sync<br>pausa de broken",
        "1,2 s de 45 min",
        "acoes/job.run?tarefa=broken",
        "45 min",
    ):
        assert word in html
    assert html.count('href="/painel/execucoes/') == 3  # two runs, one of them repeated among the errors
    assert "feriado" not in html


async def test_fires_that_will_not_run_show_what_holds_them_and_until_when(panel: Panel) -> None:
    paused = (await panel.ask("/painel/tarefas/paused")).text
    assert paused.count('class="stopped"') == 10  # the job's own pause has no end
    assert "pausa de paused por rui" in paused
    morning = (await panel.ask("/painel/tarefas/morning")).text
    assert 'class="stopped"' not in morning  # the window is open at every fire
    assert "janela manha fechada" in morning


async def test_job_of_another_profile_has_its_page(julia_url: str) -> None:
    settings = load_settings(Settings, {"DATABASE_URL": julia_url})
    work = build(settings).work
    async with work:
        answer = await ask(create_app(julia_of(work)), "/painel/tarefas/processar_campanhas_manha")
    assert answer.status_code == 200
    assert "não está no perfil ativo (continuo)" in answer.text


async def test_executions_are_paged_to_the_oldest(panel: Panel) -> None:
    for number in range(100):
        await panel.keep("pulse", HOUR + number // 40 * MINUTE)  # forty rows of one instant
    path, found, pages = "/painel/execucoes?tarefa=pulse&situacao=success", [], 0
    while path:
        html = (await panel.ask(path)).text
        found += re.findall(r'href="/painel/execucoes/([0-9a-f-]{36})"', html)
        older = re.search(r'rel="next" href="([^"]+)"', html)
        path, pages = older[1].replace("&amp;", "&") if older else "", pages + 1
    assert pages == 3
    assert len(found) == len(set(found)) == 130


async def test_executions_are_filtered_by_status_and_job(panel: Panel) -> None:
    html = (await panel.ask("/painel/execucoes?situacao=error")).text
    assert html.count('class="edge-failing"') == html.count("<tr class=") == 1
    assert (await panel.ask("/painel/execucoes?situacao=nonsense&antes=garbage")).status_code == 200
    assert "Nenhuma execução" in (await panel.ask("/painel/execucoes?tarefa=nobody")).text


async def test_execution_page_shows_all_its_fields(panel: Panel) -> None:
    id = await panel.keep(
        "pulse",
        5 * MINUTE,
        "timeout",
        due=panel.clock.now() - 7 * MINUTE,
        trigger="catch_up",
        reason=BY_HAND(why=hold_reason(WINDOW_CLOSED(window="manha"))),
        error="it did not answer",
        result={"nested": {"é": [1, None]}, "large": 12345678901234567890},
    )
    html = (await panel.ask(f"/painel/execucoes/{id}")).text
    for word in (
        "08:53:00",
        "08:55:00",
        "08:55:01",
        "2 min após o horário previsto",
        "recuperação",
        "box:1",
        "it did not answer",
    ):
        assert word in html, word
    assert "executada manualmente, embora suspensa: janela manha fechada" in html
    assert "12345678901234567890" in html
    assert escape('"é": [') in html


async def test_hostile_text_is_escaped(panel: Panel) -> None:
    id = await panel.keep("pulse", MINUTE, "error", error=HOSTILE, reason=HOSTILE, result={HOSTILE: HOSTILE})
    paths = [path.format(id=id) for path in PAGES]
    asked = f"/painel?q={HOSTILE}&lang=pt-BR", f"/painel/tarefas/{HOSTILE}", f"/painel/execucoes/{HOSTILE}"
    for path in (*paths, *asked):
        html = (await panel.ask(path)).text
        assert "<script>" not in html, path
        assert "<img" not in html, path
    assert "&lt;script&gt;" in (await panel.ask(f"/painel/execucoes/{id}")).text


async def test_no_page_has_an_inline_script_or_style_or_an_outside_resource(panel: Panel) -> None:
    id = await panel.keep("pulse", MINUTE)
    for path in PAGES:
        answer = await panel.ask(path.format(id=id))
        assert answer.headers["content-security-policy"].startswith("default-src 'self'; frame-ancestors 'none'")
        assert answer.headers["cache-control"] == "no-store"
        for tag, names in Elements(answer.text).found:
            assert tag not in ("style", "iframe", "object", "img"), path
            assert tag != "script" or names["src"].startswith("/painel/static/"), path
            assert [name for name in names if name == "style" or name.startswith("on")] == [], path
            places = [names[name] for name in ("href", "src", "action") if name in names]
            assert [place for place in places if not place.startswith(("/painel", "/docs", "#"))] == [], path


async def test_every_page_has_landmarks_one_heading_and_named_columns(panel: Panel) -> None:
    id = await panel.keep("pulse", MINUTE)
    for path in PAGES:
        html = (await panel.ask(path.format(id=id))).text
        assert html.count("<h1") == html.count("<main") == html.count('<header class="bar"') == 1
        assert 'class="skip" href="#conteudo"' in html
        assert html.count("<table") == html.count("<caption")
        assert re.findall(r"<th(?! scope|ead)[^>]*>", html) == []
        ids = re.findall(r'\sid="([^"]+)"', html)
        assert len(ids) == len(set(ids)), path


async def test_language_comes_from_the_address_the_cookie_or_the_browser(panel: Panel) -> None:
    english = await panel.ask("/painel/tarefas?lang=en")
    assert '<html lang="en">' in english.text
    assert "1 job late" in english.text
    cookie = english.headers["set-cookie"]
    assert cookie.startswith("batuta_lang=en; HttpOnly;")
    assert "SameSite=strict" in cookie
    assert '<html lang="en">' in (await panel.ask("/painel", Cookie="batuta_lang=en")).text
    assert '<html lang="en">' in (await panel.ask("/painel", **{"Accept-Language": "en-GB"})).text
    assert '<html lang="pt-BR">' in (await panel.ask("/painel?lang=pt-BR", Cookie="batuta_lang=en")).text
    assert "set-cookie" not in (await panel.ask("/painel")).headers


async def test_missing_page_is_html_for_a_browser_and_a_problem_for_a_program(panel: Panel) -> None:
    for path in ("/painel/tarefas/brokn", "/painel/execucoes/0", "/painel/execucoes/" + "0" * 36, "/painel/nowhere"):
        answer = await panel.ask(path)
        assert answer.status_code == 404
        assert answer.headers["content-type"].startswith("text/html")
        assert 'href="/painel">← Voltar' in answer.text
        problem = await panel.ask(path, accept="application/json")
        assert (problem.status_code, problem.headers["content-type"]) == (404, "application/problem+json")
    assert "Você quis dizer broken?" in (await panel.ask("/painel/tarefas/brokn")).text


async def test_unavailable_database_is_a_page_that_retries(panel: Panel) -> None:
    await panel.work.close()
    for path in ("/painel", "/painel/tarefas/pulse", "/painel/execucoes"):
        answer = await panel.ask(path)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert "Banco de dados indisponível" in answer.text
        assert '<meta http-equiv="refresh"' in answer.text
        assert (await panel.ask(path, accept="application/json")).headers["content-type"] == "application/problem+json"


async def test_production_shows_nothing_without_a_token(julia_url: str) -> None:
    env = {"DATABASE_URL": julia_url, "API_TOKEN": "t" * 32, "APP_ENV": "production", "SECRET_KEY": "k" * 32}
    settings = load_settings(Settings, env)
    work = build(settings).work
    await work.database.open()
    julia = create_app(julia_of(work))
    for path in ("/", "/painel", "/painel/tarefas/heartbeat", "/painel/nowhere", "/docs"):
        answer = await ask(julia, path, accept="*/*")
        assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json"), path
        led = await ask(julia, path)
        assert (led.status_code, led.content) == (303, b""), path
        assert led.headers["location"].startswith("/painel/entrar?para=%2F")
    assert (await ask(julia, "/painel", Authorization="Bearer " + "t" * 32)).status_code == 200
    await work.close()


async def test_root_page_redirects_to_the_dashboard(panel: Panel) -> None:
    answer = await panel.ask("/")
    assert (answer.status_code, answer.headers["location"]) == (307, "/painel")


async def test_address_with_a_slash_at_its_end_leads_to_the_page(panel: Panel) -> None:
    for path in ("/painel/", "/painel/filas/"):
        answer = await panel.ask(path)
        assert (answer.status_code, answer.headers["location"]) == (307, path.rstrip("/"))


async def test_static_files_are_cached_until_they_change(panel: Panel) -> None:
    html = (await panel.ask("/painel")).text
    for kind in ("css", "js", "svg"):
        path = re.search(rf'"(/painel/static/panel\.{kind}\?v=\w+)"', html)
        assert path, kind
        pinned = await panel.ask(path[1])
        assert "immutable" in pinned.headers["cache-control"]
        bare = await panel.ask(f"/painel/static/panel.{kind}")
        assert bare.headers["cache-control"] == "no-cache"
        again = await panel.ask(f"/painel/static/panel.{kind}", **{"If-None-Match": bare.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    for name in ("..%2Fpages.py", "%2e%2e", "nowhere.css"):
        assert (await panel.ask(f"/painel/static/{name}")).status_code == 404


async def test_current_page_refreshes_and_a_page_of_the_past_does_not(panel: Panel) -> None:
    assert "<noscript><meta" in (await panel.ask("/painel")).text
    old = Cursor(panel.clock.now(), "0" * 8 + "-0000-0000-0000-" + "0" * 12)
    assert "<noscript>" not in (await panel.ask(f"/painel/execucoes?antes={old}")).text


@pytest.mark.parametrize(
    ("cron", "portuguese", "english"),
    [
        ("* * * * *", "a cada minuto", "every minute"),
        ("*/5 8-19 * * *", "a cada 5 min, 8h–19h", "every 5 min, 8h–19h"),
        ("*/15 * * * 1-5", "a cada 15 min, seg–sex", "every 15 min, Mon–Fri"),
        ("0 * * * *", "a cada hora", "every hour"),
        ("20 * * * *", "a cada hora, no minuto 20", "every hour, at minute 20"),
        ("0 9,14 * * 1-5", "às 09:00 e 14:00, seg–sex", "at 09:00 and 14:00, Mon–Fri"),
        ("55 23 * * *", "todo dia às 23:55", "every day at 23:55"),
        ("0 8-18 * * *", "a cada hora, 8h–18h", "every hour, 8h–18h"),
        ("0 4 * * 1,3", "às 04:00, seg e qua", "at 04:00, Mon and Wed"),
        ("0 4 1 * *", "às 04:00, dia 1 do mês", "at 04:00, day 1 of the month"),
        ("@daily", "todo dia às 00:00", "every day at 00:00"),
        ("7-59/13 * * * *", None, None),
        ("0 4 1 * 1", None, None),
        ("0 4 * 2 *", None, None),
        ("*/7 * * * *", None, None),
    ],
)
def test_simple_schedule_is_described_in_words(cron: str, portuguese: str | None, english: str | None) -> None:
    assert crons.in_words(parse(cron), words("pt-BR")) == portuguese
    assert crons.in_words(parse(cron), words("en")) == english


def test_numbers_have_separators_and_searches_ignore_accents() -> None:
    portuguese = words("pt-BR")
    assert portuguese.took(None) == "–"
    assert portuguese.number(1234567) == "1.234.567"
    assert fold("Não ÀS") == "nao as"
