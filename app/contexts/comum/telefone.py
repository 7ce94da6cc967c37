"""Telephone numbers and WhatsApp addresses. A number is digits with the country's code in front: 5511900000001.

An address (a JID) names a person by number, a group, or a person by a hidden id (``…@lid``) whose digits are nobody's number.
"""

import re
from dataclasses import dataclass

PERSON, GROUP, HIDDEN = "s.whatsapp.net", "g.us", "lid"
_NUMBER = re.compile(r"[0-9]{8,15}")
_BRAZILIAN_MOBILE = re.compile(r"(55[0-9]{2})9([6-9][0-9]{7})")
_BRAZILIAN_WITHOUT_NINTH = re.compile(r"(55[0-9]{2})([6-9][0-9]{7})")


@dataclass(frozen=True, slots=True)
class Address:
    """``telefone`` is None for whoever hides it, and for groups."""

    jid: str
    telefone: str | None = None
    lid: str | None = None

    @property
    def is_group(self) -> bool:
        return self.jid.endswith(f"@{GROUP}")

    @property
    def sem_aparelho(self) -> str:
        """The same from each of a person's devices."""
        user, _, server = self.jid.partition("@")
        return f"{user.partition(':')[0]}@{server}"


def address(jid: str, alternative: str | None = None) -> Address | None:
    """Who is meant; ``alternative`` is the other name that the gateway sometimes gives. None: nobody (a broadcast, a channel)."""
    found = [each for each in (_parse(jid), _parse(alternative or "")) if each is not None]
    if not found:
        return None
    telefone = next((each.telefone for each in found if each.telefone), None)
    lid = next((each.lid for each in found if each.lid), None)
    return Address(jid if _parse(jid) else found[0].jid, telefone, lid)


def telefone_de(text: str) -> str | None:
    """The digits of a number as somebody wrote it; None: it cannot be one."""
    digits = re.sub(r"[^0-9]", "", text)
    return digits if _NUMBER.fullmatch(digits) else None


def chave(telefone: str) -> str:
    """The same for one line with and without the ninth digit, as the column ``telefone_chave``."""
    mobile = _BRAZILIAN_MOBILE.fullmatch(telefone)
    return f"{mobile[1]}{mobile[2]}" if mobile else telefone


def forms(telefone: str) -> tuple[str, ...]:
    """Every way the line may be registered."""
    short = chave(telefone)
    mobile = _BRAZILIAN_WITHOUT_NINTH.fullmatch(short)
    return (f"{mobile[1]}9{mobile[2]}", short) if mobile else (telefone,)


def other_form(telefone: str) -> str:
    """The other way the line may be registered, or the same if there is none."""
    return next((form for form in forms(telefone) if form != telefone), telefone)


def _parse(jid: str) -> Address | None:
    user, _, server = jid.partition("@")
    match server:
        case "s.whatsapp.net" | "c.us":
            return Address(jid, telefone_de(user.partition(":")[0]))  # after the colon stands a device
        case "g.us":
            return Address(jid)
        case "lid":
            return Address(jid, lid=f"{user.partition(':')[0]}@{HIDDEN}")
        case _:
            return None
