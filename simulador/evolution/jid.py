"""Converts a number to a WhatsApp address (JID) as the Evolution API does, and decides which numbers are registered."""

import re

PERSON = "@s.whatsapp.net"
GROUP = "@g.us"
BROADCAST = "@broadcast"
HIDDEN = "@lid"

_GROUP_DIGITS = 18
_PHONE_DIGITS = range(8, 16)  # from the shortest national number in use to the longest number of E.164
_BRAZILIAN_MOBILE = re.compile(r"55(?P<ddd>\d{2})9(?P<line>\d{8})")


def jid_of(number: str) -> str:
    if any(end in number for end in (PERSON, GROUP, BROADCAST, HIDDEN)):
        return number
    digits = re.sub(r"\D", "", number, flags=re.ASCII)
    if len(digits) >= _GROUP_DIGITS:
        return digits + GROUP
    return _as_registered(digits) + PERSON


def is_on_whatsapp(jid: str) -> bool:
    """Return whether an address counts as registered with WhatsApp. Every valid phone number, group, list and hidden
    address is registered.
    """
    phone, _, _ = jid.partition("@")
    return not jid.endswith(PERSON) or len(phone) in _PHONE_DIGITS


def lookup_order(jid: str) -> int:
    """Return the key by which addresses are sorted in a response. As in the original, broadcasts come first, then
    groups, then people, whatever their order in the request.
    """
    if jid.endswith(BROADCAST):
        return 0
    return 1 if jid.endswith(GROUP) else 2


def _as_registered(digits: str) -> str:
    """Return the number as WhatsApp registers it: most Brazilian mobile numbers without the ninth digit, but numbers
    with an area code below 31 unchanged.
    """
    mobile = _BRAZILIAN_MOBILE.fullmatch(digits)
    if mobile is None or int(mobile["ddd"]) < 31 or int(mobile["line"][0]) < 7:
        return digits
    return f"55{mobile['ddd']}{mobile['line']}"
