"""The boards on the dashboard's first page: sending, group messages and appointments."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from app.composition.julia import julia_of
from app.contexts.grupos.fila import Estagio
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from app.web.boards import appointments_board, groups_board, sending_board
from batuta.engine.batuta import Batuta
from batuta.extension import Tone
from batuta.testing import FakeClock
from tests.julia.agendamentos.sheets import HEADER, patient, xlsx
from tests.julia.tables import PHONE, add_chip, add_doctor, rows, write


@pytest.fixture
def settings(julia_url: str) -> Settings:
    return Settings(database_url=julia_url, evolution_api_url="http://127.0.0.1:1")


@pytest.fixture
async def work(settings: Settings, clock: FakeClock) -> AsyncIterator[Batuta]:
    async with build(settings, clock).work as work:
        yield work


async def _campaign(work: Batuta, id: int, status: str, sent: int) -> None:
    await write(
        work.database,
        "INSERT INTO campanhas (id, nome_template, tipo_campanha, status, total_destinatarios, enviados, entregues, respondidos,"
        " created_at, updated_at) VALUES (:id, :nome, 'oferta', :status, 40, :sent, 3, 1, :now, :now)",
        id=id,
        nome=f"campanha {id}",
        status=status,
        sent=sent,
        now=work.clock.now(),
    )


async def test_empty_system_shows_no_problem(work: Batuta, settings: Settings) -> None:
    shown = await sending_board(julia_of(work))
    assert {figure.says.partition(".")[2]: figure.tone for figure in shown.figures} == {
        "na_fila": Tone.WAITING,
        "agendadas": Tone.WAITING,
        "mais_antiga": Tone.WAITING,
        "na_hora": Tone.OK,
        "no_dia": Tone.OK,
        "em_duvida": Tone.WAITING,
        "para_decisao": Tone.WAITING,
        "pendencias": Tone.WAITING,
        "optouts_provaveis": Tone.WAITING,
        "chips": Tone.WAITING,
    }
    assert shown.courses == []


@pytest.mark.parametrize(
    ("changes", "hour", "note"),
    [({}, 15, ""), ({}, 3, "quadro.fora_do_horario"), ({"demo": True}, 3, "quadro.demonstracao")],
)
async def test_board_says_whether_julia_may_start_conversations(
    settings: Settings, clock: FakeClock, changes: dict[str, bool], hour: int, note: str
) -> None:
    clock.step(datetime(2026, 3, 11, hour, tzinfo=UTC) - clock.now())
    async with build(settings.model_copy(update=changes), clock).work as work:
        assert (await sending_board(julia_of(work))).note == note


async def test_board_shows_waiting_messages_doubts_chips_and_campaigns(work: Batuta, settings: Settings) -> None:
    doctor, now = await add_doctor(work.database), work.clock.now()
    await add_chip(work.database)
    await _campaign(work, 1, "concluida", 40)
    await _campaign(work, 2, "pausada", 12)
    for n, (doubt, since) in enumerate([(None, None), (None, None), ("unknown", now), ("parked", now)]):
        await write(
            work.database,
            "INSERT INTO fila_mensagens"
            " (id, cliente_id, telefone_destino, conteudo, agendar_para, envio_estado, envio_desde, created_at)"
            " VALUES (:id, :doctor, :phone, 'x', :now, :doubt, :since, :now)",
            id=f"00000000-0000-7000-8000-{n:012d}",
            doctor=doctor,
            phone=PHONE,
            doubt=doubt,
            since=since,
            now=now,
        )
    shown = await sending_board(julia_of(work))
    values = {figure.says.partition(".")[2]: (figure.value, figure.of) for figure in shown.figures}
    assert values["na_fila"] == (2, None)
    assert (values["em_duvida"], values["para_decisao"]) == ((1, None), (1, None))
    assert values["na_hora"] == (0, settings.rate_limit_per_hour)
    assert values["chips"] == (0, 1)  # the chip has no permission yet
    assert [(each.name, each.tone, each.done, each.of, each.cells) for each in shown.courses] == [
        ("campanha 2", Tone.HELD, 12, 40, [3, 1]),
        ("campanha 1", Tone.OK, 40, 40, [3, 1]),
    ]
    assert len(await rows(work.database, "SELECT id FROM fila_mensagens")) == 4


@pytest.mark.parametrize(("language", "title"), [("pt-BR", "Filas e envios"), ("en", "Queues and sends")])
async def test_first_page_shows_the_board_in_both_languages(
    work: Batuta, settings: Settings, language: str, title: str
) -> None:
    await _campaign(work, 1, "ativa", 12)
    transport = httpx2.ASGITransport(app=create_app(julia_of(work)), client=("127.0.0.1", 5000))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        page = await client.get("/painel", headers={"Accept": "text/html", "Accept-Language": language})
    assert page.status_code == 200
    assert title in page.text
    assert '<a href="/painel/campanhas/1">campanha 1</a>' in page.text


async def test_campaign_without_recipients_is_not_shown_as_success(work: Batuta, settings: Settings) -> None:
    await _campaign(work, 1, "concluida", 0)
    await write(work.database, "UPDATE campanhas SET total_destinatarios = 0")
    (course,) = (await sending_board(julia_of(work))).courses
    assert (course.state, course.tone) == ("estado.campanha.ninguem", Tone.DEGRADED)


async def test_board_shows_group_messages_and_pending_reviews(work: Batuta, settings: Settings) -> None:
    now = work.clock.now()
    for texto in (
        "a chave do carro azul sumiu ontem cedo",
        "Vaga de plantão: pediatria, amanhã, noturno, R$ 1.500, chamar no pv",
    ):
        async with work.database.transaction() as transaction:
            await julia_of(work).groups.grupos.ensaiar(transaction, texto, now.date(), now=now)
        await write(work.database, "UPDATE grupos_whatsapp SET tipo = 'vagas'")
        await write(work.database, "UPDATE mensagens_grupo SET message_id = id")
        for stage in Estagio:
            await work.work_once(stage, 10)
    shown = await groups_board(julia_of(work))
    assert {figure.says.rpartition(".")[2]: (figure.value, figure.of, figure.tone) for figure in shown.figures} == {
        "descartadas": (1, 2, Tone.WAITING),
        "para_revisao": (1, None, Tone.HELD),
        "avisos": (0, None, Tone.WAITING),
        "abertas": (0, None, Tone.OK),
    }


async def test_board_shows_reading_of_appointments_and_progress_of_files(work: Batuta, settings: Settings) -> None:
    assert (await appointments_board(julia_of(work))).courses == []
    importing = julia_of(work).appointments.importacao
    await importing.importar(xlsx([HEADER, patient(1), patient(2)]), "agenda.xlsx", by="ana")
    await write(
        work.database,
        "INSERT INTO importacoes (id, arquivo, sha256, status, total_rows, valid_rows, linha, created_at, updated_at)"
        " VALUES ('00000000-0000-7000-8000-000000000009', 'outra.xlsx', 'x', 'em_andamento', 10, 4, 5, :later, :later)",
        later=work.clock.now() + timedelta(seconds=1),
    )
    shown = await appointments_board(julia_of(work))
    assert [(figure.says.rpartition(".")[2], figure.value) for figure in shown.figures] == [
        ("pending", 2), ("processing", 0), ("completed", 0), ("failed", 0),
    ]  # fmt: skip
    assert [(each.tone, each.done, each.of) for each in shown.courses] == [(Tone.RUNNING, 4, 10), (Tone.OK, 2, 2)]
    assert shown.courses[0].name == "***.xlsx 00000009"


async def test_first_page_shows_each_board_under_its_own_title(work: Batuta, settings: Settings) -> None:
    transport = httpx2.ASGITransport(app=create_app(julia_of(work)), client=("127.0.0.1", 5000))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        page = (await client.get("/painel", headers={"Accept-Language": "pt-BR"})).text
    for place, to, title in (
        ("quadro-2", "/revisao", "Grupos"),
        ("quadro-3", "/vagas", "Vagas"),
        ("quadro-4", "/agendamentos", "Agendamentos"),
        ("quadro-6", "/conversas", "Atendimento humano"),
    ):
        assert f'<h2 id="{place}-titulo"><a href="/painel{to}">{title}</a></h2>' in page
    assert page.count('id="quadro"') == 1
