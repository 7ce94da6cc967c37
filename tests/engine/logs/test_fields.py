from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from uuid import UUID

import pytest

from batuta.kernel.masking import SENSITIVE_FIELDS, is_sensitive
from batuta.logs.scrubbing import scrub, scrub_field


def words(text: str) -> list[str]:
    return text.split()


HIDDEN = words(
    """
    primeiro_nome nome_completo medico_nome first_name pushName push-name display_name userName data_nascimento
    telefone_1 telefone2 telefoneWhatsapp phone_number remoteJid endereço endereco_residencial cpf_medico
    texto_original message_text last_message request_body rawText mensagem
    API_KEY apiKey X-Api-Key access_token client_secret secret_key db_password set-cookie session_id sessionId
    Authorization lease_token
    """
)
SHOWN = words(
    """
    job_name worker_name loop role route event message_id request_id service logger level timestamp exception stack
    error reason by key took status endpoint items setting nearest queue queue_name content_type content_length
    text_length message_count message_rate token_id token_count tokens prompt_tokens email_id context attempt hora_atual
    local_time category
    version host port pid exit_code categoria _ 1
    """
)


@pytest.mark.parametrize("field", [*sorted(SENSITIVE_FIELDS), *HIDDEN])
def test_sensitive_field_is_hidden_by_its_name(field: str) -> None:
    assert is_sensitive(field)


@pytest.mark.parametrize("field", [*SHOWN, ""])
def test_harmless_field_is_shown(field: str) -> None:
    assert not is_sensitive(field)


def test_sensitive_text_shows_its_length_and_other_values_nothing() -> None:
    assert scrub_field("conteudo", "x" * 42) == "[texto: 42 caracteres]"
    assert scrub_field("nome", "Fulano") == "[oculto]"
    assert scrub_field("senha", "abc") == "[oculto]"
    assert scrub_field("telefone", 11987654321) == "[oculto]"
    assert scrub_field("body", {"a": 1}) == "[oculto]"
    assert scrub_field("nomes", ["Fulano"]) == "[oculto]"


def test_boolean_none_and_count_are_shown() -> None:
    assert scrub_field("password", None) is None
    assert scrub_field("session", False) is False
    assert scrub_field("messages", 7) == 7


def test_fields_are_hidden_at_any_depth() -> None:
    payload = {"data": [{"message": {"conversation": "oi"}, "key": {"remoteJid": "x", "id": "3EB0"}}], b"senha": b"x"}
    assert scrub(payload) == {
        "data": [{"message": "[oculto]", "key": {"remoteJid": "[oculto]", "id": "3EB0"}}],
        "senha": "[oculto]",
    }


def test_headers_in_pairs_are_hidden_as_in_a_dict() -> None:
    headers = [(b"authorization", b"Basic x"), ("apikey", "x"), ("accept", "text/html")]
    assert scrub(headers) == [["authorization", "[oculto]"], ["apikey", "[oculto]"], ["accept", "text/html"]]


@dataclass
class Doctor:
    nome: str
    rank: int


Row = namedtuple("Row", "telefone rank")


class Colour(StrEnum):
    RED = "red"


class Opaque:
    def __repr__(self) -> str:
        raise AssertionError("its repr must not be called")


def test_fields_of_records_are_scrubbed_and_unknown_objects_show_their_type() -> None:
    assert scrub(Doctor("Fulano", 3)) == {"nome": "[oculto]", "rank": 3}
    assert scrub(Row("11987654321", 3)) == {"telefone": "[oculto]", "rank": 3}
    assert scrub(Opaque()) == "<Opaque>"
    assert scrub(Opaque) == "Opaque"
    assert scrub(b"Fulano") == "<6 bytes>"
    assert scrub(KeyError("Fulano")) == "KeyError: <message withheld: BATUTA_SHOW_ERRORS=1 shows it>"


def test_values_become_json_values() -> None:
    assert scrub(timedelta(milliseconds=1234, microseconds=567)) == 1.235
    assert scrub(datetime(2026, 1, 5, 12, tzinfo=UTC)) == "2026-01-05T12:00:00+00:00"
    assert scrub(UUID(int=7)) == "00000000-0000-0000-0000-000000000007"
    assert scrub(Path("/tmp/x")) == "/tmp/x"
    assert scrub(Decimal("1.50")) == "1.50"
    assert scrub(Colour.RED) == "red"
    assert scrub({3}) == [3]
    assert scrub(float("nan")) == "nan"
    assert scrub(10**5000) == hex(10**5000)


def test_personal_number_is_masked_and_other_numbers_stay() -> None:
    assert scrub(5511987654321) == "[telefone]"
    assert scrub(5511987654321.0) == "[telefone]"
    assert scrub(12345678909) == "[cpf]"
    assert scrub(1767614400123456) == 1767614400123456
    assert scrub(0.11987654321) == 0.11987654321
    assert scrub(True) is True
    assert scrub(1e300) == 1e300


def test_keys_are_masked_too() -> None:
    assert scrub({"5511987654321@s.whatsapp.net": 1}) == {"[whatsapp]": 1}


def test_recursive_value_is_cut() -> None:
    knot: list[object] = []
    knot.append(knot)
    assert scrub(knot) == [[[[[["[…]"]]]]]]


def test_text_cannot_move_the_cursor_nor_break_the_stream() -> None:
    assert scrub("a\x1b[2Jb\rc\x9bd\u202ee\tf\ng") == "a\ufffd[2Jbc\ufffdd\ufffde\tf\ng"
    assert scrub("a\ud800b") == "a?b"


def test_very_long_text_is_cut_between_words() -> None:
    shown = scrub("palavra 11987654321 " * 5000)
    assert isinstance(shown, str)
    assert len(shown) < 40_000
    assert "11987" not in shown
    assert shown.endswith(" caracteres]")
