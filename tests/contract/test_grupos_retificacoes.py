"""What an author says otherwise of his own offer, on both databases: the vacancy follows him, unless a doctor was told of it."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from app.contexts.grupos.correcoes import Correcao
from app.contexts.grupos.fila import Estagio
from app.contexts.grupos.retificacoes import MudancaSemVaga
from app.settings import Settings
from app.wiring_grupos import review
from batuta.testing import FakeClock
from tests.grupos import AUTOR, Bancada, bancada, vaga

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


async def worth(mesa: Bancada) -> list[Any]:
    return [row["valor"] for row in await mesa.rows("SELECT valor FROM vagas ORDER BY created_at, data")]


async def last(mesa: Bancada) -> dict[str, Any]:
    found = await mesa.rows("SELECT id, status, motivo_status, duplicada_de FROM vagas_grupo ORDER BY created_at")
    return found[-1]


async def test_an_author_who_tells_his_offer_again_at_another_price_changes_the_open_vacancy(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500))
    await says(mesa, vaga(valor=2000), grupo=OUTRO_GRUPO)
    assert await worth(mesa) == [2000]
    assert (await last(mesa))["status"] == "duplicada"
    told = await mesa.rows("SELECT valor_informado FROM vagas_grupo_fontes ORDER BY ordem")
    assert [row["valor_informado"] for row in told] == [1500, 2000]
    note = await mesa.one("SELECT actor, before, after FROM audit_log WHERE action = 'vaga.corrigir'")
    assert (note["actor"], note["before"], note["after"]["valor"]) == ("grupos", {"valor": 1500}, 2000)


async def test_what_another_author_says_it_pays_is_one_more_source_and_changes_nothing(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500))
    await says(mesa, vaga(valor=2000), autor=OUTRA)
    assert await worth(mesa) == [1500]
    assert await mesa.rows("SELECT 1 FROM audit_log WHERE action = 'vaga.corrigir'") == []
    await says(mesa, vaga(valor=2200), autor=OUTRA)  # he corrects what he told himself: still not the author's
    assert await worth(mesa) == [1500]


async def test_an_author_is_the_same_person_under_his_hidden_address(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500))
    await says(mesa, vaga(valor=2000), autor="99887766554433@lid", outro=AUTOR)
    assert await worth(mesa) == [2000]


async def test_whoever_a_forwarded_offer_names_as_its_contact_may_say_what_it_pays(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500) + "; 5511900000088")
    await says(mesa, vaga(valor=2000), autor=OUTRA)
    assert await worth(mesa) == [2000]


async def test_an_older_message_that_is_read_later_corrects_nothing(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500))
    await says(mesa, vaga(valor=2000))
    await says(mesa, vaga(valor=1800), em=mesa.clock.now() - timedelta(minutes=8))
    assert await worth(mesa) == [2000]


async def test_a_repeat_without_a_price_takes_none_away(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500))
    await says(mesa, vaga(valor=None))
    assert await worth(mesa) == [1500]


async def test_one_who_tells_two_prices_of_one_key_in_one_message_corrects_nothing(mesa: Bancada) -> None:
    """Two shifts that only a sector tells apart are one key to us: neither is a correction of the other."""
    twice = vaga(valor=1500) + "\n" + vaga(valor=1900)
    await says(mesa, twice)
    first = await worth(mesa)
    await says(mesa, twice)
    assert (len(first), await worth(mesa)) == (1, first)


async def test_hours_that_the_author_tells_otherwise_reach_the_open_vacancy(
    database_url: str, clock: FakeClock
) -> None:
    async with bancada(database_url, clock, leitor=None) as mesa:
        await mesa.carrega("Hospital Fictício", cidade="Santos", uf="SP")
        await says(mesa, OFERTA.format("19h às 7h", "1.500"))
        await says(mesa, OFERTA.format("20h às 8h", "1.500"))
        row = await mesa.one("SELECT hora_inicio, hora_fim, valor FROM vagas")
        assert tuple(row.values()) == ("20:00", "08:00", 1500)


async def test_what_waits_for_a_person_waits_with_what_its_author_said_last(mesa: Bancada) -> None:
    await says(mesa, vaga("Vila Inventada", valor=1500))
    await says(mesa, vaga("Vila Inventada", valor=2000))
    waiting = await mesa.one("SELECT id, valor, trechos FROM vagas_grupo WHERE status = 'aguardando_revisao'")
    assert (waiting["valor"], "valor" in waiting["trechos"]) == (2000, False)
    await review(mesa.work, Settings()).aprovar(waiting["id"], Correcao(), por="gestora")
    assert await worth(mesa) == [2000]


async def test_a_correction_that_is_read_before_the_offer_is_imported_is_imported_with_it(mesa: Bancada) -> None:
    await mesa.dizem("plantão\n" + vaga(valor=1500))
    for stage in list(Estagio)[:-1]:
        await mesa.work.work_once(stage, 10, None)
    await mesa.clock.advance(timedelta(minutes=10))
    await mesa.dizem("plantão\n" + vaga(valor=2000))
    for stage in list(Estagio)[:-1]:
        await mesa.work.work_once(stage, 10, None)
    assert await worth(mesa) == []
    await mesa.trabalha()
    assert await worth(mesa) == [2000]


@pytest.mark.parametrize("status", ["anunciada", "reservada", "pendente_confirmacao"])
async def test_a_vacancy_that_a_doctor_was_told_of_keeps_its_price_until_a_person_says_so(
    mesa: Bancada, status: str
) -> None:
    await says(mesa, vaga(valor=1500))
    await mesa.write("UPDATE vagas SET status = :status", status=status)
    await says(mesa, vaga(valor=2000))
    waiting = await last(mesa)
    assert (waiting["status"], waiting["motivo_status"]) == ("aguardando_revisao", "valor_mudou")
    assert await worth(mesa) == [1500]
    revisao = review(mesa.work, Settings())
    (listed,) = await revisao.pendentes(limite=10)
    assert (listed["valor"], listed["anterior_valor"], listed["anterior_status"]) == (2000, 1500, status)
    done = await revisao.aprovar(waiting["id"], Correcao(), por="gestora")
    vacancy = await mesa.one("SELECT id, valor, status FROM vagas")
    assert (done.status, done.vaga_id) == ("duplicada", vacancy["id"])
    assert (vacancy["valor"], vacancy["status"]) == (2000, status)
    note = await mesa.one("SELECT actor, before FROM audit_log WHERE action = 'vaga.corrigir'")
    assert tuple(note.values()) == ("gestora", {"valor": 1500})


async def test_a_change_that_a_person_rejects_leaves_the_vacancy_as_it_is(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500))
    await mesa.write("UPDATE vagas SET status = 'reservada'")
    await says(mesa, vaga(valor=2000))
    await review(mesa.work, Settings()).rejeitar((await last(mesa))["id"], "já combinado", por="gestora")
    assert await worth(mesa) == [1500]
    assert len(await mesa.rows("SELECT 1 FROM vagas_grupo_chaves")) == 1


async def test_a_change_of_a_vacancy_that_was_taken_meanwhile_waits_for_nobody(
    database_url: str, clock: FakeClock
) -> None:
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


async def test_a_change_of_a_vacancy_that_is_over_cannot_be_approved(mesa: Bancada) -> None:
    await says(mesa, vaga(valor=1500))
    await mesa.write("UPDATE vagas SET status = 'reservada'")
    await says(mesa, vaga(valor=2000))
    await mesa.write("UPDATE vagas SET status = 'realizada'")
    with pytest.raises(MudancaSemVaga):
        await review(mesa.work, Settings()).aprovar((await last(mesa))["id"], Correcao(), por="gestora")
    assert await worth(mesa) == [1500]
    assert (await last(mesa))["status"] == "aguardando_revisao"


@pytest.fixture
async def lida(database_url: str, clock: FakeClock) -> AsyncIterator[Bancada]:
    """As the rules read it."""
    async with bancada(database_url, clock, leitor=None) as bench:
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
async def test_a_word_of_the_author_on_what_his_offer_pays_changes_it(lida: Bancada, text: str) -> None:
    offer = await writes(lida, OFERTA.format("19h às 7h", "1.500"))
    await writes(lida, text, citada=offer)
    assert await worth(lida) == [2000]
    told = await lida.rows("SELECT valor_informado FROM vagas_grupo_fontes ORDER BY ordem")
    assert [row["valor_informado"] for row in told] == [1500, 2000]


async def test_a_word_that_answers_nothing_is_of_what_its_author_offered_last(lida: Bancada) -> None:
    await writes(lida, OFERTA.format("19h às 7h", "1.500"))
    await writes(lida, OFERTA.format("7h às 19h", "1.400"))
    await writes(lida, "Corrigindo: valor é 2.000")
    assert await worth(lida) == [1500, 2000]
    await writes(lida, "corrigindo o noturno do Hospital Fictício: o valor é 2.200")
    assert await worth(lida) == [2200, 2000]
    await writes(lida, "corrigindo 20/03 7h às 19h: R$ 1.900")  # by itself it would be an offer without a place
    assert await worth(lida) == [2200, 1900]
    assert await review(lida.work, Settings()).quantas() == 0


@pytest.mark.parametrize(
    "how", [{"autor": OUTRA}, {"grupo": OUTRO_GRUPO}, {"citada": "3EBX"}], ids=["another", "elsewhere", "other_words"]
)
async def test_a_word_of_another_in_another_group_or_on_something_else_changes_nothing(
    lida: Bancada, how: dict[str, str]
) -> None:
    await writes(lida, OFERTA.format("19h às 7h", "1.500"))
    if "citada" in how:
        await writes(lida, "bom dia a todos", id=how["citada"])
    await writes(lida, "Corrigindo: valor é 2.000", **how)
    assert await worth(lida) == [1500]
    assert len(await lida.rows("SELECT 1 FROM vagas_grupo")) == 1


@pytest.mark.parametrize("text", ["valor atualizado?", "o valor mudou? 2.000?", "Corrigindo: 1.800 ou 2.000", "2.000"])
async def test_what_is_asked_or_not_clear_corrects_no_price(lida: Bancada, text: str) -> None:
    offer = await writes(lida, OFERTA.format("19h às 7h", "1.500"))
    await writes(lida, text, citada=offer)
    assert await worth(lida) == [1500]


async def test_one_price_for_a_list_of_several_waits_for_a_person_for_each(lida: Bancada) -> None:
    days = "Hospital Fictício - pediatria\n20/03 noturno R$ 1.500\n21/03 noturno R$ 1.700\nChamar no PV"
    offer = await writes(lida, days)
    await writes(lida, "Corrigindo: valor é 2.000", citada=offer)
    assert await worth(lida) == [1500, 1700]
    revisao = review(lida.work, Settings())
    waiting = sorted(await revisao.pendentes(limite=10), key=lambda row: row["anterior_valor"])
    assert [(row["motivo_status"], row["valor"], row["anterior_valor"]) for row in waiting] == [
        ("valor_mudou", 2000, 1500), ("valor_mudou", 2000, 1700),
    ]  # fmt: skip
    await revisao.aprovar(waiting[1]["id"], Correcao(), por="gestora")
    await revisao.rejeitar(waiting[0]["id"], "só o de sábado", por="gestora")
    assert await worth(lida) == [1500, 2000]


async def test_a_list_at_one_price_follows_its_authors_word_as_a_whole(lida: Bancada) -> None:
    offer = await writes(
        lida, "Hospital Fictício - pediatria\n20/03 noturno\n21/03 noturno\nR$ 1.500 cada. Chamar no PV"
    )
    await writes(lida, "Corrigindo: valor é 2.000", citada=offer)
    assert await worth(lida) == [2000, 2000]
