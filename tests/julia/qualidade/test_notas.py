"""The evaluation of one conversation, and the guidance derived from many, without a database."""

from typing import Any

import pytest

from app.contexts.qualidade.notas import (
    OBJETOU,
    OPT_OUT,
    REPETIU,
    RESERVOU,
    RESPONDEU_TUDO,
    SEM_RESPOSTA,
    ler_resposta,
    por_regras,
    transcrever,
)
from app.contexts.qualidade.orientacao import condensar
from batuta.kernel.storage.json import Json

FORM: dict[str, Json] = {
    "naturalidade": 8, "persona": 9, "objetivo": 7, "satisfacao": 8, "geral": 8,
    "positivos": ["respondeu com os dados do plantão"], "negativos": [], "sugestoes": ["dizer o valor na primeira mensagem"],
}  # fmt: skip


def came(texto: str, classe: str = "outro") -> dict[str, Any]:
    return {"tipo": "entrada", "autor_tipo": "medico", "conteudo": texto, "classe": classe}


def sent(texto: str, autor: str = "julia") -> dict[str, Any]:
    return {"tipo": "saida", "autor_tipo": autor, "conteudo": texto, "classe": None}


def test_rules_judge_the_goal_and_the_satisfaction_and_leave_the_rest_empty() -> None:
    closed = por_regras("fechou", [sent("oferta"), came("aceito", "aceite"), sent("reservado")])
    assert (closed.geral, closed.objetivo, closed.satisfacao, closed.naturalidade, closed.persona) == (
        9,
        10,
        8,
        None,
        None,
    )
    assert closed.positivos == (RESERVOU, RESPONDEU_TUDO)
    left = por_regras("optout", [sent("oferta"), came("PARAR", "opt_out")])
    assert (left.geral, left.satisfacao, left.negativos) == (2, 1, (OPT_OUT,))


def test_rules_name_a_message_without_an_answer_a_repeated_text_and_an_objection() -> None:
    found = por_regras(
        "respondeu", [sent("oferta"), came("muito longe", "objecao"), sent("oferta"), came("e o valor?", "pergunta")]
    )
    assert found.negativos == (SEM_RESPOSTA, REPETIU, OBJETOU)
    assert (found.geral, len(found.sugestoes)) == (2, 2)


def test_scores_stay_between_one_and_ten() -> None:
    worst = [
        sent("a"),
        sent("a"),
        came("1", "objecao"),
        came("2", "objecao"),
        came("3", "objecao"),
        came("4", "humano"),
    ]
    assert (por_regras("novo", worst).geral, por_regras("novo", worst).satisfacao) == (1, 1)
    assert por_regras("novo", []).geral >= 1


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {},
        [],
        {**FORM, "geral": 11},
        {**FORM, "geral": 0},
        {**FORM, "geral": 7.5},
        {**FORM, "geral": True},
        {**FORM, "geral": "8"},
        {**FORM, "positivos": "bom"},
        {**FORM, "negativos": [1]},
        {name: value for name, value in FORM.items() if name != "persona"},
    ],
)
def test_answer_in_another_form_is_unreadable(answer: Any) -> None:
    assert ler_resposta(answer) is None


def test_answer_in_form_is_read_with_few_short_lines_without_numbers_of_people() -> None:
    long: dict[str, Json] = {
        **FORM,
        "positivos": [f"linha {n}\nligou para 11 98765-4321" for n in range(9)],
        "extra": 1,
    }
    read = ler_resposta(long)
    assert read is not None
    assert (read.geral, read.naturalidade, len(read.positivos)) == (8, 8, 5)
    assert read.positivos[0] == "linha 0 ligou para [telefone]"


def test_conversation_for_the_model_contains_neither_the_name_nor_the_number_of_the_doctor() -> None:
    said = transcrever(
        [
            sent("Oi Doutora Fictícia, tudo bem?"),
            came("sou a FICTÍCIA, cpf 529.982.247-25, 11 98765-4321"),
            sent("ok", "humano"),
        ],
        ["Doutora", "Fictícia da Silva", None],
    )
    assert said == "Julia: Oi [nome] [nome], tudo bem?\nmédico: sou a [nome], cpf [cpf], [telefone]\nequipe: ok"


def evaluated(nota: int, correcao: str | None = None, **lists: list[str]) -> dict[str, Any]:
    corrected = nota if correcao else None
    empty: dict[str, list[str]] = {"positivos": [], "negativos": [], "sugestoes": []}
    return {"nota": nota, "nota_corrigida": corrected, "correcao": correcao, **empty, **lists}


def test_guidance_has_the_corrections_first_and_the_most_frequent_sentences_of_good_and_bad_ones() -> None:
    made = condensar(
        [
            evaluated(3, "não insistir depois de uma recusa"),
            evaluated(9, positivos=["clara"]),
            evaluated(8, positivos=["clara", "breve"], negativos=["longa"]),
            evaluated(4, positivos=["cordial"], negativos=["repetiu"], sugestoes=["variar"]),
        ]
    )
    assert made is not None
    assert made.texto == (
        "Correções da equipe:\n- (nota 3) não insistir depois de uma recusa\nContinuar:\n- clara\n- breve\n"
        "Evitar:\n- repetiu\nMelhorar:\n- variar"
    )
    assert made.base == {"avaliacoes": 4, "correcoes": 1, "exemplos_bons": 2, "exemplos_ruins": 2}


def test_no_guidance_is_made_of_evaluations_that_say_nothing() -> None:
    assert condensar([]) is None
    assert condensar([evaluated(6), evaluated(9)]) is None
