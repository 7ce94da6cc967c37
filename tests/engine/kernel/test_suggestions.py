import pytest

from batuta.kernel.suggestions import nearest, unknown

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
def test_nearest_returns_only_similar_words(word: str, near: str | None) -> None:
    assert nearest(word, JOBS) == near


def test_beginning_shared_by_two_words_has_no_nearest() -> None:
    assert nearest("envio", ["envio_noturno_de_ofertas", "envio_diurno_de_respostas"]) is None


def test_error_without_a_similar_word_lists_some_known_words() -> None:
    assert str(unknown("queue", "nada", ["outbound"])) == "there is no queue 'nada', only outbound"
    many = [f"fila_{letter}" for letter in "abcdefghijk"]
    assert str(unknown("queue", "xyz", many)).endswith("fila_g, fila_h, …")
    assert str(unknown("queue", "nada", [])) == "there is no queue 'nada': check the name or id"
