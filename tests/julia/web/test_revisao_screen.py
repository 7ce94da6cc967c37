"""The review in the dashboard: the source text is shown next to the fields, decisions work without JavaScript, and data
are masked for readers without the scope pii.
"""

import html
import re
from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path

import pytest

from app.web.screens.marked_text import Part, parts_of
from batuta.testing import FakeClock
from batuta.texts import HERE, LANGUAGES, read_table
from batuta.web.panel.actions.control import actions_of
from tests import ROOT
from tests.julia.tables import one, rows, write
from tests.julia.web.painel import OPERATOR, READER, REVIEWER, Painel, act, open_painel, text_of

PRIVATE = (b"Fulana de Teste", b"90000-0088", b"5511900000088", b"jaleco roxo", b"Chamar")


@pytest.fixture
async def painel(database_url: str, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Painel]:
    async with open_painel(database_url, clock, tmp_path) as opened:
        yield opened


def test_text_is_split_at_the_borders_of_its_spans() -> None:
    spans = {"hospital": [0, 4], "data": [5, 10], "hora_inicio": [8, 10], "inexplicado": [[11, 15]], "valor": [90, 99]}
    assert parts_of("Vila 20/03 roxo", spans) == [
        Part("Vila", ("hospital",)),
        Part(" "),
        Part("20/", ("data",)),
        Part("03", ("data", "hora_inicio")),
        Part(" "),
        Part("roxo", (), is_unexplained=True),
    ]
    assert parts_of("", {"valor": [0, 5]}) == []


async def test_source_text_is_shown_beside_the_fields_with_marks_and_origins(painel: Painel) -> None:
    (id,) = await painel.offers(1)
    async with painel.browser(*REVIEWER) as reviewer:
        page = await reviewer.get("/painel/revisao")
    assert '<mark class="mark-1" title="hospital">Vila Inventada</mark>' in page.text
    assert 'class="unexplained"' in page.text
    assert 'value="Vila Inventada"' in page.text
    shown = text_of(page)
    assert "hospital incerto" in shown
    assert "lido no texto" in shown
    assert "jaleco roxo" in shown
    assert await painel.audit("access.") == [("token pessoa2", "access.unmask", "/painel/revisao")]
    assert f'name="vaga" value="{id}"' in page.text


async def test_text_and_contacts_are_hidden_without_pii(painel: Painel) -> None:
    await painel.offers(1)
    for role in (READER, OPERATOR):
        async with painel.browser(*role) as browser:
            page = await browser.get("/painel/revisao?mostrar=dados")
        assert page.status_code == 200
        assert [sign for sign in PRIVATE if sign in page.content] == []
        assert "escopo dados-pessoais" in text_of(page)
    assert not await painel.audit("access.")


async def test_approval_without_changes_imports_the_vacancy_and_shows_the_next(painel: Painel) -> None:
    first, second = await painel.offers(2)
    async with painel.browser(*REVIEWER) as reviewer:
        done = await act(reviewer, "revisao.aprovar", vaga=first)
        assert done.status_code == 303
        page = await reviewer.get(done.headers["location"])
    assert "importada" in text_of(page)
    assert f"batuta grupos aprovar {first}" in text_of(page)
    assert f'name="vaga" value="{second}"' in page.text
    stored = await one(painel.database, "SELECT * FROM vagas_grupo WHERE id = :id", id=first)
    assert (stored["status"], stored["revisada_por"]) == ("importada", "token pessoa3")
    assert (await one(painel.database, "SELECT status FROM vagas"))["status"] == "aberta"
    assert await painel.audit("vaga_grupo.") == [("token pessoa3", "vaga_grupo.aprovar", f"vaga_grupo:{first}")]


async def test_audit_log_shows_an_approval_without_its_empty_list_of_fields(painel: Painel) -> None:
    (id,) = await painel.offers(1)
    async with painel.browser(*REVIEWER) as reviewer:
        await act(reviewer, "revisao.aprovar", vaga=id)
        page = await reviewer.get("/painel/auditoria")
    assert ("aprovou uma vaga de grupo" in text_of(page), "campos:" in text_of(page)) == (True, False)


async def test_audit_log_has_a_text_for_each_action_that_it_records_under_its_own_name(painel: Painel) -> None:
    work = painel.julia.work
    names = {f"audit_action.{each.name}" for each in (*actions_of(work), *work.extension.actions) if not each.audits}
    for language in LANGUAGES:
        texts = {**read_table(HERE, language), **read_table(ROOT / "app" / "texts", language)}
        assert names - texts.keys() == set()


