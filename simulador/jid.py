"""How the Evolution API turns what it is given as a number into a WhatsApp address (a JID), and who is there."""

import re

PERSON = "@s.whatsapp.net"
GROUP = "@g.us"
BROADCAST = "@broadcast"
HIDDEN = "@lid"

_GROUP_DIGITS = 18
_PHONE_DIGITS = range(8, 16)  # the shortest national number in use up to E.164's longest
_BRAZILIAN_MOBILE = re.compile(r"55(?P<ddd>\d{2})9(?P<line>\d{8})")


def jid_of(number: str) -> str:
    if any(end in number for end in (PERSON, GROUP, BROADCAST, HIDDEN)):
        return number
    digits = re.sub(r"\D", "", number, flags=re.ASCII)
    if len(digits) >= _GROUP_DIGITS:
        return digits + GROUP
    return _as_registered(digits) + PERSON


def is_on_whatsapp(jid: str) -> bool:
    """Here everybody with a possible telephone number is, and so is every group, list and hidden address."""
    phone, _, _ = jid.partition("@")
    return not jid.endswith(PERSON) or len(phone) in _PHONE_DIGITS


def lookup_order(jid: str) -> int:
    """The original answers broadcasts first, then groups, then people, whatever the order asked in."""
    if jid.endswith(BROADCAST):
        return 0
    return 1 if jid.endswith(GROUP) else 2


def _as_registered(digits: str) -> str:
    """Outside the older codes (DDD below 31) most Brazilian mobiles are registered without their ninth digit."""
    mobile = _BRAZILIAN_MOBILE.fullmatch(digits)
    if mobile is None or int(mobile["ddd"]) < 31 or int(mobile["line"][0]) < 7:
        return digits
    return f"55{mobile['ddd']}{mobile['line']}"
