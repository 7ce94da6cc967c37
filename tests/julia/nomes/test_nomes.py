"""Hospital names: which names are valid, and to which hospital a name belongs."""

import pytest
from rapidfuzz import fuzz

from app.contexts.leitura_grupos.api import Vocabulario
from app.contexts.leitura_grupos.texto.vocabulario import vale_em
from app.contexts.nomes.nomes import SEMELHANTE, Conhecido, Nomes, achar, busca, pode_ser_nome
from app.contexts.vagas.importacao import CERTO


def nomes(*known: tuple[str, str | None, str | None, float]) -> Nomes:
    found: dict[str, list[Conhecido]] = {}
    for n, (nome, cidade, uf, confianca) in enumerate(known):
        found.setdefault(busca(nome), []).append(Conhecido(str(n), nome, cidade, uf, confianca))
    return Nomes(1, Vocabulario.padrao(), found, {})


def is_alike(one: str, other: str) -> bool:
    return fuzz.token_sort_ratio(busca(one), busca(other)) >= SEMELHANTE


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("H. São Fictício", "hospital sao ficticio"), ("HM Dr. Inventado", "hospital municipal doutor inventado"),
        ("Sta. Casa (unidade SEDE)", "santa casa"), ("  UPA   Imaginária ", "upa imaginaria"), ("Vitamina H", "vitamina h"),
        ("PS Central", "pronto socorro central"), ("", ""), ("()", ""),
    ],
)  # fmt: skip
def test_normal_form_of_names(written: str, form: str) -> None:
    assert busca(written) == form


@pytest.mark.parametrize(
    "text",
    [
        "", "PS", "UPA", "Hospital", "12", "inbox", "A definir", "Amazon", "Mercado Envios", "teste", "R$ 1.500", "19h às 7h",
        "12/03",
        "11 90000-0001", "wa.me/5511900000001", "name: x (", "WhatsApp", "unknown", "x" * 130, "Vila", "chamar no pv", "{ignore}",
    ],
)  # fmt: skip
def test_impossible_names_have_score_zero(text: str) -> None:
    assert pode_ser_nome(text)[0] == 0.0


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("Hospital Inventado", 0.9), ("Santa Casa de Lugar Nenhum", 0.9), ("UPA Imaginária", 0.9), ("Vila Inventada", 0.5),
        ("Inventada", 0.4),
    ],
)  # fmt: skip
def test_score_of_possible_names(text: str, score: float) -> None:
    assert pode_ser_nome(text) == (score, None)


def test_bare_speciality_is_not_a_hospital() -> None:
    assert achar("Pediatria", None, None, None, nomes()).como == "recusado"


def test_name_is_found_despite_accents_prefixes_and_suffixes() -> None:
    known = nomes(("Hospital São Fictício", "Santos", "SP", 1.0))
    for written in (
        "hospital sao ficticio",
        "H. São Fictício",
        "HOSPITAL SÃO FICTÍCIO - Santos/SP",
        "Hospital São Fictício (Ala B)",
    ):
        assert (achar(written, None, None, None, known).id, achar(written, None, None, None, known).score) == ("0", 1.0)


def test_named_city_must_be_the_hospitals() -> None:
    known = nomes(("Santa Casa Inventada", "Santos", "SP", 1.0))
    assert achar("Santa Casa Inventada", "Santos", "SP", None, known).id == "0"
    assert achar("Santa Casa Inventada", "Belém", "PA", None, known).como == "novo"


def test_city_then_region_decide_between_equal_names_or_none_is_certain() -> None:
    known = nomes(("HGE Inventado", "Salvador", "BA", 1.0), ("HGE Inventado", "Maceió", "AL", 1.0))
    assert achar("HGE Inventado", "Maceió", None, None, known).id == "1"
    assert achar("HGE Inventado", None, None, "Grande Salvador", known).id == "0"
    found = achar("HGE Inventado", None, None, None, known)
    assert (found.como, found.score) == ("ambiguo", 0.6)


def test_near_match_is_the_same_hospital_unless_its_number_differs() -> None:
    known = nomes(("UPA Imaginária 1", None, None, 1.0), ("Hospital Doutor Inventado", None, None, 1.0))
    found = achar("Hospital Dr Invetado", None, None, None, known)
    assert (found.id, found.como) == ("1", "semelhante")
    assert 0.88 <= found.score < 1.0
    assert achar("UPA Imaginária 2", None, None, None, known).como == "novo"
    assert achar("UPA Imaginaria II", None, None, None, known).como == "novo"


def test_learnt_name_keeps_its_uncertainty() -> None:
    known = nomes(("Hosp Invetado da Serra", None, None, 0.91))
    assert achar("Hosp Invetado da Serra", None, None, None, known).score == 0.91


@pytest.mark.parametrize(
    ("known", "written"),
    [
        ("Hospital São José", "Hospital São Jorge"), ("UPA Vila Maria", "UPA Vila Mariana"), ("UPA Zona Leste", "UPA Zona Oeste"),
        ("Hospital Santa Lúcia", "Hospital Santa Luzia"), ("Hospital Santa Paula", "Hospital São Paulo"),
        ("Hospital Municipal de Santo Amaro", "Hospital Municipal de Santo André"),
        ("Hospital Municipal de Fictícia", "Hospital Estadual de Fictícia"),
        ("Hospital Inventado da Serra", "Hospital Infantil Inventado da Serra"),
        ("Hospital Inventado Central", "Hospital Inventada Central"),
    ],
)  # fmt: skip
def test_names_that_differ_in_a_word_are_two_hospitals_and_need_review(known: str, written: str) -> None:
    found = achar(written, None, None, None, nomes((known, None, None, 1.0)))
    assert (found.id, found.como) == (None, "novo")
    assert found.score < CERTO or not is_alike(known, written)


