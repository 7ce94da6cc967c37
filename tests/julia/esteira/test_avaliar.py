"""``batuta grupos avaliar`` reads a file of messages and writes the fields that the rules read from each message."""

import json
from pathlib import Path

import pytest

from tests.command import Command

JULIA = ("--app", "app.main:work", "--lang", "en")
CANONICOS = {"hospitais": [{"canonico": "Hospital Teste do Norte", "cidade": "Belém", "uf": "PA", "aliases": ["HTN"]}]}
OFFER = {
    "id": "m1",
    "texto": "Preciso de clínico no HTN amanhã SN, 19h às 7h, R$ 1.500. Fulana 91 98100-0001",
    "enviado_em": "2026-08-03T22:30:00-03:00",
    "grupo": "Plantões Teste",
    "regiao": "Belém/PA",
}
TALK = {
    "id": "m2",
    "texto": "Bom plantão a todos",
    "enviado_em": "2026-08-03T07:00:00-03:00",
    "grupo": None,
    "regiao": None,
}


def written(folder: Path, *rows: object) -> None:
    (folder / "mensagens.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n")


def test_evaluation_writes_readings_in_the_form_of_the_labels(batuta: Command, folder: Path) -> None:
    written(folder, OFFER, TALK)
    (folder / "canonicos.json").write_text(json.dumps(CANONICOS))
    code, said, _ = batuta(
        *JULIA,
        "grupos",
        "avaliar",
        "mensagens.jsonl",
        "--saida",
        "lidas.jsonl",
        "--canonicos",
        "canonicos.json",
        "--json",
    )
    assert code == 0
    assert json.loads(said) == {"mensagens": 2, "ofertas": 1, "vagas": 1, "saida": "lidas.jsonl"}
    offer, talk = [json.loads(line) for line in (folder / "lidas.jsonl").read_text().splitlines()]
    assert (talk["id"], talk["eh_oferta"], talk["categoria"], talk["vagas"]) == ("m2", False, "conversa", [])
    assert (offer["id"], offer["eh_oferta"], offer["categoria"]) == ("m1", True, "oferta")
    [vaga] = offer["vagas"]
    assert (vaga.pop("confianca") >= 0.95, vaga.pop("destino")) == (True, "importada")
    assert [vaga] == [
        {
            "hospital": "Hospital Teste do Norte",
            "cidade": "Belém",
            "uf": "PA",
            "especialidade": "Clínica Médica",
            "data": "2026-08-04",
            "periodo": "noturno",
            "hora_inicio": "19:00",
            "hora_fim": "07:00",
            "valor": 1500,
            "valor_tipo": "fixo",
            "forma_pagamento": None,
            "contato_nome": "Fulana",
            "contato_whatsapp": "5591981000001",
        }
    ]


def test_evaluation_writes_the_decision_of_the_pipeline(batuta: Command, folder: Path) -> None:
    unclear = "Hospital Teste do Norte e UPA Amostra, clínica ou pediatria, de 05/08 a 20/08, manhã, tarde e noite, 700 a 1.900"
    refused = {
        **OFFER,
        "id": "m3",
        "texto": "HTN sexta SN clínico R$ 1.500 bitcoin lucro garantido clique no link e ganhe",
    }
    written(folder, {**OFFER, "texto": unclear}, refused)
    (folder / "canonicos.json").write_text(json.dumps(CANONICOS))
    arguments = ("mensagens.jsonl", "--saida", "lidas.jsonl", "--canonicos", "canonicos.json")
    code, _, _ = batuta(*JULIA, "grupos", "avaliar", *arguments)
    assert code == 0
    listed, scam = [json.loads(line) for line in (folder / "lidas.jsonl").read_text().splitlines()]
    assert {each["destino"] for each in listed["vagas"]} == {"revisao"}
    assert all(each["confianca"] < 0.95 for each in listed["vagas"])
    assert "importada" not in {each["destino"] for each in scam["vagas"]}


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("{", "line 1 is not JSON"),
        (json.dumps({"id": "m1", "texto": "oi"}), "line 1 lacks enviado_em"),
        (json.dumps({**OFFER, "enviado_em": "ontem"}), "line 1: enviado_em must be"),
        (json.dumps({**OFFER, "enviado_em": "2026-08-03T07:00:00"}), "line 1: enviado_em must be"),
        ("[]", "line 1 lacks id, texto, enviado_em"),
    ],
)
def test_bad_line_is_refused_with_its_number(batuta: Command, folder: Path, row: str, complaint: str) -> None:
    (folder / "mensagens.jsonl").write_text(row + "\n")
    code, _, wrong = batuta(*JULIA, "grupos", "avaliar", "mensagens.jsonl", "--saida", "lidas.jsonl")
    assert code != 0
    assert complaint in " ".join(wrong.split())
    assert not (folder / "lidas.jsonl").exists()


def test_names_in_another_form_are_refused(batuta: Command, folder: Path) -> None:
    written(folder, OFFER)
    (folder / "canonicos.json").write_text(json.dumps({"hospitais": [{"nome": "Hospital Teste"}]}))
    code, _, wrong = batuta(
        *JULIA, "grupos", "avaliar", "mensagens.jsonl", "--saida", "lidas.jsonl", "--canonicos", "canonicos.json"
    )
    assert code != 0
    assert "docs/grupos.md" in wrong
