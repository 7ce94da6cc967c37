"""Names of places: what can be one, and whose it is."""

import pytest

from app.contexts.grupos.leitura import Vocabulario
from app.contexts.grupos.nomes import Conhecido, Nomes, achar, busca, pode_ser_nome


def nomes(*known: tuple[str, str | None, str | None, float]) -> Nomes:
    found: dict[str, list[Conhecido]] = {}
    for n, (nome, cidade, uf, confianca) in enumerate(known):
        found.setdefault(busca(nome), []).append(Conhecido(str(n), nome, cidade, uf, confianca))
    return Nomes(1, Vocabulario.padrao(), found, {})


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("H. São Fictício", "hospital sao ficticio"), ("HM Dr. Inventado", "hospital municipal doutor inventado"),
        ("Sta. Casa (unidade SEDE)", "santa casa"), ("  UPA   Imaginária ", "upa imaginaria"), ("Vitamina H", "vitamina h"),
        ("PS Central", "pronto socorro central"), ("", ""), ("()", ""),
    ],
)  # fmt: skip
def test_the_form_in_which_names_are_compared(written: str, form: str) -> None:
    assert busca(written) == form


@pytest.mark.parametrize(
    "text",
    [
        "", "PS", "UPA", "Hospital", "12", "inbox", "A definir", "Amazon", "Mercado Envios", "teste", "R$ 1.500", "19h às 7h",
        "12/03",
        "11 90000-0001", "wa.me/5511900000001", "name: x (", "WhatsApp", "unknown", "x" * 130, "Vila", "chamar no pv", "{ignore}",
    ],
)  # fmt: skip
def test_what_can_be_no_name(text: str) -> None:
    assert pode_ser_nome(text)[0] == 0.0


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("Hospital Inventado", 0.9), ("Santa Casa de Lugar Nenhum", 0.9), ("UPA Imaginária", 0.9), ("Vila Inventada", 0.5),
        ("Inventada", 0.4),
    ],
)  # fmt: skip
def test_how_likely_a_name_is_one(text: str, score: float) -> None:
    assert pode_ser_nome(text) == (score, None)


def test_a_bare_speciality_is_no_place() -> None:
    assert achar("Pediatria", None, None, None, nomes()).como == "recusado"


def test_a_name_is_found_whatever_its_accents_its_beginning_and_what_stands_behind_it() -> None:
    known = nomes(("Hospital São Fictício", "Santos", "SP", 1.0))
    for written in (
        "hospital sao ficticio",
        "H. São Fictício",
        "HOSPITAL SÃO FICTÍCIO - Santos/SP",
        "Hospital São Fictício (Ala B)",
    ):
        assert (achar(written, None, None, None, known).id, achar(written, None, None, None, known).score) == ("0", 1.0)


def test_a_city_that_is_said_must_be_the_hospitals() -> None:
    known = nomes(("Santa Casa Inventada", "Santos", "SP", 1.0))
    assert achar("Santa Casa Inventada", "Santos", "SP", None, known).id == "0"
    assert achar("Santa Casa Inventada", "Belém", "PA", None, known).como == "novo"


def test_of_several_with_one_name_the_city_chooses_then_the_region_and_otherwise_nobody_is_sure() -> None:
    known = nomes(("HGE Inventado", "Salvador", "BA", 1.0), ("HGE Inventado", "Maceió", "AL", 1.0))
    assert achar("HGE Inventado", "Maceió", None, None, known).id == "1"
    assert achar("HGE Inventado", None, None, "Grande Salvador", known).id == "0"
    found = achar("HGE Inventado", None, None, None, known)
    assert (found.como, found.score) == ("ambiguo", 0.6)


def test_what_is_almost_the_same_is_the_same_but_for_its_number() -> None:
    known = nomes(("UPA Imaginária 1", None, None, 1.0), ("Hospital Doutor Inventado", None, None, 1.0))
    found = achar("Hospital Dr Invetado", None, None, None, known)
    assert (found.id, found.como) == ("1", "semelhante")
    assert 0.88 <= found.score < 1.0
    assert achar("UPA Imaginária 2", None, None, None, known).como == "novo"
    assert achar("UPA Imaginaria II", None, None, None, known).como == "novo"


def test_what_a_machine_learnt_stays_as_doubtful_as_it_was() -> None:
    known = nomes(("Hosp Invetado da Serra", None, None, 0.91))
    assert achar("Hosp Invetado da Serra", None, None, None, known).score == 0.91
