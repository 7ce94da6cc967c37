"""A customer's list of hospital and speciality names is validated completely before any name is stored. An error
identifies the invalid entry.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from app.contexts.leitura_grupos.texto.vocabulario import DADOS
from app.contexts.nomes.canonicos import NomesErrados, examinados


def hospital(**more: Any) -> dict[str, Any]:
    return {"hospitais": [{"canonico": "Hospital Teste"}, {"canonico": "Hospital Cid", **more}]}


@pytest.mark.parametrize(
    ("document", "onde", "motivo"),
    [
        ([], "{}", "object"),
        ({"hospitais": {}}, "hospitais", "form"),
        ({"hospitais": ["x"]}, "hospitais[0]", "form"),
        ({"hospitais": [{"nome": "x"}]}, "hospitais[0].canonico", "form"),
        (hospital(cidade=["x"]), "hospitais[1].cidade", "form"),
        (hospital(uf="São Paulo"), "hospitais[1].uf", "uf"),
        (hospital(uf=7), "hospitais[1].uf", "form"),
        (hospital(aliases="HC"), "hospitais[1].aliases", "form"),
        (hospital(aliases=["HC", None]), "hospitais[1].aliases[1]", "form"),
        (hospital(aliases=["a\x00b"]), "hospitais[1].aliases[0]", "form"),
        (hospital(aliases=["a\ud800b"]), "hospitais[1].aliases[0]", "form"),
        (hospital(aliases=["(x)"]), "hospitais[1].aliases[0]", "name"),
        (hospital(aliases=["HC", "plantão"]), "hospitais[1].aliases[1]", "name"),
        ({"especialidades": [{"canonico": "Pediatria", "aliases": ["dia"]}]}, "especialidades[0].aliases[0]", "name"),
        ({"especialidades": [{"canonico": "()"}]}, "especialidades[0].canonico", "name"),
        ({"feriados_nacionais": {"25/12": "Natal"}}, "feriados_nacionais", "day"),
        ({"feriados_nacionais": 7}, "feriados_nacionais", "form"),
    ],
)  # fmt: skip
def test_error_names_the_wrong_entry(document: Any, onde: str, motivo: str) -> None:
    with pytest.raises(NomesErrados) as wrong:
        examinados(document)
    assert wrong.value.facts == {"onde": onde, "motivo": motivo}


def test_short_names_and_own_words_are_accepted() -> None:
    mine = hospital(cidade="Belém", uf="PA", aliases=["HC", "UPA 24h", "Santa Casa"])
    for document in ({}, mine, {"especialidades": [{"canonico": "Clínica Médica", "aliases": ["CM", "plantonista"]}]}):
        assert examinados(document) is document
    own = json.loads((Path(DADOS) / "canonicos.json").read_text(encoding="utf-8"))
    examinados({"especialidades": own["especialidades"]})
