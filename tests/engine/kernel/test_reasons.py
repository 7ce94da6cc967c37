"""A reason is a code with facts. It is stored as one string, and can be displayed in every language."""

import copy
import importlib
import pickle
import pkgutil
import string
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import app
import batuta
from batuta.kernel.errors import DeadlineExceeded, reason_of_error
from batuta.kernel.reasons import CODES, Reason, ReasonCode, code_of, decode, describe_reason, encode, read_reason
from batuta.kernel.storage.storable import mask_text
from batuta.runlog.reasons import HELD, WINDOW_CLOSED
from batuta.texts import HERE, Texts, read_table

APP_TEXTS = Path(app.__file__).parent / "texts"
AT = datetime(2026, 11, 16, 7, 30, tzinfo=UTC)
CLOSED = HELD(why=WINDOW_CLOSED(window="manha"))
PORTUGUESE, ENGLISH = Texts("pt-BR", [APP_TEXTS]), Texts("en", [APP_TEXTS])


def all_codes() -> list[ReasonCode]:
    """Return every reason code that the engine and Julia define. A code is registered when its module is imported."""
    for package in (batuta, app):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    return list(CODES.values())


def fields(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}


@pytest.fixture(scope="module")
def codes() -> list[ReasonCode]:
    return all_codes()


def test_every_code_has_a_portuguese_sentence_that_uses_its_facts(codes: list[ReasonCode]) -> None:
    table = {**read_table(APP_TEXTS, "pt-BR"), **read_table(HERE, "pt-BR")}
    assert len(codes) > 80
    missing = [str(code) for code in codes if f"reason.{code}" not in table]
    assert missing == []
    strange = [str(code) for code in codes if not fields(table[f"reason.{code}"]) <= fields(code.english)]
    assert strange == []


@pytest.mark.parametrize("count", [1, 5])
def test_every_code_is_rendered_in_both_languages_after_storage(codes: list[ReasonCode], count: int) -> None:
    for code in codes:
        facts: dict[str, object] = {name: f"<{name}>" for name in fields(code.english)}
        facts |= {"count": count} if "count" in facts else {}
        stored = decode(encode(code(**facts)))
        assert stored is not None
        assert code_of(stored) == code
        assert ENGLISH.reason(stored) == code.english.format(**facts)
        portuguese = PORTUGUESE.reason(stored)
        assert "{" not in portuguese
        assert all(str(facts[name]) in portuguese for name in fields(PORTUGUESE.get(f"reason.{code}", "")))


def test_nested_reason_is_rendered_in_the_same_language() -> None:
    stored = decode(encode(CLOSED))
    assert stored == "held: window manha is closed"
    assert PORTUGUESE.reason(stored or "") == "suspensa: janela manha fechada"


def test_instants_and_durations_have_the_format_of_the_language() -> None:
    reason = Reason("outside_hours", "outside {hours}: opens {opens}", hours="x", opens=AT)
    stored = decode(encode(reason)) or ""
    assert isinstance(stored, Reason)
    assert stored.facts == {"hours": "x", "opens": AT}
    assert ENGLISH.reason(stored) == "outside x: opens 2026-11-16 07:30"
    assert PORTUGUESE.reason(stored) == "fora do horário x; o próximo horário começa em 16/11/2026 07:30"
    assert str(Reason("x", "{per}", per=timedelta(minutes=90))) == "1 h 30 min"


@pytest.mark.parametrize(
    "text",
    ["", "its own words", '{"code": "x"}', '{"code":"x"}', '{"code":"x","facts":{},"text":"t"}', '{"code":', "ç"],
)
def test_plain_text_is_stored_and_shown_unchanged(text: str) -> None:
    assert decode(encode(text)) == text
    assert code_of(decode(encode(text))) is None
    assert PORTUGUESE.reason(text) == text


@pytest.mark.parametrize("row", ['{"code":', '{"code":7}', '{"code":"x","facts":[],"text":"t"}', "not implemented yet"])
def test_row_of_another_program_is_shown_unchanged(row: str) -> None:
    assert decode(row) == row


def test_unknown_code_is_shown_with_its_stored_text() -> None:
    newer = decode('{"code":"of_a_newer_version","facts":{"x":1},"text":"the newer one: 1"}')
    assert PORTUGUESE.reason(newer or "") == "the newer one: 1"


def test_code_without_the_facts_of_its_sentence_is_shown_with_its_stored_text() -> None:
    assert PORTUGUESE.reason(Reason.restore("partial", "partial: 3 of 5", {})) == "partial: 3 of 5"


def test_error_is_stored_as_a_reason_with_its_class() -> None:
    stored = decode(encode(reason_of_error(DeadlineExceeded(what="job x", deadline="07:30"))))
    assert code_of(stored) == "error.DeadlineExceeded"
    assert PORTUGUESE.reason(stored or "").startswith("job x não terminou até 07:30")


def test_reason_survives_the_transport_to_another_process() -> None:
    sent = {"reason": str(CLOSED), **describe_reason(CLOSED)}
    reason = read_reason(str(sent["reason"]), sent["reason_code"], sent["reason_facts"])
    assert PORTUGUESE.reason(reason) == "suspensa: janela manha fechada"
    assert read_reason("words", None, {}) == "words"
    assert read_reason("words", "held", "no facts") == "words"


def test_personal_data_is_masked_in_the_sentence_and_in_the_facts() -> None:
    shown = mask_text(Reason("x", "{why}", why="cpf 529.982.247-25"), 500)
    assert "529.982" not in (encode(shown) or "")


@pytest.mark.parametrize("longest", [120, 500])
@pytest.mark.parametrize("said", ["x" * 900, '"' * 900, "\n" * 900])
def test_reason_too_long_for_its_column_keeps_its_code(longest: int, said: str) -> None:
    stored = encode(HELD(why=said), longest) or ""
    assert len(stored) <= longest
    assert code_of(decode(stored)) == HELD


def test_reason_survives_copies() -> None:
    for again in (copy.deepcopy(CLOSED), pickle.loads(pickle.dumps(CLOSED))):
        assert (again, again.code, again.facts) == (CLOSED, CLOSED.code, CLOSED.facts)


def test_money_numbers_and_dates_have_one_format_per_language() -> None:
    assert (PORTUGUESE.money(1600), ENGLISH.money(1600)) == ("R$ 1.600,00", "R$ 1,600.00")
    assert (PORTUGUESE.minute(AT), ENGLISH.minute(AT)) == ("16/11/2026 07:30", "2026-11-16 07:30")
