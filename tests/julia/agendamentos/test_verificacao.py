"""A value in a language model's answer is accepted only if the text of the appointment contains the value."""

import pytest

from app.contexts.agendamentos.documento.documento import Documento
from app.contexts.agendamentos.endereco.endereco import Endereco
from app.contexts.agendamentos.verificacao import documento_provado, endereco_provado, pode_ter_documento
from batuta.kernel.storage.json import Json

TEXT = "Sítio são josé KM 12, entrada 5 depois da ponte, Recife - PE, 50.030-230, fone 3333-4444"


@pytest.mark.parametrize(
    ("field", "said", "counts"),
    [
        ("logradouro", "Sitio Sao Jose", "Sítio são josé"),  # in the spelling of the text
        ("logradouro", "Sítio São João", None),
        ("logradouro", "josé entrada", None),  # the words of this value are in the text, but not next to each other
        ("cidade", "RECIFE", "Recife"),
        ("cidade", "Rec", None),
        ("bairro", "", None),
        ("bairro", "x" * 161, None),
        ("bairro", ["Recife"], None),
        ("numero", "12", "12"),
        ("numero", "125", None),  # from two separate numbers
        ("numero", "2", None),  # a part of a number
        ("numero", "12; DROP TABLE", None),
        ("uf", "pe", "PE"),
        ("uf", "SP", None),
        ("uf", "XX", None),
        ("cep", "50030230", "50030-230"),
        ("cep", "33334444", "33334-444"),
        ("cep", "50030-231", None),
        ("cep", None, None),
    ],
)
def test_address_keeps_only_values_found_in_the_text(field: str, said: Json, counts: str | None) -> None:
    assert endereco_provado({field: said}, TEXT) == (Endereco(**{field: counts}) if counts else Endereco())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "said", "counts"),
    [
        ("nr 529982 24725", {"cpf": "529.982.247-25"}, Documento(cpf="52998224725")),
        ("nr 529982 x 24725", {"cpf": "52998224725"}, Documento()),
        ("nr 52998224724", {"cpf": "52998224724"}, Documento()),  # the check digits are wrong
        ("nr 1 52998224725", {"cpf": "52998224725"}, Documento(cpf="52998224725")),
        ("nr 152998224725", {"cpf": "52998224725"}, Documento()),
        ("ssp 12.345.67-x", {"rg": "1234567X", "orgao_emissor": "SSP"}, Documento(rg="1234567X", orgao_emissor="SSP")),
        ("nr 1234567 pe", {"rg": "1234567", "uf_emissor": "PE"}, Documento(rg="1234567")),
        ("nr 1234567", {"rg": "1234567X"}, Documento()),
        ("nr 1234567", {"rg": "1234567", "orgao_emissor": "SSP", "uf_emissor": "SP"}, Documento(rg="1234567")),
        ("nr 1234567 SSP", {"orgao_emissor": "SSP"}, Documento()),  # an issuer without a document
        ("52998224725", {"cpf": "52998224725", "rg": "52998224725"}, Documento(cpf="52998224725")),
        ("898 0012 3456 7890", {"cns": "898001234567890"}, Documento()),
    ],
)  # fmt: skip
def test_document_keeps_only_values_found_in_the_text(text: str, said: Json, counts: Documento) -> None:
    assert documento_provado(said, text) == counts


@pytest.mark.parametrize("said", [None, [], "tudo", 7, {"cpf": 52998224725}, {"cpf": {"$ne": None}}])
def test_answer_of_the_wrong_shape_is_ignored(said: Json) -> None:
    assert (documento_provado(said, "52998224725"), endereco_provado(said, TEXT)) == (Documento(), Endereco())


@pytest.mark.parametrize(
    ("texto", "dito"),
    [
        ("CNH 52998224725", {"cpf": "52998224725"}),
        ("CNH 529.982.247-25", {"rg": "52998224725"}),
        ("CNH 529 982 247 25", {"cpf": "52998224725"}),
        ("título 529982247250", {"rg": "529982247250"}),
        ("tel 11 98765-4321", {"rg": "11987654321"}),
        ("tel 11 98765 4321", {"rg": "987654321"}),
        ("fone (11) 3456-7890", {"rg": "1134567890"}),
        ("(11) 98765-4321", {"rg": "987654321"}),
        ("+55 11 98765-4321", {"rg": "5511987654321"}),
        ("11987654321", {"rg": "11987654321"}),
        ("CNPJ 11.222.333/0001-81", {"rg": "11222333000181"}),
        ("11.222.333/0001-81", {"rg": "11222333000181"}),
        ("passaporte 12345678", {"rg": "12345678"}),
        ("nasc 11/03/1980", {"rg": "11031980"}),
        ("nasc. 11031980", {"rg": "11031980"}),
        ("1980-03-11", {"rg": "19800311"}),
        ("CNS 700000000000005", {"rg": "70000000000000"}),
        ("CRM 123456", {"rg": "123456"}),
        ("mãe 12345678", {"rg": "12345678"}),
    ],
)
def test_number_labelled_or_shaped_as_something_else_is_not_a_document(texto: str, dito: dict[str, Json]) -> None:
    assert not documento_provado(dito, texto).diz_algo
    assert not pode_ter_documento(texto) or "CNS" in texto


@pytest.mark.parametrize(
    ("texto", "dito"),
    [
        ("doc do paciente 12345678", {"rg": "12345678"}),
        ("RG 11987654321", {"rg": "11987654321"}),
        ("numero 529982 24725", {"cpf": "52998224725"}),
        ("12345678 CNH 52998224725", {"rg": "12345678"}),
        ("CNH 123; 12345678", {"rg": "12345678"}),
    ],
)
def test_unlabelled_number_may_be_a_document(texto: str, dito: dict[str, Json]) -> None:
    found = documento_provado(dito, texto)
    assert {name: getattr(found, name) for name in dito} == dito
    assert pode_ter_documento(texto)