async def test_approval_applies_only_the_changed_fields(painel: Painel) -> None:
    (id,) = await painel.offers(1)
    before = await one(painel.database, "SELECT * FROM vagas_grupo")
    fields = {"hospital": "Vila Inventada", "valor": "1.750,50", "data": "2026-01-20", "periodo": "diurno"}
    async with painel.browser(*OPERATOR) as operator:
        assert (await act(operator, "revisao.aprovar", vaga=id, **fields)).status_code == 303
    stored = await one(painel.database, "SELECT * FROM vagas_grupo")
    assert (stored["valor"], stored["data"], stored["periodo_id"]) == (1750.5, date(2026, 1, 20), 1)
    assert stored["contato_whatsapp"] == before["contato_whatsapp"] is not None
    (entry,) = await rows(painel.database, "SELECT after FROM audit_log WHERE action = 'vaga_grupo.aprovar'")
    assert entry["after"]["campos"] == ["data", "periodo", "valor"]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [("data", "amanhã", "11/03/2026"), ("hora_inicio", "25:00", "19:00"), ("valor", "5", "100"), ("uf", "XX", "SP")],
)
async def test_wrong_value_is_refused_on_the_form_with_the_expected_value(
    painel: Painel, field: str, value: str, expected: str
) -> None:
    (id,) = await painel.offers(1)
    async with painel.browser(*OPERATOR) as operator:
        refused = await act(operator, "revisao.aprovar", vaga=id, **{field: value})
    assert (refused.status_code, expected in text_of(refused)) == (422, True)
    assert (await one(painel.database, "SELECT status FROM vagas_grupo"))["status"] == "aguardando_revisao"


async def test_missing_field_is_marked_and_required_so_that_the_operator_stays_on_the_vacancy(painel: Painel) -> None:
    (id,) = await painel.offers(1)
    await write(painel.database, "UPDATE vagas_grupo SET hospital_id = NULL, hospital_raw = NULL")
    async with painel.browser(*OPERATOR) as operator:
        page = await operator.get("/painel/revisao")
        refused = await act(operator, "revisao.aprovar", vaga=id)
    fields = {name: tag for tag, name in re.findall(r'(<input id="campo-(\w+)"[^>]*>)', page.text)}
    assert {name for name, tag in fields.items() if " required" in tag} == {"hospital", "especialidade", "data"}
    assert {name for name, tag in fields.items() if 'aria-invalid="true"' in tag} == {"hospital"}
    assert 'data-missing="Falta o hospital"' in fields["hospital"]
    assert "Falta o hospital" in text_of(page)
    (alert,) = re.findall(r'role="alert">([^<]+)', refused.text)
    assert (refused.status_code, "falta hospital" in alert, id in alert) == (422, True, False)
    assert re.search(r'<input id="campo-data" name="data" type="date" value="2026-', refused.text)


async def test_rejection_stores_its_reason_and_a_second_decision_is_refused(painel: Painel) -> None:
    (id,) = await painel.offers(1)
    async with painel.browser(*OPERATOR) as operator:
        refused = await act(operator, "revisao.rejeitar", vaga=id, motivo="")
        assert refused.status_code == 422
        assert (await act(operator, "revisao.rejeitar", vaga=id, motivo="não é oferta")).status_code == 303
        again = await act(operator, "revisao.aprovar", vaga=id)
    assert (again.status_code, "já foi decidida" in text_of(again)) == (422, True)
    stored = await one(painel.database, "SELECT * FROM vagas_grupo")
    assert (stored["status"], stored["motivo_status"]) == ("rejeitada", "rejeitada: não é oferta")
    assert [entry[1] for entry in await painel.audit("vaga_grupo.")] == ["vaga_grupo.rejeitar"]


async def test_block_of_an_author_rejects_the_vacancies_of_that_author(painel: Painel) -> None:
    first, _ = await painel.offers(2)
    async with painel.browser(*OPERATOR) as operator:
        form = await operator.get("/painel/acoes/revisao.bloquear_autor", params={"vaga": first})
        assert "serão rejeitadas" in text_of(form)
        assert (await act(operator, "revisao.bloquear_autor", vaga=first)).status_code == 303
    states = {row["status"] for row in await rows(painel.database, "SELECT status FROM vagas_grupo")}
    assert states == {"rejeitada"}
    assert len(await painel.audit("contato.")) == 1


