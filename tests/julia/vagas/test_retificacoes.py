"""An author corrects an offer, on both databases. The vacancy is changed, unless it has already been offered to a
doctor.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from app.contexts.grupos.fila import Estagio
from app.contexts.nomes.correcoes import Correcao
from app.contexts.vagas.retificacoes import MudancaSemVaga, MudancaSuperada, OfertaPorDecidir, Retificacoes
from app.contexts.vagas.revisao import VagaDecidida
from batuta.stores.sql.database import Query, Transaction
from batuta.testing import FakeClock
from tests.julia.grupos.bancada import AUTOR, Bancada, bancada, vaga

OUTRO_GRUPO = "120363000000000002@g.us"
OUTRA = "5511900000088@s.whatsapp.net"
OFERTA = "Plantão de pediatria no Hospital Fictício dia 20/03, {}, R$ {}. Chamar no PV"


@pytest.fixture
async def mesa(database_url: str, clock: FakeClock) -> AsyncIterator[Bancada]:
    async with bancada(database_url, clock) as bench:
        await bench.carrega("Hospital Fictício", cidade="Santos", uf="SP")
        yield bench


async def says(mesa: Bancada, line: str, **how: Any) -> str:
    await mesa.clock.advance(timedelta(minutes=10))
    said = await mesa.dizem("plantão\n" + line, **how)
    await mesa.trabalha()
    return said


async def prices(mesa: Bancada) -> list[Any]:
    return [row["valor"] for row in await mesa.rows("SELECT valor FROM vagas ORDER BY created_at, data")]


async def last(mesa: Bancada) -> dict[str, Any]:
    found = await mesa.rows("SELECT id, status, motivo_status, duplicada_de FROM vagas_grupo ORDER BY created_at")
    return found[-1]


async def test_author_who_repeats_the_offer_at_another_price_changes_the_vacancy(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500))
    await says(mesa, vaga(valor=2000), grupo=OUTRO_GRUPO)
    assert await prices(mesa) == [2000]
    assert (await last(mesa))["status"] == "duplicada"
    sources = await mesa.rows("SELECT valor_informado FROM vagas_grupo_fontes ORDER BY ordem")
    assert [row["valor_informado"] for row in sources] == [1500, 2000]
    note = await mesa.one("SELECT actor, before, after FROM audit_log WHERE action = 'vaga.corrigir'")
    assert (note["actor"], note["before"], note["after"]["valor"]) == ("grupos", {"valor": 1500}, 2000)


async def test_price_of_another_author_adds_a_source_and_changes_nothing(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500))
    await says(mesa, vaga(valor=2000), autor=OUTRA)
    assert await prices(mesa) == [1500]
    assert await mesa.rows("SELECT 1 FROM audit_log WHERE action = 'vaga.corrigir'") == []
    await says(
        mesa, vaga(valor=2200), autor=OUTRA
    )  # this author corrects their own repetition of an offer that another author posted
    assert await prices(mesa) == [1500]


async def test_author_is_recognised_under_their_hidden_address(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500))
    await says(mesa, vaga(valor=2000), autor="99887766554433@lid", outro=AUTOR)
    assert await prices(mesa) == [2000]


async def test_contact_named_in_a_forwarded_offer_may_change_its_price(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500) + "; 5511900000088")
    await says(mesa, vaga(valor=2000), autor=OUTRA)
    assert await prices(mesa) == [2000]


async def test_older_message_that_is_read_later_corrects_nothing(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500))
    await says(mesa, vaga(valor=2000))
    await says(mesa, vaga(valor=1800), em=mesa.clock.now() - timedelta(minutes=8))
    assert await prices(mesa) == [2000]


async def test_repeat_without_a_price_keeps_the_price(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500))
    await says(mesa, vaga(valor=None))
    assert await prices(mesa) == [1500]


async def test_two_prices_for_one_key_in_one_message_correct_nothing(mesa: Bancada) -> None:
    """Two offers in one message that differ only in their price do not correct each other: they may be two shifts in
    different sectors, which have the same key.
    """
    twice = vaga(valor=1500) + "\n" + vaga(valor=1900)
    await says(mesa, twice)
    first = await prices(mesa)
    await says(mesa, twice)
    assert (len(first), await prices(mesa)) == (1, first)


async def test_new_hours_of_the_author_reach_the_open_vacancy(database_url: str, clock: FakeClock) -> None:
    async with bancada(database_url, clock, leitor=None) as mesa:
        await mesa.carrega("Hospital Fictício", cidade="Santos", uf="SP")
        await says(mesa, OFERTA.format("19h às 7h", "1.500"))
        await says(mesa, OFERTA.format("20h às 8h", "1.500"))
        row = await mesa.one("SELECT hora_inicio, hora_fim, valor FROM vagas")
        assert tuple(row.values()) == ("20:00", "08:00", 1500)


async def test_vaga_in_review_has_the_last_price_of_its_author(mesa: Bancada) -> None:
    await says(mesa, vaga("Vila Inventada", valor=1500))
    await says(mesa, vaga("Vila Inventada", valor=2000))
    waiting = await mesa.one("SELECT id, valor, trechos FROM vagas_grupo WHERE status = 'aguardando_revisao'")
    assert (waiting["valor"], "valor" in waiting["trechos"]) == (2000, False)
    await mesa.groups.revisao.aprovar(waiting["id"], Correcao(), por="gestora")
    assert await prices(mesa) == [2000]


async def test_correction_read_before_the_import_is_imported_with_the_offer(mesa: Bancada) -> None:
    await mesa.dizem("plantão\n" + vaga(valor=1500))
    for stage in list(Estagio)[:-1]:
        await mesa.work.work_once(stage, 10, None)
    await mesa.clock.advance(timedelta(minutes=10))
    await mesa.dizem("plantão\n" + vaga(valor=2000))
    for stage in list(Estagio)[:-1]:
        await mesa.work.work_once(stage, 10, None)
    assert await prices(mesa) == []
    await mesa.trabalha()
    assert await prices(mesa) == [2000]


@pytest.mark.parametrize("status", ["anunciada", "reservada", "pendente_confirmacao"])
async def test_vacancy_offered_to_a_doctor_keeps_its_price_until_a_review(mesa: Bancada, status: str) -> None:
    await says(mesa, vaga(valor=1500))
    await mesa.write("UPDATE vagas SET status = :status", status=status)
    await says(mesa, vaga(valor=2000))
    waiting = await last(mesa)
    assert (waiting["status"], waiting["motivo_status"]) == ("aguardando_revisao", "valor_mudou")
    assert await prices(mesa) == [1500]
    revisao = mesa.groups.revisao
    (listed,) = await revisao.pendentes(limite=10)
    assert (listed["valor"], listed["anterior_valor"], listed["anterior_status"]) == (2000, 1500, status)
    done = await revisao.aprovar(waiting["id"], Correcao(), por="gestora")
    vacancy = await mesa.one("SELECT id, valor, status FROM vagas")
    assert (done.status, done.vaga_id) == ("duplicada", vacancy["id"])
    assert (vacancy["valor"], vacancy["status"]) == (2000, status)
    note = await mesa.one("SELECT actor, before FROM audit_log WHERE action = 'vaga.corrigir'")
    assert tuple(note.values()) == ("gestora", {"valor": 1500})


async def test_rejected_change_leaves_the_vacancy_as_it_is(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500))
    await mesa.write("UPDATE vagas SET status = 'reservada'")
    await says(mesa, vaga(valor=2000))
    await mesa.groups.revisao.rejeitar((await last(mesa))["id"], "já combinado", por="gestora")
    assert await prices(mesa) == [1500]
    assert len(await mesa.rows("SELECT 1 FROM vagas_grupo_chaves")) == 1


async def test_change_of_a_vacancy_taken_meanwhile_leaves_the_review(database_url: str, clock: FakeClock) -> None:
    async with bancada(database_url, clock, leitor=None) as mesa:
        await mesa.carrega("Hospital Fictício", cidade="Santos", uf="SP")
        await says(mesa, OFERTA.format("19h às 7h", "1.500"))
        await mesa.write("UPDATE vagas SET status = 'anunciada'")
        again = await says(mesa, OFERTA.format("19h às 7h", "2.000"))
        assert (await last(mesa))["motivo_status"] == "valor_mudou"
        await mesa.clock.advance(timedelta(minutes=10))
        await mesa.dizem("Preenchida, obrigada!", citada=again)
        await mesa.trabalha()
        assert (await mesa.one("SELECT status FROM vagas"))["status"] == "fechada"
        changed = await last(mesa)
        assert (changed["status"], changed["motivo_status"]) == ("rejeitada", "preenchida")


async def test_change_of_a_finished_vacancy_cannot_be_approved(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500))
    await mesa.write("UPDATE vagas SET status = 'reservada'")
    await says(mesa, vaga(valor=2000))
    await mesa.write("UPDATE vagas SET status = 'realizada'")
    with pytest.raises(MudancaSemVaga):
        await mesa.groups.revisao.aprovar((await last(mesa))["id"], Correcao(), por="gestora")
    assert await prices(mesa) == [1500]
    assert (await last(mesa))["status"] == "aguardando_revisao"


@pytest.fixture
async def lida(database_url: str, clock: FakeClock) -> AsyncIterator[Bancada]:
    """The groups pipeline with a reader that uses only the rules."""
    async with bancada(database_url, clock, leitor=None, grupos_limiar_leitura=0.5) as bench:
        await bench.carrega("Hospital Fictício", cidade="Santos", uf="SP")
        yield bench


async def writes(mesa: Bancada, text: str, **how: Any) -> str:
    await mesa.clock.advance(timedelta(minutes=10))
    said = await mesa.dizem(text, **how)
    await mesa.trabalha()
    return said


@pytest.mark.parametrize(
    "text",
    [
        "Corrigindo: valor é 2.000",
        "Valor atualizado: R$ 2.000",
        "Pessoal, o valor correto é R$ 2.000,00",
        "Errata: 2 mil reais",
    ],
)
async def test_message_of_the_author_about_the_price_changes_the_offer(lida: Bancada, text: str) -> None:
    offer = await writes(lida, OFERTA.format("19h às 7h", "1.500"))
    await writes(lida, text, citada=offer)
    assert await prices(lida) == [2000]
    sources = await lida.rows("SELECT valor_informado FROM vagas_grupo_fontes ORDER BY ordem")
    assert [row["valor_informado"] for row in sources] == [1500, 2000]


async def test_message_without_a_reply_concerns_the_authors_last_offer(lida: Bancada) -> None:
    await writes(lida, OFERTA.format("19h às 7h", "1.500"))
    await writes(lida, OFERTA.format("7h às 19h", "1.400"))
    await writes(lida, "Corrigindo: valor é 2.000")
    assert await prices(lida) == [1500, 2000]
    await writes(lida, "corrigindo o noturno do Hospital Fictício: o valor é 2.200")
    assert await prices(lida) == [2200, 2000]
    await writes(lida, "corrigindo 20/03 7h às 19h: R$ 1.900")  # alone, this message would be an offer without a place
    assert await prices(lida) == [2200, 1900]
    assert await lida.groups.revisao.quantas() == 0


@pytest.mark.parametrize(
    "how", [{"autor": OUTRA}, {"grupo": OUTRO_GRUPO}, {"citada": "3EBX"}], ids=["another", "elsewhere", "other_words"]
)
async def test_correction_by_another_in_another_group_or_to_another_changes_nothing(
    lida: Bancada, how: dict[str, str]
) -> None:
    await writes(lida, OFERTA.format("19h às 7h", "1.500"))
    if "citada" in how:
        await writes(lida, "bom dia a todos", id=how["citada"])
    await writes(lida, "Corrigindo: valor é 2.000", **how)
    assert await prices(lida) == [1500]
    assert len(await lida.rows("SELECT 1 FROM vagas_grupo")) == 1


@pytest.mark.parametrize("text", ["valor atualizado?", "o valor mudou? 2.000?", "Corrigindo: 1.800 ou 2.000", "2.000"])
async def test_question_or_unclear_text_corrects_no_price(lida: Bancada, text: str) -> None:
    offer = await writes(lida, OFERTA.format("19h às 7h", "1.500"))
    await writes(lida, text, citada=offer)
    assert await prices(lida) == [1500]


async def test_one_price_for_a_list_of_several_prices_waits_for_review_of_each(lida: Bancada) -> None:
    days = "Hospital Fictício - pediatria\n20/03 noturno R$ 1.500\n21/03 noturno R$ 1.700\nChamar no PV"
    offer = await writes(lida, days)
    await writes(lida, "Corrigindo: valor é 2.000", citada=offer)
    assert await prices(lida) == [1500, 1700]
    revisao = lida.groups.revisao
    waiting = sorted(await revisao.pendentes(limite=10), key=lambda row: row["anterior_valor"])
    assert [(row["motivo_status"], row["valor"], row["anterior_valor"]) for row in waiting] == [
        ("valor_mudou", 2000, 1500), ("valor_mudou", 2000, 1700),
    ]  # fmt: skip
    await revisao.aprovar(waiting[1]["id"], Correcao(), por="gestora")
    await revisao.rejeitar(waiting[0]["id"], "só o de sábado", por="gestora")
    assert await prices(lida) == [1500, 2000]


async def test_correction_of_a_list_with_one_price_applies_to_the_whole_list(lida: Bancada) -> None:
    offer = await writes(
        lida, "Hospital Fictício - pediatria\n20/03 noturno\n21/03 noturno\nR$ 1.500 cada. Chamar no PV"
    )
    await writes(lida, "Corrigindo: valor é 2.000", citada=offer)
    assert await prices(lida) == [2000, 2000]


ALHEIAS = [
    "Vaga atualizada: plantão de cardiologia noturno 20/03 R$ 3.000 chamar no PV",
    "Agenda atualizada! Plantão de ortopedia, R$ 3.000, interessados chamar no PV",
    "Não corrigiram o valor do plantão ainda, deviam pagar R$ 2.500",
    "o valor do plantão não mudou, continua R$ 1.800",
    "procuro plantão, valor agora acima de R$ 3.000",
    "Atualização do plantão de ontem: recebi R$ 900",
    "O valor novo da consulta particular é R$ 400, hospital",
    "Errata: o aluguel da sala perto do Hospital Fictício é R$ 900",
    "plantão: valor correto do estacionamento é R$ 30",
    "Atualizando: mais R$ 200 de bônus no plantão",
    "Pessoal, atualização: o lanche deste mês é R$ 50, pix",
    "valor atualizado do plantão no Hospital Zebra Listrada: R$ 900",
    "valor atualizado do plantão dia 22/03: R$ 900",
    "valor atualizado do plantão diurno: R$ 900",
]


async def test_message_about_something_else_changes_no_offer_and_adds_no_review(lida: Bancada) -> None:
    await writes(lida, OFERTA.format("noturno", "1.500"))
    for text in ALHEIAS:
        await writes(lida, text)
        changes = await lida.rows("SELECT 1 FROM vagas_grupo WHERE motivo_status = 'valor_mudou'")
        assert (text, await prices(lida), changes) == (text, [1500], [])


@pytest.mark.parametrize(
    "text",
    [
        "Valor do plantão aumentou R$ 300",
        "valor do plantão subiu 10%, valor agora R$ 1.650",
        "Outro plantão, valor atualizado R$ 900",
        "corrigindo plantão: valor é 2.000 se for de fora da cidade",
        "corrigindo plantão: valor é 2.000, menos dia 20/03",
    ],
)
async def test_price_with_more_words_than_a_plain_correction_waits_for_review(lida: Bancada, text: str) -> None:
    await writes(lida, OFERTA.format("noturno", "1.500"))
    await writes(lida, text)
    assert await prices(lida) == [1500]
    assert (await last(lida))["motivo_status"] == "valor_mudou"


@pytest.mark.parametrize("text", ["menos dia 21/03", "exceto o dia 21/03", "só 21/03"])
async def test_correction_with_an_exception_waits_for_review(lida: Bancada, text: str) -> None:
    await writes(lida, "Hospital Fictício - pediatria\n20/03 noturno R$ 1.500\n21/03 noturno R$ 1.500\nChamar no PV")
    await writes(lida, f"corrigindo plantão: valor é 2.000, {text}")
    assert await prices(lida) == [1500, 1500]
    assert await lida.groups.revisao.quantas() == 2


@pytest.mark.parametrize(
    "text",
    [
        "Boa tarde pessoal, valor atualizado do plantão de pediatria: R$ 2.000",
        "Novo valor do plantão: R$ 2.000",
        "o valor do plantão subiu para R$ 2.000",
        "corrigindo plantão noturno no Hospital Fictício: valor R$ 2.000",
    ],
)
async def test_plain_correction_counts_without_review(lida: Bancada, text: str) -> None:
    await writes(lida, OFERTA.format("noturno", "1.500"))
    await writes(lida, text)
    assert await prices(lida) == [2000]


async def test_complete_offer_that_says_updated_stays_an_offer(lida: Bancada) -> None:
    await writes(lida, OFERTA.format("noturno", "1.500"))
    await writes(lida, "Plantões atualizados: pediatria 20/03 19h às 7h R$ 1.800, preciso de médico, chamar no PV")
    assert await prices(lida) == [1500]
    kept = await last(lida)
    assert (kept["status"], kept["motivo_status"]) == ("aguardando_revisao", "match_incompleto:hospital")


async def test_correction_that_names_an_unknown_hospital_changes_no_offer_without_one(lida: Bancada) -> None:
    await writes(lida, "Plantão de pediatria dia 20/03 noturno R$ 1.500 chamar no PV, preciso de médico")
    before = await lida.rows("SELECT valor FROM vagas_grupo")
    await writes(lida, "valor atualizado do plantão no Hospital Zebra Listrada: R$ 900")
    assert before == await lida.rows("SELECT valor FROM vagas_grupo") == [{"valor": 1500}]


async def test_list_of_more_than_twenty_days_changes_as_a_whole(lida: Bancada) -> None:
    days = "\n".join(f"dia {day:02d}/03" for day in range(6, 31))
    await writes(lida, f"Plantões de pediatria no Hospital Fictício, noturno, R$ 1.500:\n{days}\nChamar no PV")
    assert await prices(lida) == [1500] * 25
    await writes(lida, "valor atualizado do plantão: R$ 2.000")
    assert await prices(lida) == [2000] * 25


async def test_cents_are_rounded_the_same_way_everywhere(lida: Bancada) -> None:
    await writes(lida, OFERTA.format("noturno", "1.400,50"))
    assert await prices(lida) == [1401]
    await writes(lida, "valor atualizado do plantão: R$ 1.500,50")
    assert await prices(lida) == [1501]


async def test_vacancy_offered_during_the_check_waits_for_review(
    mesa: Bancada, monkeypatch: pytest.MonkeyPatch
) -> None:
    await says(mesa, vaga(valor=1500))
    look = Retificacoes._standing

    async def then_offered(self: Retificacoes, transaction: Transaction, *which: Any) -> Any:
        seen = await look(self, transaction, *which)
        await transaction.run(Query("offered", "UPDATE vagas SET status = 'reservada'", (), writes=True))
        return seen

    monkeypatch.setattr(Retificacoes, "_standing", then_offered)
    await says(mesa, vaga(valor=900))
    assert await prices(mesa) == [1500]
    assert (await last(mesa))["motivo_status"] == "valor_mudou"


async def waiting(mesa: Bancada) -> list[dict[str, Any]]:
    return await mesa.rows("SELECT id, valor FROM vagas_grupo WHERE motivo_status = 'valor_mudou' ORDER BY created_at")


async def test_newer_change_replaces_the_one_in_review(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500))
    await mesa.write("UPDATE vagas SET status = 'anunciada'")
    for value in (2000, 2200, 2200):
        await says(mesa, vaga(valor=value))
    (left,) = await waiting(mesa)
    assert left["valor"] == 2200
    await mesa.groups.revisao.aprovar(left["id"], Correcao(), por="gestora")
    assert await prices(mesa) == [2200]


async def test_change_that_needs_no_review_replaces_the_one_in_review(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500))
    await mesa.write("UPDATE vagas SET status = 'anunciada'")
    await says(mesa, vaga(valor=2000))
    (old,) = await waiting(mesa)
    await mesa.write("UPDATE vagas SET status = 'aberta'")
    await says(mesa, vaga(valor=2200))
    assert (await prices(mesa), await waiting(mesa)) == ([2200], [])
    with pytest.raises(VagaDecidida):
        await mesa.groups.revisao.aprovar(old["id"], Correcao(), por="gestora")


async def test_change_that_its_author_reverted_cannot_be_approved(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500))
    await mesa.write("UPDATE vagas SET status = 'anunciada'")
    await says(mesa, vaga(valor=2000))
    (old,) = await waiting(mesa)
    await says(mesa, vaga(valor=1500))
    with pytest.raises(MudancaSuperada, match="posted a later version"):
        await mesa.groups.revisao.aprovar(old["id"], Correcao(), por="gestora")
    assert await prices(mesa) == [1500]


async def test_change_of_an_offer_in_review_says_to_decide_the_offer_first(lida: Bancada) -> None:
    await writes(
        lida, "Plantões de pediatria na Vila Inventada\n20/03 noturno R$ 1.500\n21/03 noturno R$ 1.700\nChamar no PV"
    )
    await writes(lida, "valor atualizado do plantão: R$ 2.000")
    change = (await waiting(lida))[0]
    with pytest.raises(OfertaPorDecidir, match=r"still in review: approve .* first"):
        await lida.groups.revisao.aprovar(change["id"], Correcao(), por="gestora")
