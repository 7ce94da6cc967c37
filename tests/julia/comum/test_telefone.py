"""Phone numbers and WhatsApp addresses. A number has the same lookup key with and without the ninth digit. An address
of a person who hides the phone number has no number.
"""

import pytest

from app.contexts.comum.telefone import Address, address, chave, forms, telefone_de


@pytest.mark.parametrize(
    ("jid", "alternative", "found"),
    [
        ("5511900000001@s.whatsapp.net", None, Address("5511900000001@s.whatsapp.net", "5511900000001")),
        ("5511900000001:12@s.whatsapp.net", None, Address("5511900000001:12@s.whatsapp.net", "5511900000001")),
        ("999000111222333@lid", None, Address("999000111222333@lid", None, "999000111222333@lid")),
        ("999000111222333@lid", "5511900000001@s.whatsapp.net",
         Address("999000111222333@lid", "5511900000001", "999000111222333@lid")),
        ("120363000000000001@g.us", None, Address("120363000000000001@g.us")),
        ("status@broadcast", None, None),
        ("120363@newsletter", None, None),
        ("nonsense", None, None),
        ("abc@s.whatsapp.net", None, Address("abc@s.whatsapp.net")),
    ],
)  # fmt: skip
def test_address_has_a_number_unless_the_person_hides_it(
    jid: str, alternative: str | None, found: Address | None
) -> None:
    assert address(jid, alternative) == found


def test_number_with_and_without_the_ninth_digit_is_the_same_line() -> None:
    assert chave("5531988880001") == chave("553188880001") == "553188880001"
    assert forms("553188880001") == forms("5531988880001") == ("5531988880001", "553188880001")
    # A landline has no ninth digit to lose, and another country has its own rules.
    assert forms("553132220001") == ("553132220001",)
    assert chave("351988880001") == "351988880001"


def test_text_is_parsed_as_a_number_or_rejected() -> None:
    assert telefone_de("+55 (11) 90000-0001") == "5511900000001"
    assert telefone_de("ramal 12") is None
    assert telefone_de("1" * 16) is None