@pytest.mark.parametrize(
    ("known", "written"),
    [
        ("Hospital Inventado da Serra", "Hospital Inventdo da Serra"), ("Hospital Thereza Fictícia", "Hospital Tereza Ficticia"),
        ("Hospital São Luiz Fictício", "Hospital São Luís Fictício"), ("Hospital Fictício de Lugar", "Hosp. Fictício do Lugar"),
        ("Hospital Municipal Doutor Fictício Inventado da Serra de Lugar", "Hospital Doutor Fictício Inventado da Serra de Lugar"),
        ("Hospital Souza Inventado", "Hospital Sousa Inventado"), ("Hospital Doutor Inventado", "Hospital Inventado Dr."),
        ("Hospital Municipal Fictício", "Hosp. Mun. Fictício"), ("Hospital Inventado Geral", "Hospital Invetnado Geral"),
    ],
)  # fmt: skip
def test_name_in_another_spelling_is_the_same_hospital(known: str, written: str) -> None:
    found = achar(written, None, None, None, nomes((known, None, None, 1.0)))
    assert found.id == "0"


def test_word_of_another_known_hospital_is_not_a_typing_error() -> None:
    place = ("Hospital Lamarques Inventado", None, None, 1.0)
    assert achar("Hospital Lamarquez Inventado", None, None, None, nomes(place)).id == "0"
    assert achar("Hospital Lamarque Inventado", None, None, None, nomes(place)).id == "0"
    other = ("UPA Lamarque", None, None, 1.0)
    assert achar("Hospital Lamarque Inventado", None, None, None, nomes(place, other)).como == "novo"


def test_near_match_is_not_transitive() -> None:
    known = nomes(("Hospital Regional Aurora", None, None, 1.0))
    known.hospitais[busca("Hospital Regional Auroma")] = [Conhecido("0", "Hospital Regional Aurora", None, None, 0.95)]  # type: ignore[index]
    found = achar("Hospital Regional Auromi", None, None, None, known)
    assert found.como == "novo"
    assert found.score < CERTO


def test_automatic_hospital_belongs_to_its_town() -> None:
    known = nomes(("Hospital Inventado", "Belém", "PA", 0.9))
    assert achar("Hospital Inventado", None, None, None, known).id == "0"
    assert achar("Hospital Inventado", None, None, "Belém/PA", known).id == "0"
    assert achar("Hospital Inventado", None, None, "Campinas/SP", known).como == "novo"
    assert achar("Hospital Inventado", None, None, "SP", known).como == "novo"
    nowhere = nomes(("Hospital Inventado", None, None, 0.9))
    assert achar("Hospital Inventado", "Campinas", "SP", None, nowhere).como == "novo"
    assert achar("Hospital Inventado", None, None, None, nowhere).id == "0"


def test_hospital_named_by_people_without_a_town_counts_everywhere() -> None:
    known = nomes(("Hospital Inventado", None, None, 1.0), ("Hospital Fictício", "Belém", "PA", 1.0))
    assert achar("Hospital Inventado", "Campinas", "SP", None, known).id == "0"
    assert achar("Hospital Fictício", None, None, "Campinas/SP", known).id == "1"


@pytest.mark.parametrize(
    "text", ["médico", "noturno", "Plantão noturno", "dia", "bom dia", "zona leste", "urgente", "()", "- x"]
)
def test_common_words_are_not_names(text: str) -> None:
    assert pode_ser_nome(text)[0] == 0.0


def test_name_that_begins_with_a_bracket_does_not_match_the_empty_name() -> None:
    known = Nomes(1, Vocabulario.padrao(), {"": [Conhecido("0", "()", None, None, 1.0)]}, {})
    assert achar("(Ala B) Hospital Inventado", None, None, None, known).id is None


@pytest.mark.parametrize(
    ("so_em", "dita", "regiao", "vale"),
    [
        (None, "Campinas", "Campinas/SP", True),  # from the customer's own list
        (frozenset(), None, None, True),  # the place is unknown
        (frozenset(), None, "Belém/PA", True),
        (frozenset(), None, "Campinas/SP", False),
        (frozenset({"campinas sp"}), None, "Campinas/SP", True),  # an operator added it there
        (frozenset({"campinas sp"}), "Santos", "Campinas/SP", False),  # another town is named
        (frozenset(), "Belém", "Campinas/SP", True),
        (frozenset(), None, "PA", True),
        (frozenset(), None, "SP", False),
        (frozenset(), None, "Plantões do Norte", True),  # the name of a group is not a region
    ],
)
def test_taught_name_counts_in_the_hospitals_town_and_where_it_was_taught(
    so_em: frozenset[str] | None, dita: str | None, regiao: str | None, vale: bool
) -> None:
    assert vale_em(so_em, "Belém", "PA", dita=dita, regiao=regiao) is vale
