"""Masking removes every personal number, whatever text surrounds it, and leaves ids and instants unchanged. Masking a
text twice has the same result as masking it once.
"""

import re
from datetime import datetime, timedelta, timezone
from uuid import UUID

from hypothesis import example, given
from hypothesis import strategies as st

from batuta.kernel.ids import uuid7
from batuta.kernel.masking import mask
from batuta.kernel.masking.numbers import is_cnpj, is_cpf

AREAS = [str(area) for area in (11, 12, 19, 21, 27, 31, 41, 48, 51, 61, 62, 71, 81, 85, 92, 98)]
# Text next to a number. It has no adjacent digits, which would make it another number.
words = st.text(max_size=20) | st.sampled_from(
    ["", "tel: ", "+", "(", "id_", "-", ".", '{"a":"', "x=", "\n", "%20", "55 "]
)
around = words.map(lambda text: text.rstrip("0123456789"))
after = words.map(lambda text: text.lstrip("0123456789"))


def digits(count: int) -> st.SearchStrategy[str]:
    return st.text("0123456789", min_size=count, max_size=count)


@st.composite
def cpfs(draw: st.DrawFn) -> str:
    """Return eleven digits with valid check digits."""
    base = [int(sign) for sign in draw(digits(9).filter(lambda nine: len(set(nine)) > 1))]
    for _ in range(2):
        rest = sum(digit * weight for digit, weight in zip(base, range(len(base) + 1, 1, -1), strict=True)) * 10 % 11
        base.append(rest % 10)
    return "".join(map(str, base))


@st.composite
def cnpjs(draw: st.DrawFn) -> str:
    base = [int(sign) for sign in draw(digits(12).filter(lambda twelve: len(set(twelve)) > 1))]
    for _ in range(2):
        weights = [2 + place % 8 for place in range(len(base))][::-1]
        rest = sum(digit * weight for digit, weight in zip(base, weights, strict=True)) * 10 % 11
        base.append(rest % 10)
    return "".join(map(str, base))


@st.composite
def phones(draw: st.DrawFn) -> str:
    area, first, last = draw(st.sampled_from(AREAS)), draw(digits(3)), draw(digits(4))
    local = draw(st.sampled_from(["9" + draw(st.sampled_from("6789")), draw(st.sampled_from("2345"))])) + first
    country = draw(st.sampled_from(["", "55", "+55", "55 ", "+55 ", "+55-", "0"]))
    gap = draw(st.sampled_from(["", " ", "-", ") "]))
    if gap == ") ":
        return f"{country}({area}) {local}{draw(st.sampled_from(['', '-', ' ']))}{last}"
    return f"{country}{area}{gap}{local}{draw(st.sampled_from(['', '-', ' ', '.']))}{last}"


def dotted(cpf: str) -> str:
    return f"{cpf[:3]}.{cpf[3:6]}.{cpf[6:9]}-{cpf[9:]}"


@given(cpfs())
def test_generated_numbers_are_valid(cpf: str) -> None:
    assert is_cpf(cpf)


@given(around, cpfs(), st.sampled_from([str, dotted]), after)
def test_cpf_never_survives(before: str, cpf: str, written: type[str], behind: str) -> None:
    number = written(cpf)
    assert number not in mask(f"{before}{number}{behind}")


@given(around, digits(11).map(dotted), after)
def test_formatted_cpf_never_survives_even_with_wrong_check_digits(before: str, number: str, behind: str) -> None:
    assert number not in mask(f"{before}{number}{behind}")


@given(around, cnpjs(), after)
def test_cnpj_never_survives(before: str, cnpj: str, behind: str) -> None:
    assert is_cnpj(cnpj)
    written = f"{cnpj[:2]}.{cnpj[2:5]}.{cnpj[5:8]}/{cnpj[8:12]}-{cnpj[12:]}"
    masked = mask(f"{before}{cnpj}{behind} {before}{written}{behind}")
    assert cnpj not in masked
    assert written not in masked


@given(around, phones(), after)
def test_phone_never_survives(before: str, phone: str, behind: str) -> None:
    masked = mask(f"{before}{phone}{behind}")
    assert phone not in masked
    assert phone[-9:] not in masked


@given(around, digits(11), st.sampled_from(["s.whatsapp.net", "c.us", "lid", "g.us"]), after)
def test_whatsapp_address_never_survives(before: str, number: str, server: str, behind: str) -> None:
    assert f"{number}@{server}" not in mask(f"{before}{number}@{server} {behind}")


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**12 - 1), st.integers(0, 2**62 - 1))
def test_engine_id_always_survives(unix_ms: int, counter: int, tail: int) -> None:
    made = uuid7(unix_ms, counter, tail)
    assert mask(made) == made
    assert mask(f"execution {made} of job x") == f"execution {made} of job x"


@given(st.uuids() | st.integers(0, 10**32 - 1).map(lambda number: UUID(f"{number:032d}")))
def test_any_uuid_always_survives(made: UUID) -> None:
    """Masking leaves every UUID unchanged, even one that happens to contain only digits and whose groups look like
    phone numbers.
    """
    assert mask(f"id={made} n={made.hex}") == f"id={made} n={made.hex}"


offsets = st.integers(-12 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(datetime(1970, 1, 1), datetime(2199, 12, 31), timezones=st.one_of(st.none(), offsets)))
def test_instant_always_survives(moment: datetime) -> None:
    for written in (moment.isoformat(), moment.isoformat(" "), moment.isoformat(timespec="seconds")):
        assert mask(f"at {written}, then") == f"at {written}, then"
    compact = f"{moment:%Y%m%dT%H%M%S.%f%z}"
    assert mask(compact) == compact


@given(st.integers(1_500_000_000_000_000, 2_000_000_000_999_999))
def test_count_of_microseconds_always_survives(microseconds: int) -> None:
    assert mask(f"at {microseconds}") == f"at {microseconds}"
    assert mask(f"at {microseconds // 1000}") == f"at {microseconds // 1000}"


PIECES = [
    *(
        "token",
        "senha",
        "=",
        ":",
        " ",
        '"',
        "'",
        "\\",
        "[token]",
        "[oculto]",
        "[texto: 3 caracteres]",
        "Bearer ",
        "x",
        ",",
    ),
    *(
        "11987654321",
        "(11) 98765-4321",
        "123.456.789-09",
        "+55",
        "a@b.com",
        "://",
        "@",
        "%40",
        "%20",
        "-",
        ".",
        "/",
        "?",
        "&",
    ),
    *(
        "nome",
        "cookie",
        "eyJhbGciOiJ9",
        "sk-0123456789",
        "exception=",
        "(",
        ")",
        "<message withheld: BATUTA_SHOW_ERRORS=1 shows it>",
        "\n",
        "9",
        "2026-01-05",
    ),
]


@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@example("1120000000sk-0000000000")  # a key directly before a phone
@example("0@0.AA0@0.AA")  # two addresses without a separator
def test_masking_is_idempotent(text: str) -> None:
    once = mask(text)
    assert mask(once) == once


@given(st.text(alphabet=st.characters(exclude_characters="0123456789@%=:'\"?&()", exclude_categories=["Cs"])))
def test_plain_words_are_unchanged(text: str) -> None:
    if not re.search(r"(?i)bearer|eyj|sk-|bat_|gh._|xox|k_(live|test)_|a[ks]ia|aiza", text):
        assert mask(text) == text
