"""Phone numbers and WhatsApp addresses. A phone number is a string of digits that begins with the country code:
5511900000001.

An address (JID) identifies a group, a person by number, or a person by a hidden id (``…@lid``) whose digits are not a
phone number.
"""

import re

from batuta.kernel import dataclass

PERSON, GROUP, HIDDEN = "s.whatsapp.net", "g.us", "lid"
_NUMBER = re.compile(r"[0-9]{8,15}")
_BRAZILIAN_MOBILE = re.compile(r"(55[0-9]{2})9([6-9][0-9]{7})")
_BRAZILIAN_WITHOUT_NINTH = re.compile(r"(55[0-9]{2})([6-9][0-9]{7})")


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed WhatsApp address. ``telefone`` is None for groups and for people who hide their number."""

    jid: str
    telefone: str | None = None
    lid: str | None = None

    @property
    def is_group(self) -> bool:
        return self.jid.endswith(f"@{GROUP}")

    @property
    def sem_aparelho(self) -> str:
        """The address without its device number, so that all of a person's devices have the same address."""
        user, _, server = self.jid.partition("@")
        return f"{user.partition(':')[0]}@{server}"


def address(jid: str, alternative: str | None = None) -> Address | None:
    """Parse a WhatsApp address. Return None for a broadcast or a channel. ``alternative`` is a second address for the
    same person, which some events contain.
    """
    found = [each for each in (_parse(jid), _parse(alternative or "")) if each is not None]
    if not found:
        return None
    telefone = next((each.telefone for each in found if each.telefone), None)
    lid = next((each.lid for each in found if each.lid), None)
    return Address(jid if _parse(jid) else found[0].jid, telefone, lid)


def telefone_de(text: str) -> str | None:
    """Return the digits of a phone number in any notation, or None if the text cannot be a phone number."""
    digits = re.sub(r"[^0-9]", "", text)
    return digits if _NUMBER.fullmatch(digits) else None


def chave(telefone: str) -> str:
    """Return the key of a phone number for the column ``telefone_chave``. The key is the same with and without the
    ninth digit of Brazilian mobile numbers.
    """
    mobile = _BRAZILIAN_MOBILE.fullmatch(telefone)
    return f"{mobile[1]}{mobile[2]}" if mobile else telefone


def forms(telefone: str) -> tuple[str, ...]:
    """Return every form in which WhatsApp may have registered a number: with and without the ninth digit, if it is a
    Brazilian mobile number.
    """
    short = chave(telefone)
    mobile = _BRAZILIAN_WITHOUT_NINTH.fullmatch(short)
    return (f"{mobile[1]}9{mobile[2]}", short) if mobile else (telefone,)


def other_form(telefone: str) -> str:
    """Add or remove the ninth digit of a Brazilian mobile number, because WhatsApp may have registered the number in
    either form. Any other number is returned unchanged.
    """
    return next((form for form in forms(telefone) if form != telefone), telefone)


def _parse(jid: str) -> Address | None:
    user, _, server = jid.partition("@")
    match server:
        case "s.whatsapp.net" | "c.us":
            return Address(jid, telefone_de(user.partition(":")[0]))  # a device number follows the colon
        case "g.us":
            return Address(jid)
        case "lid":
            return Address(jid, lid=f"{user.partition(':')[0]}@{HIDDEN}")
        case _:
            return None
