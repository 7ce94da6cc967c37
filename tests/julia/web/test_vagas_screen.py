"""Vacancies in the dashboard: create, announce, reserve, release, confirm and cancel, each with its history."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from batuta.testing import FakeClock
from tests.julia.tables import add_doctor, one, rows, write
from tests.julia.web.painel import EVERYTHING, OPERATOR, READER, SENDER, Painel, act, open_painel, text_of

NEW = {"hospital": "Hospital Fictício", "especialidade": "Pediatria", "data": "2026-01-20", "periodo": "noturno"}


@pytest.fixture
async def painel(database_url: str, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Painel]:
    async with open_painel(database_url, clock, tmp_path) as opened:
        yield opened


async def created(painel: Painel, **fields: str) -> str:
    async with painel.browser(*OPERATOR) as operator:
        done = await act(operator, "vaga.criar", **{**NEW, "novo_hospital": "sim", **fields})
        assert done.status_code == 303, text_of(done)
    return done.headers["location"].rpartition("/")[2]


async def status(painel: Painel, id: str) -> str:
    return str((await one(painel.database, "SELECT status FROM vagas WHERE id = :id", id=id))["status"])


async def test_vacancy_is_created_and_listed(painel: Painel) -> None:
    id = await created(painel, valor="1500")
    assert await status(painel, id) == "aberta"
    async with painel.browser(*READER) as reader:
        listed = await reader.get("/painel/vagas")
        shown = await reader.get(f"/painel/vagas/{id}")
        later = await reader.get("/painel/vagas?de=2026-02-01")
        other = await reader.get("/painel/vagas?situacao=reservada&origem=manual")
        unknown = id[:-1] + ("0" if id.endswith("f") else "f")
        missing = [(await reader.get(f"/painel/vagas/{each}")).status_code for each in ("x", unknown)]
    assert ("Hospital Fictício" in text_of(listed), "R$ 1.500,00" in text_of(listed)) == (True, True)
    assert "criada por uma pessoa" in text_of(shown)
    assert ("Nenhuma vaga aqui" in text_of(later), "Nenhuma vaga aqui" in text_of(other)) == (True, True)
    assert missing == [404, 404]
    assert [entry[1] for entry in await painel.audit("vaga.")] == ["vaga.criar"]


@pytest.mark.parametrize(("language", "period"), [("pt-BR", "noturno"), ("en", "night")])
async def test_period_of_a_vacancy_without_hours_is_in_the_language_of_the_page(
    painel: Painel, language: str, period: str
) -> None:
    id = await created(painel)
    await write(painel.database, "UPDATE vagas SET hora_inicio = NULL, hora_fim = NULL")
    async with painel.browser(*READER) as reader:
        for path in ("/painel/vagas", f"/painel/vagas/{id}"):
            assert period in text_of(await reader.get(f"{path}?lang={language}"))


@pytest.mark.parametrize(
    ("field", "value"), [("data", "amanhã"), ("hora_inicio", "25h"), ("valor", "1"), ("valor", "mil"), ("hospital", "")]
)
async def test_wrong_field_is_refused_on_the_form(painel: Painel, field: str, value: str) -> None:
    async with painel.browser(*OPERATOR) as operator:
        refused = await act(operator, "vaga.criar", **{**NEW, "novo_hospital": "sim", field: value})
    assert refused.status_code == 422
    assert not await rows(painel.database, "SELECT id FROM vagas")


async def test_vacancy_is_reserved_released_and_cancelled_with_reasons(painel: Painel) -> None:
    id = await created(painel)
    doctor = await add_doctor(painel.database, now=painel.clock.now())
    async with painel.browser(*OPERATOR) as operator:
        who = f"token pessoa{painel.said}"
        for verb, more, expected in (
            ("reservar", {"medico": doctor}, "reservada"),
            ("liberar", {"motivo": "Fulana de Teste desistiu"}, "aberta"),
            ("cancelar", {"motivo": "erro_de_cadastro"}, "cancelada"),
        ):
            done = await act(operator, f"vaga.{verb}", vaga=id, **more)
            assert (done.status_code, await status(painel, id)) == (303, expected), text_of(done)
        for verb, more in (
            ("reservar", {"medico": doctor}),
            ("reservar", {"medico": "x"}),
            ("cancelar", {"motivo": "x"}),
        ):
            assert (await act(operator, f"vaga.{verb}", vaga=id, **more)).status_code == 422
        page = await operator.get(f"/painel/vagas/{id}")
        assert "Fulana de Teste" not in page.text
    performed = [entry for entry in await painel.audit("vaga.") if entry[0] == who]
    assert [entry[1] for entry in performed[:3]] == ["vaga.reservar", "vaga.liberar", "vaga.cancelar"]
    assert {entry[2] for entry in performed} == {id}
    history = await rows(painel.database, "SELECT para, por FROM vagas_historico ORDER BY ordem")
    assert [(row["para"], row["por"]) for row in history][1:] == [
        ("reservada", who), ("aberta", who), ("cancelada", who)
    ]  # fmt: skip
    async with painel.browser(*EVERYTHING) as person:
        assert "Fulana de Teste desistiu" in (await person.get(f"/painel/vagas/{id}")).text
    assert [entry[1] for entry in await painel.audit("access.")] == ["access.unmask"]


async def test_form_offers_only_the_reasons_that_fit_the_state_of_the_vacancy(painel: Painel) -> None:
    id = await created(painel)
    async with painel.browser(*OPERATOR) as operator:
        open_form = (await operator.get(f"/painel/acoes/vaga.cancelar?vaga={id}")).text
        await write(painel.database, "UPDATE vagas SET status = 'pendente_confirmacao'")
        later_form = (await operator.get(f"/painel/acoes/vaga.cancelar?vaga={id}")).text
    reasons = ("erro_de_cadastro", "nao_compareceu")
    assert [f'value="{each}"' in open_form for each in reasons] == [True, False]
    assert [f'value="{each}"' in later_form for each in reasons] == [True, True]


async def test_shift_that_took_place_is_confirmed(painel: Painel) -> None:
    id = await created(painel)
    doctor = await add_doctor(painel.database, now=painel.clock.now())
    await write(
        painel.database, "UPDATE vagas SET status = 'pendente_confirmacao', cliente_id = :doctor WHERE id = :id",
        id=id, doctor=doctor,
    )  # fmt: skip
    async with painel.browser(*OPERATOR) as operator:
        assert "vaga.realizada" in (await operator.get(f"/painel/vagas/{id}")).text
        assert (await act(operator, "vaga.realizada", vaga=id)).status_code == 303
    assert await status(painel, id) == "realizada"


async def test_announcement_needs_the_scope_send_and_queues_offers(painel: Painel) -> None:
    id = await created(painel)
    await add_doctor(painel.database, now=painel.clock.now())
    await write(painel.database, "UPDATE clientes SET especialidade = 'Pediatria', status_telefone = 'validado'")
    async with painel.browser(*OPERATOR) as operator:
        assert "vaga.anunciar" not in (await operator.get(f"/painel/vagas/{id}")).text
        assert (await operator.post("/painel/acoes/vaga.anunciar", data={"vaga": id})).status_code == 403
    async with painel.browser(*SENDER) as sender:
        done = await act(sender, "vaga.anunciar", vaga=id, melhores="3")
        page = await sender.get(done.headers["location"])
        assert (await act(sender, "vaga.anunciar", vaga=id, melhores="999")).status_code == 422
    assert "Oferta na fila para 1 médico" in text_of(page)
    (message,) = await rows(painel.database, "SELECT tipo FROM fila_mensagens")
    assert (message["tipo"], await status(painel, id)) == ("oferta", "anunciada")


async def test_list_continues_after_the_last_row(painel: Painel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.web.screens.vagas.PAGE", 2)
    ids = [await created(painel, data=f"2026-01-2{n}") for n in range(3)]
    async with painel.browser(*READER) as reader:
        first = await reader.get("/painel/vagas")
        address = first.text.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
        second = await reader.get(address)
    shown = [[id for id in ids if f'href="/painel/vagas/{id}"' in page.text] for page in (first, second)]
    assert shown == [ids[:2], ids[2:]]
