"""Lists of received messages with their results, and of open vacancies, on both databases."""

from datetime import date, timedelta

from app.contexts.esteira.leituras import FINAIS
from app.contexts.grupos.recebidas import MotivoDoDescarte, mensagem_em_palavras
from app.contexts.grupos.relato import vaga_em_palavras
from app.contexts.vagas.abertas import aberta_em_palavras
from tests.julia.grupos.bancada import Bancada, vaga


async def _listed(mesa: Bancada, **asked: object) -> list[dict[str, object]]:
    rows = await mesa.groups.recebidas.lista(limite=50, **asked)  # type: ignore[arg-type]
    return [mensagem_em_palavras(row, mesa.work.zone, com_texto=True) for row in rows]


async def test_discarded_message_shows_its_stage_score_and_reason(mesa: Bancada) -> None:
    await mesa.dizem(vaga())
    await mesa.dizem("a chave do carro azul sumiu ontem cedo")
    await mesa.dizem("plantão no hospital, alguém sabe como chega lá?")
    await mesa.dizem("oi")
    await mesa.trabalha()
    gone = {each["texto"]: each for each in await _listed(mesa, descartadas=True)}
    assert {text: (each["estagio"], each["motivo"]) for text, each in gone.items()} == {
        "a chave do carro azul sumiu ontem cedo": ("heuristica", "score_baixo"),
        "plantão no hospital, alguém sabe como chega lá?": ("classificacao", "nao_eh_oferta"),
        "oi": ("entrada", "ignorada_curta"),
    }
    talk = gone["plantão no hospital, alguém sabe como chega lá?"]
    assert (talk["score"], talk["categoria"], talk["confianca"]) == (0.55, "conversa", 0.9)
    assert len(await _listed(mesa)) == 4


async def test_list_filters_by_reason_counts_reasons_and_has_pages(mesa: Bancada) -> None:
    for n in range(3):
        await mesa.dizem(f"a chave do carro {n} sumiu ontem cedo")
    await mesa.dizem("oi")
    await mesa.trabalha()
    assert await mesa.groups.recebidas.motivos() == {"score_baixo": 3, "ignorada_curta": 1}
    chosen = await _listed(mesa, motivo=MotivoDoDescarte.SCORE_BAIXO)
    assert [each["motivo"] for each in chosen] == ["score_baixo"] * 3
    rows = [await mesa.groups.recebidas.lista(limite=1, pular=n, motivo=MotivoDoDescarte.SCORE_BAIXO) for n in range(4)]
    assert [[each["id"] for each in page] for page in rows] == [[each["id"]] for each in chosen] + [[]]
    await mesa.clock.advance(timedelta(days=8))
    assert await mesa.groups.recebidas.motivos() == {}


async def test_text_is_shown_only_on_request(mesa: Bancada) -> None:
    await mesa.dizem("a chave do carro azul sumiu ontem cedo")
    (row,) = await mesa.groups.recebidas.lista(limite=1)
    assert "chave" not in str(mensagem_em_palavras(row, mesa.work.zone, com_texto=False))


def test_every_final_reason_of_the_heuristic_can_be_filtered() -> None:
    assert set(MotivoDoDescarte) >= FINAIS


async def test_open_vacancy_is_listed_with_both_ids_until_it_is_closed(mesa: Bancada) -> None:
    await mesa.dizem(vaga(dia="2026-03-21"))
    await mesa.dizem(vaga(dia="2026-03-20"))
    await mesa.trabalha()
    those = mesa.groups.abertas
    first, second = await those.lista(limite=10)
    document = aberta_em_palavras(first, mesa.work.zone, com_contato=False)
    assert (document["data"], document["hospital"], document["status"]) == ("2026-03-20", "Hospital Fictício", "aberta")
    assert "contato_whatsapp" not in document
    assert [row["id"] for row in await those.lista(limite=10, dia=date(2026, 3, 21))] == [second["id"]]
    reviewing = mesa.groups.revisao
    by_either = [(await reviewing.ver(document[name]))[0]["id"] for name in ("revisao_id", "vaga_id")]
    assert by_either == [document["revisao_id"], document["revisao_id"]]
    await mesa.write(
        "UPDATE vagas SET status = 'fechada', fechada_em = :now WHERE id = :id", id=first["id"], now=mesa.clock.now()
    )
    assert (await those.quantas(), [row["id"] for row in await those.lista(limite=10)]) == (1, [second["id"]])
    assert [row["id"] for row in await those.lista(limite=10, fechadas=True)] == [first["id"]]
    row, sources = await reviewing.ver(document["revisao_id"])
    shown = vaga_em_palavras(row, mesa.work.zone, sources)
    assert (shown["status"], shown["vaga"]["id"], shown["vaga"]["status"]) == ("importada", first["id"], "fechada")
    assert shown["vaga"]["fechada_em"] is not None
