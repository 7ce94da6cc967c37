"""Convert triggers and selections to JSON objects for commands and HTTP routes. The objects contain ids instead of
names and phone numbers.
"""

from typing import Any

from app.contexts.gatilhos.model import REGRAS, Gatilho, Simulacao, SituacaoDoGatilho


def gatilho_em_palavras(each: SituacaoDoGatilho) -> dict[str, Any]:
    rule = REGRAS[each.gatilho]
    return {
        "nome": each.gatilho.value,
        "chave": rule.chave,
        "suspenso_por": each.suspenso_por,
        "limite": rule.limite,
        "na_fila": each.na_fila,
        "ultimos_7_dias": {
            "enfileiradas": each.enfileiradas,
            "enviados": each.enviados,
            "respondidos": each.respondidos,
            "avaliacoes": dict(each.avaliacoes),
        },
    }


def simulacao_em_palavras(each: Simulacao) -> dict[str, Any]:
    selected = each.selecao
    chosen = [str(row["id"]) for row in selected.escolhidos]
    return {
        "nome": each.gatilho.value,
        "suspenso_por": each.suspenso_por,
        "encontrados": selected.encontrados,
        "selecionados": [] if each.gatilho is Gatilho.OFERTA else chosen,
        "vagas": [
            {"vaga": offer.vaga_id, "medicos": list(offer.medicos), "por_motivo": dict(offer.impedidos)}
            for offer in each.ofertas
        ],
        "restantes": selected.restantes,
        "por_motivo": dict(selected.impedidos),
        "exemplos": {reason: list(ids) for reason, ids in selected.exemplos.items()},
        "sem_selecao": selected.sem_selecao,
    }
