"""Erasing one person's data, on both databases."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from app.composition.julia import julia_of
from app.contexts.comum.telefone import chave
from app.contexts.lgpd.pessoa import NumeroDeVarias, PessoaDesconhecida
from app.contexts.lgpd.service import ReciboDoApagamento
from app.contexts.webhooks.api import EntregaDoWebhook
from app.integrations.evolution.events import delivery_of
from app.main import build
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.errors import AmbiguousId
from batuta.kernel import Json
from batuta.stores.sql.database import AsJson
from batuta.testing import FakeClock
from tests.julia.envio.sending import PHONE, Office
from tests.julia.lgpd.pessoas import add_everywhere, add_shift, dump, insert, lgpd_of
from tests.julia.tables import add_doctor, one, rows, write


@pytest.fixture
async def work(database_url: str, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Batuta]:
    settings = Settings(database_url=database_url, optout_journal=str(tmp_path / "optouts"))
    async with build(settings, clock=clock).work as work:
        yield work


async def test_no_table_contains_the_person_after_the_erasure(work: Batuta) -> None:
    ana, bia = await add_everywhere(work, 1), await add_everywhere(work, 2)
    await add_shift(work, ana, "realizada")
    before = await dump(work)
    receipt = await lgpd_of(work).apagar(ana.telefone, por="operadora", motivo="pediu por e-mail")
    assert (receipt.completo, receipt.restam) == (True, {})
    after = await dump(work)
    left = [(table, row) for table, found in after.items() for row in found if any(sign in row for sign in ana.sinais)]
    assert left == []
    kept = {table: [row for row in found if any(sign in row for sign in bia.sinais)] for table, found in before.items()}
    for table, found in kept.items():
        if table != "leituras_modelo":  # a cache, emptied as a whole
            assert [row for row in found if row not in after[table]] == [], table


async def test_the_database_file_and_its_log_do_not_contain_the_person_after_the_erasure(
    julia_url: str, clock: FakeClock, tmp_path: Path
) -> None:
    settings = Settings(database_url=julia_url, optout_journal=str(tmp_path / "optouts"))
    async with build(settings, clock=clock).work as work:
        ana = await add_everywhere(work, 1)
        assert (await lgpd_of(work).apagar(ana.telefone, por="operadora", motivo="pediu")).completo
        file = Path(julia_url.removeprefix("sqlite:///"))
        stored = b"".join(part.read_bytes() for part in file.parent.glob(f"{file.name}*") if part.is_file())
    assert [sign for sign in ana.sinais if sign.encode() in stored] == []


async def test_receipt_counts_the_erased_rows_of_each_table(work: Batuta) -> None:
    ana = await add_everywhere(work, 1)
    receipt = await lgpd_of(work).apagar(ana.medico[:23], por="operadora", motivo="x")
    counts = receipt.contagens
    assert {
        counts[name] for name in ("clientes", "doctor_state", "appointments", "contatos_grupo", "webhook_inbox")
    } == {1}
    assert (counts["interacoes"], counts["fila_mensagens"], counts["mensagens_canceladas"]) == (2, 2, 1)
    assert counts["mencoes"] == 3
    stored = await one(work.database, "SELECT * FROM lgpd_pedidos")
    assert (stored["alvo"], stored["concluido_em"] is not None, stored["por"]) == (None, True, "operadora")
    assert stored["contagens"] == counts
    note = await one(work.database, "SELECT * FROM audit_log WHERE action = 'lgpd.apagar'")
    assert (note["actor"], note["subject"]) == ("operadora", f"pedido:{receipt.pedido}")


async def test_each_id_of_the_person_erases_the_whole_person(work: Batuta) -> None:
    for number, named in enumerate(("medico", "contato", "agendamento"), start=1):
        who = await add_everywhere(work, number)
        assert (await lgpd_of(work).apagar(getattr(who, named), por="x", motivo="x")).completo
        found = await dump(work)
        assert [row for table in found.values() for row in table if any(sign in row for sign in who.sinais)] == []


@pytest.mark.parametrize("written", [PHONE, "", "abc", "000.000.001-00", "00000000-0000-7000-8000-999999999999"])
async def test_unknown_person_is_refused_and_not_repeated_in_the_error(work: Batuta, written: str) -> None:
    for act in (lgpd_of(work).apagar, lgpd_of(work).exportar):
        with pytest.raises(PessoaDesconhecida) as refused:
            await act(written, por="x", motivo="x")
        assert not written or written not in str(refused.value).replace("5511900000001", "")
    assert await rows(work.database, "SELECT 1 FROM lgpd_pedidos") == []


async def test_beginning_that_several_ids_share_is_refused(work: Batuta) -> None:
    ana = await add_everywhere(work, 1)
    with pytest.raises(AmbiguousId):
        await lgpd_of(work).apagar(ana.medico[:6], por="x", motivo="x")


async def test_people_who_share_a_number_are_not_mixed(work: Batuta) -> None:
    ana, now = await add_everywhere(work, 1), work.clock.now()
    child = work.ids.new()
    await insert(
        work, "appointments", id=child, chave=child, nome_paciente="Outra Criança", telefone=ana.telefone, fonte="x",
        created_at=now, updated_at=now,
    )  # fmt: skip
    with pytest.raises(NumeroDeVarias) as refused:
        await lgpd_of(work).exportar(ana.telefone, por="x", motivo="x")
    assert child in str(refused.value)
    only = await lgpd_of(work).exportar(child, por="x", motivo="x")
    assert [*only["tabelas"]] == ["appointments"]
    doctor = await lgpd_of(work).exportar(ana.medico, por="x", motivo="x")
    assert [each["id"] for each in doctor["tabelas"]["appointments"]] == [ana.agendamento]
    assert (await lgpd_of(work).apagar(child, por="x", motivo="x")).completo
    assert [row["id"] for row in await rows(work.database, "SELECT id FROM appointments")] == [ana.agendamento]
    assert (await one(work.database, "SELECT telefone FROM clientes"))["telefone"] == ana.telefone


async def test_message_in_doubt_keeps_the_request_open_until_it_is_resolved(work: Batuta) -> None:
    ana = await add_everywhere(work, 1)
    await write(
        work.database,
        "UPDATE fila_mensagens SET envio_estado = 'parked', envio_desde = :now WHERE status = 'pendente'",
        now=work.clock.now(),
    )
    receipt = await lgpd_of(work).apagar(ana.telefone, por="x", motivo="x")
    assert (receipt.completo, receipt.restam["fila_mensagens"]) == (False, 1)
    person = await one(work.database, "SELECT * FROM clientes")
    # the person stays known until the end, but opted out
    assert (person["telefone"], bool(person["opted_out"])) == (ana.telefone, True)
    assert await lgpd_of(work).retomar(10) == 0
    report = await lgpd_of(work).ask()
    work.clock.step(timedelta(days=2))  # type: ignore[attr-defined]
    assert (len(report.findings), len((await lgpd_of(work).ask()).findings)) == (0, 1)
    await write(
        work.database,
        "UPDATE fila_mensagens SET status = 'cancelada', envio_estado = NULL, envio_desde = NULL WHERE status = 'pendente'",
    )
    assert await lgpd_of(work).retomar(10) > 0
    found = await dump(work)
    assert [row for table in found.values() for row in table if any(sign in row for sign in ana.sinais)] == []
    stored = await one(work.database, "SELECT * FROM lgpd_pedidos")
    assert (stored["alvo"], stored["restam"], stored["concluido_em"] is not None) == (None, {}, True)


async def test_delivery_and_file_in_progress_keep_the_request_open(work: Batuta) -> None:
    ana, now, id = await add_everywhere(work, 1), work.clock.now(), work.ids.new()
    await write(work.database, "UPDATE webhook_inbox SET status = 'pendente', finished_at = NULL")
    await insert(
        work, "importacoes", id=id, arquivo="x.csv", sha256="x", status="em_andamento", created_at=now, updated_at=now
    )
    await insert(work, "importacao_arquivos", importacao_id=id, conteudo=b"x")
    receipt = await lgpd_of(work).apagar(ana.medico, por="x", motivo="x")
    assert receipt.restam == {"webhook_inbox": 1, "importacao_arquivos": 1}
    await write(work.database, "UPDATE webhook_inbox SET status = 'processada', finished_at = :now", now=now)
    await write(work.database, "DELETE FROM importacao_arquivos")
    again = await lgpd_of(work).apagar(ana.medico, por="x", motivo="x")
    assert (again.completo, again.pedido) == (True, receipt.pedido)
    assert await rows(work.database, "SELECT 1 FROM webhook_inbox") == []


async def test_reserved_shift_is_released_for_other_doctors(work: Batuta) -> None:
    ana = await add_everywhere(work, 1)
    id = await add_shift(work, ana, "reservada")
    assert (await lgpd_of(work).apagar(ana.telefone, por="x", motivo="x")).completo
    vaga = await one(work.database, "SELECT * FROM vagas WHERE id = :id", id=id)
    assert (vaga["status"], vaga["cliente_id"], vaga["contato_nome"]) == ("aberta", None, None)


async def test_waiting_reading_of_an_appointment_is_cancelled(work: Batuta) -> None:
    ana = await add_everywhere(work, 1)
    await write(work.database, "UPDATE tasks SET status = 'queued', result = NULL")
    assert (await lgpd_of(work).apagar(ana.telefone, por="x", motivo="x")).completo
    task = await one(work.database, "SELECT status, args FROM tasks")
    assert (task["status"], task["args"]) == ("cancelled", [])


async def test_no_table_contains_the_number_of_a_doctor_who_got_messages(
    office: Office, doctor: str, chip: str
) -> None:
    await office.put(doctor, "Primeira mensagem", tipo="prospeccao")
    await office.works()
    assert len(office.line.receipts) == 1
    assert (await lgpd_of(office.work).apagar(PHONE, por="x", motivo="x")).completo
    found = await dump(office.work)
    assert {table: [row for row in found[table] if PHONE in row] for table in found if PHONE in str(found[table])} == {}


async def test_number_that_comes_back_is_not_contacted_again(office: Office, doctor: str, chip: str) -> None:
    assert (await lgpd_of(office.work).apagar(PHONE, por="x", motivo="x")).completo
    id = await office.put(await add_doctor(office.work.database, PHONE, now=office.clock.now()))
    await office.works()
    message = await office.message(id)
    assert (message["status"], message["outcome"], office.line.receipts) == ("bloqueada", "BLOCKED_OPTED_OUT", [])


async def test_number_that_comes_back_is_refused_without_a_journal_too(database_url: str, clock: FakeClock) -> None:
    async with build(Settings(database_url=database_url), clock=clock).work as work:
        julia_of(work).messages.conversas._diario = None  # as on a database server without OPTOUT_JOURNAL
        await add_doctor(work.database, PHONE, now=clock.now())
        await lgpd_of(work).apagar(PHONE, por="x", motivo="x")
        resumos = julia_of(work).messages.resumos
        digest = await resumos.read(work.database, PHONE)
        assert await rows(work.database, "SELECT digest FROM optouts_do_diario") == [{"digest": digest}]


async def test_audit_text_of_others_loses_only_the_number(work: Batuta) -> None:
    ana = await add_everywhere(work, 1)
    await insert(
        work, "audit_log", id=work.ids.new(), at=work.clock.now(), actor="ana", action="y", subject="y",
        after=AsJson({"nota": f"+{ana.telefone} e 11 91234-5678", "total": 3}),
    )  # fmt: skip
    await lgpd_of(work).apagar(ana.telefone, por="x", motivo="x")
    noted = await one(work.database, "SELECT after FROM audit_log WHERE action = 'y'")
    assert noted["after"] == {"nota": "[removido] e 11 91234-5678", "total": 3}
    said = await one(work.database, "SELECT texto FROM mensagens_grupo WHERE sender_nome = 'Outra'")
    assert said["texto"] == "Falar com a escala: [removido] até sexta"


async def test_data_that_arrives_during_the_erasure_is_erased_too(
    work: Batuta, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana, service = await add_everywhere(work, 1), lgpd_of(work)
    erase, now, written = service._pessoas.completar, work.clock.now(), list[str]()

    async def write_first(alvo: object) -> object:
        if not written:
            written.append("once")
            await insert(
                work, "interacoes", conteudo=ana.marca, telefone=ana.telefone, autor_tipo="externo", tipo="entrada",
                created_at=now,
            )  # fmt: skip
        return await erase(alvo)

    monkeypatch.setattr(service._pessoas, "completar", write_first)
    receipt = await service.apagar(ana.telefone, por="x", motivo="x")
    assert (receipt.completo, receipt.contagens["interacoes"]) == (True, 3)
    assert await rows(work.database, "SELECT 1 FROM interacoes WHERE telefone IS NOT NULL") == []


async def test_erased_person_who_writes_again_is_a_stranger_who_gets_nothing_on_our_initiative(
    office: Office, doctor: str, chip: str
) -> None:
    assert (await lgpd_of(office.work).apagar(PHONE, por="x", motivo="x")).completo
    body: Json = {
        "event": "messages.upsert", "instance": "julia-sim",
        "data": {"key": {"id": "VOLTA-1", "remoteJid": f"{PHONE}@s.whatsapp.net", "fromMe": False}, "pushName": "Fictícia",
                 "messageType": "conversation", "message": {"conversation": "Oi, tudo bem?"}},
    }  # fmt: skip
    inbox = julia_of(office.work).inbox
    delivery = delivery_of(body)
    assert isinstance(delivery, EntregaDoWebhook)
    assert await inbox.keep(delivery)
    await office.work.work_once("webhook_inbox", 10)
    said = await one(office.work.database, "SELECT autor_tipo, cliente_id FROM interacoes")
    assert (said["autor_tipo"], said["cliente_id"]) == ("externo", None)
    again = await add_doctor(office.work.database, PHONE, now=office.clock.now())
    id = await office.put(again, tipo="campanha")
    await office.works()
    assert ((await office.message(id))["outcome"], office.line.receipts) == ("BLOCKED_OPTED_OUT", [])


async def test_receipt_names_the_copies_in_the_help_desk(work: Batuta) -> None:
    ana, now, id = await add_everywhere(work, 1), work.clock.now(), work.ids.new()
    await write(work.database, "UPDATE conversations SET chatwoot_conversation_id = 77")
    await insert(
        work, "central_fila", id=id, conversa_id=ana.conversa, grupo=ana.conversa, nota=ana.marca, available_at=now,
        created_at=now,
    )  # fmt: skip
    receipt = await lgpd_of(work).apagar(ana.telefone, por="x", motivo="x")
    assert (receipt.completo, list(receipt.na_central), receipt.contagens["central_fila"]) == (True, [77], 1)


async def test_name_beside_the_number_in_the_text_of_another_person_is_removed(work: Batuta) -> None:
    ana, bia = await add_everywhere(work, 1), await add_everywhere(work, 2)
    said = f"Contato de quem publicou: {ana.nome} Teste, {ana.telefone}. Até {bia.nome}"
    await write(
        work.database, "UPDATE fila_mensagens SET conteudo = :said WHERE cliente_id = :id", said=said, id=bia.medico
    )
    assert (await lgpd_of(work).apagar(ana.telefone, por="x", motivo="x")).completo
    texts = await rows(
        work.database, "SELECT status, conteudo FROM fila_mensagens WHERE cliente_id = :id", id=bia.medico
    )
    assert {row["conteudo"] for row in texts} == {f"Contato de quem publicou: [removido], [removido]. Até {bia.nome}"}


async def test_number_in_a_message_that_is_being_sent_keeps_the_request_open(work: Batuta) -> None:
    ana, bia = await add_everywhere(work, 1), await add_everywhere(work, 2)
    await write(
        work.database,
        "UPDATE fila_mensagens SET conteudo = :said, lease_until = :now WHERE cliente_id = :id AND status = 'pendente'",
        said=f"Ligue para {ana.telefone}",
        now=work.clock.now(),
        id=bia.medico,
    )
    assert (await lgpd_of(work).apagar(ana.telefone, por="x", motivo="x")).restam == {"mencoes": 1}
    await write(work.database, "UPDATE fila_mensagens SET lease_until = NULL, status = 'enviada'")
    assert await lgpd_of(work).retomar(10) > 0
    assert (await one(work.database, "SELECT concluido_em FROM lgpd_pedidos"))["concluido_em"] is not None


@pytest.mark.parametrize("step", ["_stop", "_erase", "_mask", "_count_left"])
async def test_erasure_that_stops_at_any_step_continues_later(
    work: Batuta, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    ana, service = await add_everywhere(work, 1), lgpd_of(work)

    async def crash(*args: object, **options: object) -> None:
        raise RuntimeError("the process ends here")

    with monkeypatch.context() as patch:
        patch.setattr(service, step, crash)
        with pytest.raises(RuntimeError):
            await service.apagar(ana.telefone, por="x", motivo="x")
    request = await one(work.database, "SELECT alvo, concluido_em FROM lgpd_pedidos")
    assert (request["alvo"]["chaves"], request["concluido_em"]) == ([chave(ana.telefone)], None)
    await service.retomar(10)
    found = await dump(work)
    assert [row for table in found.values() for row in table if any(sign in row for sign in ana.sinais)] == []
    assert (await one(work.database, "SELECT concluido_em FROM lgpd_pedidos"))["concluido_em"] is not None


async def test_two_operators_at_once_erase_the_person_once(work: Batuta) -> None:
    ana = await add_everywhere(work, 1)
    act = lgpd_of(work).apagar
    done = await asyncio.gather(*(act(ana.telefone, por=who, motivo="x") for who in "ab"), return_exceptions=True)
    assert {type(each) for each in done} <= {ReciboDoApagamento, PessoaDesconhecida}
    await lgpd_of(work).retomar(10)
    requests = await rows(work.database, "SELECT concluido_em, contagens FROM lgpd_pedidos")
    assert all(row["concluido_em"] for row in requests)
    assert sum(row["contagens"].get("clientes", 0) for row in requests) == 1


async def test_number_is_the_same_with_and_without_the_ninth_digit(work: Batuta) -> None:
    long, short = "5511987650001", "551187650001"
    await add_doctor(work.database, long, now=work.clock.now())
    await insert(
        work,
        "interacoes",
        conteudo="x",
        telefone=short,
        autor_tipo="externo",
        tipo="entrada",
        created_at=work.clock.now(),
    )
    await insert(
        work, "audit_log", id=work.ids.new(), at=work.clock.now(), actor="a", action="z", subject="x",
        after=AsJson("(11) 8765-0001 ou 11 98765.0001"),
    )  # fmt: skip
    assert (await lgpd_of(work).apagar(f"+55 11 {short[4:]}", por="x", motivo="x")).completo
    assert await rows(work.database, "SELECT 1 FROM interacoes WHERE telefone IS NOT NULL") == []
    noted = await one(work.database, "SELECT after FROM audit_log WHERE action = 'z'")
    assert noted["after"] == "[removido] ou [removido]"
    resumos = julia_of(work).messages.resumos
    assert await resumos.read(work.database, long) == await resumos.read(work.database, short)
