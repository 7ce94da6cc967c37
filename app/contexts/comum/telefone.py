"""Telephone numbers and WhatsApp addresses. A number is digits that begin with the country code: 5511900000001.

An address (JID) names a person by number, a group, or a person by a hidden id (``…@lid``) whose digits are not a
phone number.
"""

import re
from dataclasses import dataclass

PERSON, GROUP, HIDDEN = "s.whatsapp.net", "g.us", "lid"
_NUMBER = re.compile(r"[0-9]{8,15}")
_BRAZILIAN_MOBILE = re.compile(r"(55[0-9]{2})9([6-9][0-9]{7})")
_BRAZILIAN_WITHOUT_NINTH = re.compile(r"(55[0-9]{2})([6-9][0-9]{7})")


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed address. ``telefone`` is None for groups and for people who hide their number."""

    jid: str
    telefone: str | None = None
    lid: str | None = None

    @property
    def is_group(self) -> bool:
        return self.jid.endswith(f"@{GROUP}")

    @property
    def sem_aparelho(self) -> str:
        """The address without its device: equal for all devices of a person."""
        user, _, server = self.jid.partition("@")
        return f"{user.partition(':')[0]}@{server}"


def address(jid: str, alternative: str | None = None) -> Address | None:
    """Parse an address. ``alternative``: the second address that some events have. None: a broadcast or a channel."""
    found = [each for each in (_parse(jid), _parse(alternative or "")) if each is not None]
    if not found:
        return None
    telefone = next((each.telefone for each in found if each.telefone), None)
    lid = next((each.lid for each in found if each.lid), None)
    return Address(jid if _parse(jid) else found[0].jid, telefone, lid)


def telefone_de(text: str) -> str | None:
    """Return the digits of a number in any notation; None: it cannot be a number."""
    digits = re.sub(r"[^0-9]", "", text)
    return digits if _NUMBER.fullmatch(digits) else None


def chave(telefone: str) -> str:
    """Return a key that is equal with and without the ninth digit, as in the column ``telefone_chave``."""
    mobile = _BRAZILIAN_MOBILE.fullmatch(telefone)
    return f"{mobile[1]}{mobile[2]}" if mobile else telefone


def forms(telefone: str) -> tuple[str, ...]:
    """Return every form in which WhatsApp may have registered the number."""
    short = chave(telefone)
    mobile = _BRAZILIAN_WITHOUT_NINTH.fullmatch(short)
    return (f"{mobile[1]}9{mobile[2]}", short) if mobile else (telefone,)


def other_form(telefone: str) -> str:
    """Return the other form in which WhatsApp may have registered the number, or the same if there is none."""
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
