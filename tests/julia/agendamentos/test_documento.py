"""Identity documents as people type them. Every number here is invented; the valid ones are common textbook
examples.
"""

import pytest

from app.contexts.agendamentos.documento.documento import (
    CNS_INVALIDO,
    CPF_DE_OUTRA_PESSOA,
    CPF_INVALIDO,
    cns_valido,
    cpf_valido,
    documento_de,
)

CPF, OTHER = "52998224725", "11144477735"


def read(texto: str) -> tuple[str | None, ...]:
    lido = documento_de(texto)
    return lido.cpf, lido.rg, lido.orgao_emissor, lido.uf_emissor


@pytest.mark.parametrize(
    ("texto", "lido"),
    [
        ("CPF: 529.982.247-25 RG 12.345.678-9 SSP/SP", (CPF, "123456789", "SSP", "SP")),
        ("RG: 12.345.678-x ssp / sp / CPF 529982247-25", (CPF, "12345678X", "SSP", "SP")),
        ("C.P.F. nº 529 982 247 25\nR.G. nº 12345678-9 DETRAN-RJ", (CPF, "123456789", "DETRAN", "RJ")),
        ("CPF 52998224725 RG MG-11.222.333 PC/MG", (CPF, "11222333", "PC", "MG")),
        ("RG MG 11.222.333 / SSPMG CPF 52998224725", (CPF, "11222333", "SSP", "MG")),
        ("cpf529.982.247-25rg12.345.678-xssp/sp", (CPF, "12345678X", "SSP", "SP")),
        ("529.982.247-25 / 12.345.678-9 SESP-PR", (CPF, "123456789", "SESP", "PR")),
        ("órgão emissor: DETRAN UF: RJ RG: 09.876.543-2", (None, "098765432", "DETRAN", "RJ")),
        ("RG: 1.234.567 - 2ª via - SSP/BA exp. 12/03/2015", (None, "1234567", "SSP", "BA")),
        ("DOC. IDENT. Nº 5.666.777 - SESP - PR", (None, "5666777", "SESP", "PR")),
        ("RG:12345678 (sem órgão)", (None, "12345678", None, None)),
        ("CPF/RG 529.982.247-25 / 12.345.678-9", (CPF, "123456789", None, None)),
        ("RG 012345672001-2 SSP/MA CPF 529.982.247-25", (CPF, "0123456720012", "SSP", "MA")),
        ("Polícia Civil/PA RG 3344556 CPF 529.982.247-25", (CPF, "3344556", "PC", "PA")),
        ("52998224725 (CPF) / 1234567 (RG) SSP-BA", (CPF, "1234567", "SSP", "BA")),
        ("RG 18.234.567 Polícia Civil/MG", (None, "18234567", "PC", "MG")),
        ("52998224725", (CPF, None, None, None)),
        ("CIN 529.982.247-25", (CPF, None, None, None)),
        ("CPF 529.982.247-25 / 111.444.777-35", (CPF, None, None, None)),
    ],
)  # fmt: skip
def test_cpf_and_rg_are_found_with_their_issuer(texto: str, lido: tuple[str | None, ...]) -> None:
    assert read(texto) == lido


@pytest.mark.parametrize(
    "texto",
    [
        "CPF da mãe: 529.982.247-25",
        "529.982.247-25 (mãe)",
        "Responsável: CPF 529.982.247-25",
        "CPF do pai 52998224725",
    ],
)
def test_cpf_of_a_relative_is_never_the_patients(texto: str) -> None:
    lido = documento_de(texto)
    assert (lido.cpf, lido.avisos) == (None, (CPF_DE_OUTRA_PESSOA,))


def test_patients_cpf_is_found_beside_a_relatives() -> None:
    assert read("Mãe: CPF 529.982.247-25; Paciente: CPF 111.444.777-35") == (OTHER, None, None, None)
    assert read("CPF 111.444.777-35 / CPF da mãe 529.982.247-25")[0] == OTHER
    assert read("CPF da mãe 529.982.247-25 RG 12.345.678-9 SSP/SP") == (None, "123456789", "SSP", "SP")
    assert read("RG do pai 1.234.567 SSP/SP, RG 7.654.321")[1:] == ("7654321", None, None)


@pytest.mark.parametrize(
    "label", ["CNH", "CNH nº", "CNS", "Cartão SUS", "CNPJ", "título de eleitor", "CTPS", "passaporte", "RNE", "CRM", "tel", "PIS"]
)  # fmt: skip
def test_number_labelled_as_another_document_is_not_a_cpf(label: str) -> None:
    assert read(f"{label} {CPF}") == (None, None, None, None)
    assert read(f"{label} {CPF} CPF {OTHER}")[0] == OTHER


@pytest.mark.parametrize("texto", ["CPF 529.982.247-26", "CPF 111.111.111-11", "CPF 529.982.247-2", "cpf 5299822472"])
def test_cpf_with_wrong_check_digits_is_rejected_with_a_warning(texto: str) -> None:
    assert (read(texto)[0], documento_de(texto).avisos) == (None, (CPF_INVALIDO,))


def test_sus_card_has_its_own_check_digit() -> None:
    assert cns_valido("898001160660761")
    assert not cns_valido("898001160660762")
    assert documento_de("SUS 898001160660761").cns == "898001160660761"
    assert documento_de("CNS 898001160660762").avisos == (CNS_INVALIDO,)


def test_cpf_check_digits_follow_the_official_rule() -> None:
    assert [cpf_valido(each) for each in (CPF, OTHER, "52998224724", "00000000000", "5299822472", "abc")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip
