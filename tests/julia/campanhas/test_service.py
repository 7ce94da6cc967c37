"""Campaigns on both databases: audience and exclusions, start, stop and end, and correct counts of sent messages."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.composition.julia import julia_of
from app.contexts.campanhas.inicio import Inicio, Resultado
from app.contexts.campanhas.model import (
    CampanhaInexistente,
    CampanhaNaoPode,
    MedicosDesconhecidos,
    PublicoInexistente,
    PublicoVazio,
    StatusDaCampanha,
    TipoDeCampanha,
)
from app.contexts.campanhas.relato import progresso_em_palavras
from app.contexts.campanhas.service import Campanhas, NovaCampanha
from app.contexts.comum.telefone import Address
from app.contexts.comum.whatsapp import Entrega, NotOnWhatsApp, Unknown
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.webhooks.api import Recebida, Recibo
from app.main import build
from app.settings import Settings
from batuta import Batch
from batuta.engine.batuta import Batuta
from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.leases import LeaseHolder
from batuta.queue.outcome import Done, Partial, Skipped
from batuta.queue.worker.worker import Worker, WorkerPolicy
from batuta.receive.endpoints import JobCall
from batuta.supervise.loop import Wakeup
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.clock import settle
from tests.julia.line import ScriptedLine
from tests.julia.tables import add_chip, one, rows, sending_through, write

# A Wednesday, eleven o'clock in São Paulo: within the morning's window.
OPEN = datetime(2026, 3, 11, 14, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
LIMITS = {"rate_limit_per_hour": 1000, "rate_limit_per_day": 1000, "rate_limit_per_doctor_hour": 100}
TRUSTED = (
    "UPDATE chips SET trust_score = 90, pode_prospectar = TRUE, pode_followup = TRUE, pode_responder = TRUE,"
    " limite_hora = 1000, limite_dia = 1000, delay_minimo_segundos = 0"
)
TEXT = "Olá, {nome}."


class Office:
    def __init__(self, work: Batuta, clock: FakeClock, settings: Settings) -> None:
        self.work, self.clock, self.database = work, clock, work.database
        self.line = ScriptedLine(clock)
        self.campanhas: Campanhas = julia_of(work).campaigns.campanhas
        self.inicio: Inicio = julia_of(work).campaigns.inicio
        self.conversas = julia_of(work).messages.conversas
        made = sending_through(work, settings, self.line)
        handler = made.remetente.handler()
        self.reconciler, self.store = made.reconciliador, work.queues[FILA_MENSAGENS.name]
        lease_holder = LeaseHolder(owner="office", lease=timedelta(minutes=5))
        self.worker = Worker(
            FILA_MENSAGENS.name,
            self.store,
            lambda _: handler,
            lease_holder,
            WorkerPolicy(limit=4),
            clock,
            EventRecorder(),
        )

    async def doctor(self, n: int, **columns: Any) -> str:
        id = f"00000000-0000-7000-8000-{n:012d}"
        known = {
            "primeiro_nome": f"Pessoa{n}",
            "especialidade": "Pediatria",
            "cidade": "São Paulo",
            "estado": "SP",
            **columns,
        }
        names = ["id", "telefone", "created_at", *known]
        await write(
            self.database,
            f"INSERT INTO clientes ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})",
            id=id,
            telefone=f"55119000{n:05d}",
            created_at=OPEN - 90 * DAY,
            **known,
        )
        return id

    async def state(self, doctor: str, **columns: Any) -> None:
        names = ["cliente_id", "updated_at", *columns]
        await write(
            self.database,
            f"INSERT INTO doctor_state ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})",
            cliente_id=doctor,
            updated_at=OPEN,
            **columns,
        )

    async def campaign(
        self,
        tipo: TipoDeCampanha = TipoDeCampanha.DISCOVERY,
        corpo: str = TEXT,
        *,
        at: datetime | None = None,
        **filters: Any,
    ) -> int:
        nova = NovaCampanha(nome="teste", tipo=tipo, corpo=corpo, audience_filters=filters)
        id = await self.campanhas.criar(nova, by="ana")
        await self.campanhas.agendar(id, at, by="ana")
        return id

    async def old_campaign(self) -> int:
        nova = NovaCampanha(nome="antiga", tipo=TipoDeCampanha.OFERTA, corpo="x")
        return await self.campanhas.criar(nova, by="ana")

    async def starts(self) -> Resultado:
        return await self.inicio.passar()

    async def ends(self, id: int) -> bool:
        """Let the engine look for batches that have ended. Return whether the campaign is now complete."""
        await self.work.task_ends.tick()
        return await self.status(id) == "concluida"

    async def works(self) -> None:
        await self.worker.once(1000)
        await settle()

    async def why(self, id: int) -> dict[str, str | None]:
        found = await rows(
            self.database, "SELECT cliente_id, motivo FROM campanha_destinatarios WHERE campanha_id = :id", id=id
        )
        return {row["cliente_id"]: row["motivo"] for row in found}

    async def status(self, id: int) -> str:
        return str((await one(self.database, "SELECT status FROM campanhas WHERE id = :id", id=id))["status"])

    async def queued(self, id: int) -> list[dict[str, Any]]:
        return await rows(
            self.database, "SELECT * FROM fila_mensagens WHERE campanha_id = :id ORDER BY telefone_destino", id=id
        )


@pytest.fixture
async def office(database_url: str, clock: FakeClock) -> AsyncIterator[Office]:
    clock.step(OPEN - clock.now())
    settings = Settings(database_url=database_url, evolution_api_url="http://127.0.0.1:1", **LIMITS)
    async with build(settings, clock=clock).work as work:
        await add_chip(work.database, "julia-sim")
        await write(work.database, TRUSTED)
        yield Office(work, clock, settings)


async def test_campaign_reaches_each_doctor_once_and_counts_sent_messages(office: Office) -> None:
    doctors = [await office.doctor(n) for n in range(3)]
    id = await office.campaign()
    assert await office.status(id) == "agendada"
    assert (await office.starts()).iniciadas == 1
    waiting = await office.queued(id)
    assert [row["conteudo"] for row in waiting] == ["Olá, Pessoa0.", "Olá, Pessoa1.", "Olá, Pessoa2."]
    assert {row["chave"] for row in waiting} == {f"campanha:{id}:{doctor}" for doctor in doctors}
    assert {(row["tipo"], row["prioridade"], row["metadata"]["campanha_id"]) for row in waiting} == {
        ("campanha", 3, str(id))
    }
    campaign = await one(
        office.database, "SELECT status, total_destinatarios, enviados FROM campanhas WHERE id = :id", id=id
    )
    # a queued message does not count as sent
    assert campaign == {"status": "ativa", "total_destinatarios": 3, "enviados": 0}
    await office.works()
    assert sorted(each.texto for each in office.line.receipts) == [row["conteudo"] for row in waiting]
    assert await office.status(id) == "ativa"
    assert await office.ends(id)
    campaign = await one(office.database, "SELECT status, enviados, concluida_em FROM campanhas WHERE id = :id", id=id)
    assert campaign == {"status": "concluida", "enviados": 3, "concluida_em": office.clock.now()}
    await office.starts()
    assert len(await office.queued(id)) == 3


async def test_every_excluded_doctor_has_a_reason(office: Office) -> None:
    now = OPEN
    expected: dict[str, str | None] = {}
    expected[await office.doctor(0)] = None
    expected[await office.doctor(1, opt_out=True)] = "optout"
    expected[await office.doctor(2, opted_out=True)] = "optout"
    expected[await office.doctor(3, status="optout")] = "optout"
    expected[stopped := await office.doctor(4)] = "optout"
    await office.state(stopped, permission_state="opted_out")
    expected[await office.doctor(5)] = "optout"
    await write(
        office.database,
        "INSERT INTO external_contacts (telefone, permission_state, created_at, updated_at)"
        " VALUES ('5511900000005', 'opted_out', :now, :now)",
        now=now,
    )
    expected[await office.doctor(6, status_telefone="invalido")] = "telefone_invalido"
    expected[await office.doctor(7, pressure_score_atual=51)] = "pressao_alta"
    expected[await office.doctor(8, primeiro_nome=None)] = "sem_nome"
    expected[cooling := await office.doctor(9)] = "esfriando"
    await office.state(cooling, permission_state="cooling_off", cooling_off_until=now + DAY)
    expected[later := await office.doctor(10)] = "proximo_contato"
    await office.state(later, next_allowed_at=now + DAY)
    expected[talking := await office.doctor(11)] = "conversa_agora"
    await office.state(talking, last_inbound_at=now - 10 * MINUTE)
    expected[answered := await office.doctor(12)] = "respondeu_ha_pouco"
    await office.state(answered, last_inbound_at=now - 3 * DAY)
    expected[human := await office.doctor(13)] = "conversa_humana"
    await write(
        office.database,
        "INSERT INTO conversations (id, cliente_id, controlled_by, status, created_at, updated_at)"
        " VALUES (:id, :id, 'human', 'escalated', :now, :now)",
        id=human,
        now=now,
    )
    expected[often := await office.doctor(14)] = "limite_contatos"
    for n in range(5):
        await write(
            office.database,
            "INSERT INTO fila_mensagens (id, cliente_id, telefone_destino, conteudo, tipo, status, agendar_para, enviada_em,"
            " created_at) VALUES (:id, :doctor, 'x', 'x', 'followup_1', 'enviada', :at, :at, :at)",
            id=f"00000000-0000-7000-9000-{n:012d}",
            doctor=often,
            at=now - 2 * DAY,
        )
    expected[lately := await office.doctor(15)] = "outra_campanha"
    expected[written := await office.doctor(17)] = "contatado_ha_pouco"
    await office.state(written, last_outbound_at=now - 5 * DAY)
    expected[silent := await office.doctor(16)] = "nunca_respondeu"
    for doctor, ago in ((lately, 2 * DAY), (silent, 20 * DAY), (silent, 40 * DAY)):
        await write(
            office.database,
            "INSERT INTO campaign_contact_history (cliente_id, campaign_id, sent_at) VALUES (:doctor, :campaign, :at)",
            doctor=doctor,
            campaign=await office.old_campaign(),
            at=now - ago,
        )
    id = await office.campaign()
    await office.starts()
    assert await office.why(id) == expected
    progress = await office.campanhas.progresso(id)
    assert progress.excluidos["optout"] == 5
    assert sum(progress.excluidos.values()) == len(expected) - 1
    assert progress.campanha["total_destinatarios"] == 1


@pytest.mark.parametrize("said_by", ["5511990000001", "551190000001"])
async def test_opt_out_before_registration_excludes_with_or_without_the_ninth_digit(
    office: Office, said_by: str
) -> None:
    known_as = {"5511990000001": "551190000001", "551190000001": "5511990000001"}[said_by]
    doctor, other = await office.doctor(1), await office.doctor(2)
    await write(office.database, "UPDATE clientes SET telefone = :it WHERE id = :id", it=known_as, id=doctor)
    await write(
        office.database,
        "INSERT INTO external_contacts (telefone, permission_state, created_at, updated_at)"
        " VALUES (:telefone, 'opted_out', :now, :now)",
        telefone=said_by,
        now=OPEN,
    )
    id = await office.campaign()
    await office.starts()
    assert await office.why(id) == {doctor: "optout", other: None}


async def test_every_specialty_and_region_of_the_filter_counts_and_the_limit_holds(office: Office) -> None:
    kept = [
        await office.doctor(0, especialidade="Pediatria", cidade="Campinas", estado="SP"),
        await office.doctor(1, especialidade="Clínica médica", cidade="Niterói", estado="RJ"),
        await office.doctor(2, especialidade="Clínica médica", cidade="Santos", estado="SP"),
    ]
    await office.doctor(3, especialidade="Ortopedia")
    await office.doctor(4, especialidade="Pediatria", cidade="Recife", estado="PE")
    await office.doctor(5, especialidade=None)
    id = await office.campaign(
        especialidades=["pediatria", "clinica medica"], regioes=["SP", "niteroi"], quantidade_alvo=2
    )
    await office.starts()
    assert await office.why(id) == {kept[0]: None, kept[1]: None, kept[2]: "acima_do_limite"}


async def test_named_doctors_are_the_whole_audience_and_unknown_ids_are_refused(office: Office) -> None:
    first, _, third = [await office.doctor(n) for n in range(3)]
    await write(office.database, "UPDATE clientes SET deleted_at = :now WHERE id = :id", now=OPEN, id=third)
    id = await office.campaign(clientes_especificos=[first, third])
    await office.starts()
    assert await office.why(id) == {first: None, third: "cadastro_removido"}
    with pytest.raises(MedicosDesconhecidos):
        await office.campaign(clientes_especificos=["00000000-0000-7000-8000-999999999999"])


async def test_campaign_without_eligible_doctors_ends_and_says_so(office: Office) -> None:
    doctor = await office.doctor(1)
    id = await office.campaign()
    await write(office.database, "UPDATE clientes SET opt_out = TRUE WHERE id = :id", id=doctor)
    assert (await office.starts()).iniciadas == 1
    assert await office.ends(id)
    progress = await office.campanhas.progresso(id)
    assert (progress.campanha["status"], progress.enfileiradas, progress.excluidos) == ("concluida", 0, {"optout": 1})
    assert progresso_em_palavras(progress, office.work.zone)["ninguem_recebeu"] is True


async def test_campaign_without_recipients_is_scheduled_once_the_reasons_pass(office: Office) -> None:
    talking, waiting = [await office.doctor(n) for n in range(2)]
    await office.state(talking, last_inbound_at=OPEN - 8 * DAY)
    first = await office.campaign(clientes_especificos=[waiting])
    await office.starts()
    await write(office.database, "UPDATE doctor_state SET last_inbound_at = :now", now=OPEN)
    nova = NovaCampanha(nome="teste", tipo=TipoDeCampanha.DISCOVERY, corpo=TEXT)
    id = await office.campanhas.criar(nova, by="ana")
    with pytest.raises(PublicoVazio, match=r"\(conversa_agora 1, outra_campanha 1\)"):
        await office.campanhas.agendar(id, None, by="ana")
    assert (await office.status(id), await office.why(id)) == ("rascunho", {})
    # The audience is computed for the scheduled instant. By then the conversation is over and the waiting message has
    # been sent.
    made = await office.campanhas.agendar(id, OPEN + 10 * DAY, by="ana")
    assert (made.status, made.destinatarios, made.excluidos) == (StatusDaCampanha.AGENDADA, 2, {})
    assert await office.status(first) == "ativa"


async def test_campaign_that_matches_no_doctor_is_not_scheduled(office: Office) -> None:
    await office.doctor(1)
    with pytest.raises(PublicoInexistente, match="no doctor fits"):
        await office.campaign(especialidades=["Pedreiro"])


async def test_two_campaigns_at_once_do_not_both_take_a_doctor(office: Office) -> None:
    doctor = await office.doctor(0)
    first, second = await office.campaign(), await office.campaign()
    await office.starts()
    assert await office.why(first) == {doctor: None}
    assert await office.why(second) == {doctor: "outra_campanha"}


async def test_crash_at_any_step_resumes_there_and_writes_to_no_doctor_twice(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.contexts.campanhas.inicio.BATCH", 3)
    for n in range(10):
        await office.doctor(n)
    id = await office.campaign(quantidade_alvo=8)
    ours, put = type(office.inicio)._is_ours, office.store.put
    turns = iter(range(100))

    async def dies(*arguments: Any, **named: Any) -> Any:
        if next(turns) % 2:
            raise StoreUnavailable(where="-", why="a crash")
        return await ours(office.inicio, *arguments, **named)

    async def dies_putting(*arguments: Any, **named: Any) -> Any:
        put_ids = await put(*arguments, **named)
        if next(turns) % 2:
            raise StoreUnavailable(where="-", why="a crash")
        return put_ids

    monkeypatch.setattr(office.inicio, "_is_ours", dies)
    monkeypatch.setattr(office.store, "put", dies_putting)
    crashes = 0
    for _ in range(20):
        try:
            await office.starts()
        except StoreUnavailable:
            crashes += 1
    assert crashes > 2
    why = await office.why(id)
    assert (len(why), list(why.values()).count(None), list(why.values()).count("acima_do_limite")) == (10, 8, 2)
    assert len({row["cliente_id"] for row in await office.queued(id)}) == len(await office.queued(id)) == 8
    campaign = await one(office.database, "SELECT status, total_destinatarios FROM campanhas WHERE id = :id", id=id)
    assert campaign == {"status": "ativa", "total_destinatarios": 8}


async def test_a_thousand_messages_are_queued_in_batches_of_five_hundred(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(1100):
        await office.doctor(n)
    sizes, put = [], office.store.put

    async def counted(items: Any, **named: Any) -> Any:
        sizes.append(len(items))
        return await put(items, **named)

    monkeypatch.setattr(office.store, "put", counted)
    id = await office.campaign(quantidade_alvo=1050)
    assert (await office.starts()).enfileiradas == 1050
    assert sizes == [500, 500, 50]
    assert len(await office.queued(id)) == 1050


async def test_unknown_placeholder_added_by_hand_is_refused_and_never_sent(office: Office) -> None:
    await office.doctor(0)
    id = await office.campaign()
    await write(office.database, "UPDATE campanhas SET corpo = 'Olá, {hospital}'")
    answer = await _job(office)
    assert isinstance(answer, Partial)
    assert str(id) in answer.reason
    row = await one(office.database, "SELECT status, erro FROM campanhas WHERE id = :id", id=id)
    assert row["status"] == "pausada"
    assert "hospital" in row["erro"]
    assert await office.queued(id) == []
    await write(office.database, "UPDATE campanhas SET corpo = 'Olá, {nome}'")
    assert await office.campanhas.retomar(id, by="ana") is StatusDaCampanha.AGENDADA
    await office.starts()
    assert len(await office.queued(id)) == 1


async def test_pause_holds_queued_messages_at_once_and_resume_releases_them(office: Office) -> None:
    for n in range(3):
        await office.doctor(n)
    id = await office.campaign()
    await office.starts()
    await office.campanhas.pausar(id, by="ana")
    await office.works()
    assert office.line.receipts == []
    assert (await office.campanhas.progresso(id)).na_fila == 3
    await office.starts()
    assert not await office.ends(id)
    assert await office.campanhas.retomar(id, by="bia") is StatusDaCampanha.ATIVA
    await office.works()  # no time has passed
    assert len(office.line.receipts) == 3
    log = await rows(office.database, "SELECT actor, action, subject FROM audit_log ORDER BY at, id")
    assert [(each["actor"], each["action"]) for each in log] == [
        ("ana", "campanha.criar"),
        ("ana", "campanha.agendar"),
        ("ana", "campanha.pausar"),
        ("bia", "campanha.retomar"),
    ]
    assert {each["subject"] for each in log} == {f"campanha:{id}"}


async def test_resume_wakes_senders_here_and_in_other_processes(office: Office) -> None:
    """When a campaign is resumed, the senders are woken, so they do not wait for their next poll."""
    await office.doctor(0)
    id = await office.campaign()
    await office.starts()
    await office.campanhas.pausar(id, by="ana")
    here, heard = Wakeup(), asyncio.Event()
    office.work.wakeups.add(FILA_MENSAGENS.name, here)
    elsewhere = office.work.connections.aside()
    await elsewhere.open()
    listener = await elsewhere.listen(lambda name: heard.set() if name in (None, FILA_MENSAGENS.name) else None)
    try:
        await listener.probe()
        heard.clear()
        await office.campanhas.retomar(id, by="ana")
        await asyncio.wait_for(here.wait(), 30)
        await listener.probe()
        assert await asyncio.wait_for(heard.wait(), 30)
    finally:
        await listener.close()
        await elsewhere.close()


async def test_resume_does_not_release_messages_that_wait_for_another_reason(office: Office) -> None:
    await office.doctor(0)
    id = await office.campaign()
    await office.starts()
    later = OPEN + HOUR
    await write(office.database, "UPDATE fila_mensagens SET agendar_para = :at, erro = 'quiet hours'", at=later)
    await office.campanhas.pausar(id, by="ana")
    await office.campanhas.retomar(id, by="ana")
    assert [row["agendar_para"] for row in await office.queued(id)] == [later]


async def test_cancel_ends_waiting_messages_and_asks_those_in_progress_to_stop(office: Office) -> None:
    for n in range(3):
        await office.doctor(n)
    id = await office.campaign()
    await office.starts()
    (held,) = (await office.store.settle_and_claim([], LeaseHolder(owner="other", lease=MINUTE), 1)).leases
    assert await office.campanhas.cancelar(id, by="ana") is StatusDaCampanha.CANCELADA
    found = {row["id"]: (row["status"], row["outcome"], row["cancelamento_pedido"]) for row in await office.queued(id)}
    assert found.pop(held.id) == ("processando", None, True)
    assert set(found.values()) == {("cancelada", "FAILED_EXPIRED", False)}
    await office.works()
    assert office.line.receipts == []
    with pytest.raises(CampanhaNaoPode):
        await office.campanhas.retomar(id, by="ana")


async def test_cancel_during_the_start_leaves_no_message_waiting(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.contexts.campanhas.inicio.BATCH", 2)
    for n in range(5):
        await office.doctor(n)
    id = await office.campaign()
    consider = office.inicio._consider

    async def cancelled_meanwhile(campanha: Any) -> bool:
        done = await consider(campanha)
        await office.campanhas.cancelar(id, by="ana")
        return done

    monkeypatch.setattr(office.inicio, "_consider", cancelled_meanwhile)
    await office.starts()
    assert await office.queued(id) == []
    assert set((await office.why(id)).values()) == {"campanha_cancelada"}


async def test_campaign_is_not_concluded_while_a_message_is_in_doubt(office: Office) -> None:
    await office.doctor(0)
    await office.doctor(1)
    id = await office.campaign()
    await office.starts()
    office.line.answers = [(Unknown("timeout"), True), (NotOnWhatsApp(), False)]
    await office.works()
    await office.starts()
    assert not await office.ends(id)
    progress = await office.campanhas.progresso(id)
    assert (progress.em_duvida, progress.na_fila, progress.erros) == (1, 1, {"FAILED_VALIDATION": 1})
    await office.clock.advance(3 * MINUTE)
    await office.reconciler.look()
    assert await office.ends(id)
    assert (await office.campanhas.progresso(id)).campanha["enviados"] == 1


async def _batch(office: Office, id: int) -> Batch:
    row = await one(office.database, "SELECT lote_id FROM campanhas WHERE id = :id", id=id)
    return await office.work.batches.get(str(row["lote_id"]))


async def test_a_campaign_is_a_batch_that_counts_its_messages(office: Office) -> None:
    for n in range(4):
        await office.doctor(n)
    id = await office.campaign()
    await office.starts()
    batch = await _batch(office, id)
    progress = await batch.progress()
    assert (progress.name, progress.state, progress.total, progress.waiting) == (f"campanha {id}", "running", 4, 4)
    assert progresso_em_palavras(await office.campanhas.progresso(id), office.work.zone)["lote"] == batch.id
    await write(office.database, "UPDATE clientes SET opted_out = TRUE WHERE telefone = '5511900000003'")
    office.line.answers = [(NotOnWhatsApp(), False)]
    await office.works()
    assert (await batch.progress()).state == "running"
    assert await office.ends(id)
    progress = await batch.progress()
    assert (progress.state, progress.succeeded, progress.failed, progress.cancelled) == ("ended", 2, 1, 1)
    events = await rows(office.database, "SELECT id FROM business_events WHERE event_type = 'campanha_concluida'")
    await office.ends(id)
    await office.starts()
    assert len(events) == 1
    assert (
        await rows(office.database, "SELECT id FROM business_events WHERE event_type = 'campanha_concluida'") == events
    )


async def test_a_cancelled_batch_cancels_its_campaign(office: Office) -> None:
    for n in range(3):
        await office.doctor(n)
    id = await office.campaign()
    await office.starts()
    batch = await _batch(office, id)
    assert await batch.cancel("lista errada", by="ana")
    assert await office.status(id) == "cancelada"
    assert {row["status"] for row in await office.queued(id)} == {"cancelada"}
    assert not await office.ends(id)
    progress = await batch.progress()
    assert (progress.state, progress.cancelled) == ("cancelled", 3)
    with pytest.raises(CampanhaNaoPode):
        await office.campanhas.cancelar(id, by="ana")


async def test_a_cancelled_campaign_cancels_its_batch(office: Office) -> None:
    for n in range(3):
        await office.doctor(n)
    id = await office.campaign()
    await office.starts()
    assert await office.campanhas.cancelar(id, by="ana") is StatusDaCampanha.CANCELADA
    (noted,) = await rows(office.database, "SELECT after FROM audit_log WHERE action = 'campanha.cancelar'")
    assert noted["after"]["mensagens"] == 3
    assert not await office.ends(id)
    assert (await (await _batch(office, id)).progress()).state == "cancelled"


async def test_a_campaign_without_a_batch_gets_one_and_is_concluded(office: Office) -> None:
    """A campaign that was started by an older version has no batch. Julia creates a batch for it, so that the campaign
    can end.
    """
    going, stopped = [await office.campaign(clientes_especificos=[await office.doctor(n)]) for n in range(2)]
    await office.starts()
    await office.campanhas.pausar(stopped, by="ana")
    await write(office.database, "DELETE FROM batches")
    # Its messages are queued, so a text that the present rules would refuse must not pause it.
    await write(office.database, "UPDATE campanhas SET lote_id = NULL, corpo = NULL")
    await office.works()
    await office.starts()
    assert await office.ends(going)
    assert await office.campanhas.cancelar(stopped, by="ana") is StatusDaCampanha.CANCELADA
    assert [row["status"] for row in await office.queued(stopped)] == ["cancelada"]


async def test_message_held_by_a_long_pause_does_not_expire(office: Office) -> None:
    await office.doctor(0)
    id = await office.campaign()
    await office.starts()
    await office.campanhas.pausar(id, by="ana")
    await office.clock.advance(7 * DAY)
    await office.campanhas.retomar(id, by="ana")
    await office.works()
    assert [row["status"] for row in await office.queued(id)] == ["enviada"]


async def test_cancel_between_two_checks_prevents_the_start(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    await office.doctor(0)
    id = await office.campaign()
    rules = office.inicio._rules

    async def cancelled_meanwhile(*arguments: Any) -> Any:
        await office.campanhas.cancelar(id, by="ana")
        return await rules(*arguments)

    monkeypatch.setattr(office.inicio, "_rules", cancelled_meanwhile)
    assert (await office.starts()).iniciadas == 0
    assert (await office.status(id), await office.queued(id)) == ("cancelada", [])


async def test_campaign_is_not_concluded_while_a_failed_message_may_have_been_sent(office: Office) -> None:
    await office.doctor(0)
    id = await office.campaign()
    await office.starts()
    (row,) = await office.queued(id)
    assert row["devida_em"] == office.clock.now()  # the age counts from this instant
    await write(
        office.database,
        "UPDATE fila_mensagens SET status = 'erro', envio_estado = 'unknown', envio_desde = :at",
        at=OPEN,
    )
    await office.starts()
    assert not await office.ends(id)
    await write(office.database, "UPDATE fila_mensagens SET envio_estado = NULL, envio_desde = NULL")
    assert await office.ends(id)


async def test_messages_blocked_at_the_last_moment_are_counted_by_reason(office: Office) -> None:
    doctor = await office.doctor(0)
    id = await office.campaign()
    await office.starts()
    await write(office.database, "UPDATE clientes SET opted_out = TRUE WHERE id = :id", id=doctor)
    await office.works()
    assert await office.ends(id)
    progress = await office.campanhas.progresso(id)
    assert (progress.bloqueadas, progress.campanha["enviados"]) == ({"BLOCKED_OPTED_OUT": 1}, 0)
    assert progress.campanha["status"] == "concluida"
    (person,) = await office.campanhas.destinatarios(id, situacao=None, motivo=None, after=0, limit=10)
    assert (person["situacao"], person["status"], person["outcome"]) == (
        "enfileirado",
        "bloqueada",
        "BLOCKED_OPTED_OUT",
    )


async def _receipt(office: Office, message_id: str, entrega: Entrega) -> None:
    async with office.database.transaction() as transaction:
        fato = Recibo(instance="julia-sim", message_id=message_id, entrega=entrega)
        await office.conversas.recibo(transaction, fato, now=office.clock.now())


async def _writes(office: Office, n: int, id: str) -> None:
    phone = f"55119000{n:05d}"
    async with office.database.transaction() as transaction:
        fato = Recebida(
            instance="julia-sim",
            message_id=id,
            de=Address(f"{phone}@s.whatsapp.net", phone),
            nome=None,
            texto="quero saber mais",
            midia=None,
            em=office.clock.now(),
        )
        await office.conversas.recebida(transaction, fato, now=office.clock.now())


async def _counts(office: Office, id: int) -> tuple[int, int, int]:
    row = await one(office.database, "SELECT enviados, entregues, respondidos FROM campanhas WHERE id = :id", id=id)
    return row["enviados"], row["entregues"], row["respondidos"]


async def test_deliveries_and_answers_count_once_per_message_despite_repeats(office: Office) -> None:
    for n in range(3):
        await office.doctor(n)
    id = await office.campaign()
    await office.starts()
    await office.works()
    assert await _counts(office, id) == (3, 0, 0)
    first, second, _ = office.line.receipts
    for entrega in (Entrega.DELIVERED, Entrega.DELIVERED, Entrega.READ, Entrega.DELIVERED):
        await _receipt(office, first.id, entrega)
    await _receipt(office, second.id, Entrega.READ)
    await _receipt(office, "3EB0UNKNOWN", Entrega.READ)
    assert await _counts(office, id) == (3, 2, 0)
    await office.clock.advance(6 * DAY)
    await _writes(office, 1, "IN1")
    await _writes(office, 1, "IN1")
    await _writes(office, 1, "IN2")
    assert await _counts(office, id) == (3, 2, 1)
    await office.clock.advance(2 * DAY)
    await _writes(office, 2, "IN3")  # too late to be an answer
    assert await _counts(office, id) == (3, 2, 1)


async def test_answer_counts_for_the_last_campaign_that_reached_the_doctor(office: Office) -> None:
    await office.doctor(0)
    first = await office.campaign()
    await office.starts()
    await office.works()
    await office.clock.advance(5 * DAY)
    await write(office.database, "UPDATE doctor_state SET last_outbound_at = :then", then=OPEN - 30 * DAY)
    second = await office.campaign(corpo="Oi, {nome}")
    await office.starts()
    await office.works()
    await _writes(office, 0, "IN1")
    assert (await _counts(office, first), await _counts(office, second)) == ((1, 0, 0), (1, 0, 1))


async def test_receipt_that_precedes_the_answer_of_the_send_is_counted(office: Office) -> None:
    await office.doctor(0)
    id = await office.campaign()
    await office.starts()
    office.line.answers = [(Unknown("timeout"), True)]
    await office.works()
    await _receipt(office, office.line.receipts[0].id, Entrega.READ)
    await _writes(office, 0, "IN1")
    assert await _counts(office, id) == (0, 0, 0)
    await office.clock.advance(3 * MINUTE)
    await office.reconciler.look()
    assert await _counts(office, id) == (1, 1, 1)


async def _job(office: Office) -> Any:
    found = office.work.endpoints.find("processar-campanhas-agendadas")
    assert found is not None
    now = office.clock.now()
    return await found.handler(JobCall(key="k", params={}, started_at=now, deadline=now + 5 * MINUTE))


async def test_job_counts_started_campaigns_and_a_future_one_waits(office: Office) -> None:
    await office.doctor(0)
    later = await office.campaign(at=OPEN + HOUR)
    assert await _job(office) == Done(items=0, result=(await _job(office)).result)
    await office.clock.advance(HOUR)
    answer = await _job(office)
    assert isinstance(answer, Done)
    assert isinstance(answer.result, dict)
    assert (answer.items, answer.result["iniciadas"], answer.result["message"]) == (1, 1, "1 campanha(s) iniciada(s)")
    assert await office.status(later) == "ativa"


@pytest.mark.parametrize(("key", "on"), [("campaigns.enabled", False), ("safe_mode", True), ("pause.all", True)])
async def test_switch_holds_the_start_and_queued_messages(office: Office, key: str, on: bool) -> None:
    await office.doctor(0)
    await office.doctor(1, especialidade="Ortopedia")
    going = await office.campaign(especialidades=["Pediatria"])
    await office.starts()
    waiting = await office.campaign(especialidades=["Ortopedia"])
    await office.work.switches.set(key, on, by="ana", reason="-", now=office.clock.now())
    assert isinstance(await _job(office), Skipped)
    await office.works()
    assert (office.line.receipts, await office.status(waiting), await office.status(going)) == ([], "agendada", "ativa")
    await office.work.switches.set(key, not on, by="ana", reason="-", now=office.clock.now())
    assert (await office.starts()).iniciadas == 1


async def test_campaign_starts_only_in_the_window_of_its_type_under_janelas(office: Office) -> None:
    await office.work.controls.use_profile("janelas", by="ana", now=office.clock.now())
    await office.doctor(0)
    await office.doctor(1, especialidade="Ortopedia")
    morning = await office.campaign(TipoDeCampanha.REATIVACAO, especialidades=["Pediatria"])
    afternoon = await office.campaign(TipoDeCampanha.OFERTA, especialidades=["Ortopedia"])
    answer = await _job(office)
    assert isinstance(answer, Done)
    assert isinstance(answer.result, dict)
    assert answer.result["esperam"] == {str(afternoon): "outside the campaign's window"}
    seen = await office.campanhas.progresso(afternoon)
    assert progresso_em_palavras(seen, office.work.zone)["espera"] == "outside the campaign's window"
    assert (await office.status(morning), await office.status(afternoon)) == ("ativa", "agendada")
    await office.clock.advance(3 * HOUR)
    await office.starts()
    assert await office.status(afternoon) == "ativa"


async def test_worker_starts_a_due_campaign_between_fires_unless_its_job_is_held(
    office: Office,
) -> None:
    await office.work.controls.use_profile("janelas", by="ana", now=office.clock.now())
    await office.doctor(0)
    id = await office.campaign(at=OPEN + 10 * MINUTE)
    (loop,) = [loop for _, loop, _ in office.work._loops if loop.name == "campanhas"]
    await loop.tick()
    assert await office.status(id) == "agendada"
    await office.clock.advance(10 * MINUTE)
    await office.work.switches.set(
        "pause.job.processar_campanhas_manha", True, by="ana", reason="-", now=office.clock.now()
    )
    await loop.tick()
    assert await office.status(id) == "agendada"
    await office.work.switches.set(
        "pause.job.processar_campanhas_manha", False, by="ana", reason="-", now=office.clock.now()
    )
    await loop.tick()
    assert await office.status(id) == "ativa"


async def test_unknown_campaign_is_reported_as_unknown(office: Office) -> None:
    for act in (office.campanhas.pausar, office.campanhas.cancelar, office.campanhas.retomar):
        with pytest.raises(CampanhaInexistente):
            await act(4711, by="ana")
    with pytest.raises(CampanhaInexistente):
        await office.campanhas.progresso(4711)
