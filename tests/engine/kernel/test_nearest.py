import pytest

from batuta.kernel.options import nearest, unknown

JOBS = ["snapshot_chips_diario", "normalizacao", "processar_campanhas_agendadas", "pulse"]


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("puls", "pulse"),
        ("normalizacoa", "normalizacao"),
        ("snapshot", "snapshot_chips_diario"),
        ("nada", None),
        ("", None),
        ("p", None),
    ],
)
def test_only_real_likeness_is_a_guess(word: str, near: str | None) -> None:
    assert nearest(word, JOBS) == near


def test_a_beginning_that_two_words_share_is_no_guess() -> None:
    assert nearest("envio", ["envio_noturno_de_ofertas", "envio_diurno_de_respostas"]) is None


def test_where_nothing_is_like_it_those_there_are_are_told_and_not_all_of_many() -> None:
    assert str(unknown("queue", "nada", ["outbound"])) == "there is no queue 'nada', only outbound"
    many = [f"fila_{letter}" for letter in "abcdefghijk"]
    assert str(unknown("queue", "xyz", many)).endswith("fila_g, fila_h, …")
    assert str(unknown("queue", "nada", [])) == "there is no queue 'nada', only -"