async def test_filters_and_position_are_in_the_address(painel: Painel) -> None:
    first, second, third = await painel.offers(3)
    async with painel.browser(*READER) as reader:
        page = await reader.get("/painel/revisao?motivo=hospital_incerto")
        assert f'id="vaga-{first}"' in page.text
        (skip,) = {part.split('"')[0] for part in page.text.split('href="') if "depois=" in part[:120]}
        assert "motivo=hospital_incerto" in skip
        page = await reader.get(html.unescape(skip))
        assert f'id="vaga-{second}"' in page.text
    async with painel.browser(*OPERATOR) as operator:
        page = await operator.get("/painel/revisao?depois=nonsense&vaga=nonsense")
        assert f'value="{first}"' in page.text
        chosen = await operator.get(f"/painel/revisao?vaga={third}")
        assert f'name="vaga" value="{third}"' in chosen.text
        nothing = await operator.get("/painel/revisao?motivo=score_baixo")
    assert "Fim desta lista" in text_of(nothing)


@pytest.mark.parametrize(
    ("language", "keys", "period", "value"),
    [
        ("pt-BR", ("aprovar", "corrigir", "rejeitar"), "noturno", "R$ 1.600,00"),
        ("en", ("approve", "correct", "reject"), "night", "R$ 1,600.00"),
    ],
)
async def test_decided_vacancy_is_shown_as_text_without_fields_and_keys(
    painel: Painel, language: str, keys: tuple[str, ...], period: str, value: str
) -> None:
    (id,) = await painel.offers(1)
    async with painel.browser(*REVIEWER) as reviewer:
        before = await reviewer.get(f"/painel/revisao?lang={language}")
        assert (await act(reviewer, "revisao.aprovar", vaga=id)).status_code == 303
        vacancy = (await one(painel.database, "SELECT id FROM vagas"))["id"]
        page = await reviewer.get(f"/painel/revisao?vaga={vacancy}&lang={language}")
    assert [key for key in keys if f"</kbd> {key}<" not in before.text] == []
    assert [key for key in keys if f"</kbd> {key}<" in page.text] == []
    assert ('id="campo-hospital"' in before.text, 'id="campo-' in page.text) == (True, False)
    shown = text_of(page)
    assert [each for each in ("Vila Inventada", period, value) if each not in shown] == []


@pytest.mark.parametrize(
    ("language", "warning"), [("pt-BR", "Não é possível desfazer a rejeição"), ("en", "A rejection cannot be undone")]
)
async def test_quick_reason_asks_for_a_confirmation(painel: Painel, language: str, warning: str) -> None:
    (id,) = await painel.offers(1)
    async with painel.browser(*OPERATOR) as operator:
        page = await operator.get(f"/painel/revisao?lang={language}")
        (link,) = [part.split('"')[0] for part in page.text.split('href="') if 'data-key="1"' in part.partition(">")[0]]
        form = await operator.get(html.unescape(link))
        assert (await one(painel.database, "SELECT status FROM vagas_grupo"))["status"] == "aguardando_revisao"
    assert "/acoes/revisao.rejeitar?" in link
    assert (warning in text_of(form), f'name="vaga" value="{id}"' in form.text) == (True, True)
    assert re.search(r'name="motivo" type="text" value="[^"]+"', form.text)


@pytest.mark.parametrize(
    ("language", "headings"),
    [("pt-BR", ("Próxima vaga", "Próximas 2 vagas")), ("en", ("Next vacancy", "Next 2 vacancies"))],
)
async def test_list_of_the_next_vacancies_says_how_many_it_shows(
    painel: Painel, monkeypatch: pytest.MonkeyPatch, language: str, headings: tuple[str, str]
) -> None:
    await painel.offers(4)
    async with painel.browser(*READER) as reader:
        for ahead, heading in enumerate(headings, start=1):
            monkeypatch.setattr("app.web.screens.revisao.AHEAD", ahead)
            assert heading in text_of(await reader.get(f"/painel/revisao?lang={language}"))


async def test_empty_queue_says_what_to_do_first_in_both_languages(painel: Painel) -> None:
    async with painel.browser(*READER) as reader:
        assert "Nenhuma vaga para revisar" in text_of(await reader.get("/painel/revisao"))
        page = await reader.get("/painel/revisao?lang=en")
    assert "No vacancy to review" in text_of(page)
    assert "batuta grupos status" in text_of(page)


async def test_actions_are_offered_only_to_operators(painel: Painel) -> None:
    (id,) = await painel.offers(1)
    async with painel.browser(*READER) as reader:
        page = await reader.get("/painel/revisao")
        assert 'data-key="a"' not in page.text
        assert (await reader.get("/painel/acoes/revisao.aprovar", params={"vaga": id})).status_code == 403
        assert (await reader.post("/painel/acoes/revisao.aprovar", data={"vaga": id})).status_code == 403
    assert (await one(painel.database, "SELECT status FROM vagas_grupo"))["status"] == "aguardando_revisao"
