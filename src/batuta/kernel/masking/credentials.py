"""Masks secrets in text. A secret is recognised by its shape (a JWT, a key, a password inside a URL) or by the word
before it.

Every pattern runs in linear time. After an unbounded repetition, either the rest of the pattern always matches, or the
repetition is anchored, so that the search cannot start again inside the same characters. No group is possessive
(``(…)++``), because Python 3.11.2 in Debian 12 matches such groups incorrectly.
"""

import re
from collections.abc import Iterator

from batuta.kernel.masking.fields import HIDDEN, Kind, kind_of, mask_value

TOKEN = "[token]"  # noqa: S105 - what is shown instead of one
SECRET = "[segredo]"  # noqa: S105
WITHHELD = "<message withheld: BATUTA_SHOW_ERRORS=1 shows it>"


def without_credentials(text: str) -> str:
    # Substrings that a match must contain. They are searched first, because the search is cheap and most lines contain
    # none of them.
    lowered = text.lower()
    if "://" in text and "@" in text:
        text = _IN_URL.sub(r"\1***@", text)
    if any(sign in lowered for sign in _SIGNS_OF_A_SHAPE):
        text = _BY_SHAPE.sub(_mark_token, text)
    if ":" in text:
        text = _TELEGRAM_BOT.sub(TOKEN, text)
    if "exception=" in text:
        text = _EXCEPTION_REPR.sub(rf"\1{WITHHELD})", text)
    if any(sign in text for sign in "\"'?&"):
        text = "".join(_mask_values(text))
    if any(word in lowered for word in _SIGNS_OF_A_WORD):
        text = _WORD_AND_VALUE.sub(_mark_value, text)
    return _COOKIE.sub(_mark_value, text) if "cookie" in lowered else text


_SPACE = r"[^\S\r\n]{0,3}"

# scheme://user:password@host. A password may contain an unescaped / or @. A port number is not a password.
_IN_URL = re.compile(
    r"(://[^\s/:@\"'<>]{0,128}:)(?!\d{1,5}(?:[/?#,;)\]}\s\"'<>]|$))(?:[^\s/\"'<>]{1,200}|[^\s\"'<>]{1,80})@"
)

_SIGNS_OF_A_SHAPE = (
    *("bearer", "hooks.slack", "discord", "api.telegram", "bat_", "eyj", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    *("github_pat_", "glpat-", "xox", "k_live_", "k_test_", "akia", "asia", "aiza"),
)

_BY_SHAPE = re.compile(
    r"""
    (?=[ABabdeghprsx])(?:
      (?P<before>
          \b(?i:bearer)\s{1,3}(?=[\w.~+/=-])
        | hooks\.slack\.com/(?:services|workflows|triggers)/
        | discord(?:app)?\.com/api/webhooks/
        | api\.telegram\.org/(?:file/)?bot
      )(?!\[token\])[^\s"'<>,;)\]}\\]+
    | (?<![A-Za-z0-9])bat_[A-Za-z0-9-]{1,64}_[\w-]{6,}            # ours
    | (?<![\w-])eyJ[\w-]{8,}+(?:\.[\w-]*+){1,4}                   # JWT
    | (?<![A-Za-z0-9])sk-[\w-]{10,}                               # OpenAI
    | (?<![A-Za-z0-9])(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|[spr]k_live_|[spr]k_test_)[\w-]{10,}
    | (?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])
    | (?<![\w-])AIza[\w-]{30,}
    )
    """,
    re.VERBOSE,
)


_TELEGRAM_BOT = re.compile(r"(?<!\d)\d{8,10}:[\w-]{35}(?![\w-])")


def _mark_token(match: re.Match[str]) -> str:
    return (match["before"] or "") + TOKEN


# <Task finished exception=ValueError('personal text')>: masks the rest of the line, because the end of the repr is
# unknown.
_EXCEPTION_REPR = re.compile(rf"(\bexception=[A-Za-z_][\w.]{{0,100}}\()(?!{WITHHELD}\)).*")

# The head of 'key': 'value', key='value', key: "value", ('key', b'value'), {\"key\": \"value\"} or ?key=value.
_HEAD = re.compile(
    rf"""
    (?:
        (?P<mark>\\{{0,4}}["'])(?P<quoted_key>[\w-]{{1,40}})(?P=mark){_SPACE}[:=]
      | [(\[]b?["'](?P<header>[\w-]{{1,40}})["'],
      | (?<![\w-])(?P<key>[^\W\d][\w-]{{0,39}}){_SPACE}[:=]
    ){_SPACE}[bfru]?(?P<quote>\\{{0,4}}["'])
    | [?&](?P<query_key>[\w-]{{1,40}})=
    """,
    re.VERBOSE,
)
_BODIES = {
    '"': re.compile(r'(?:[^"\\\r\n]|\\.)*'),
    "'": re.compile(r"(?:[^'\\\r\n]|\\.)*"),
    "\\": re.compile(r"[^\"'\\\r\n]*+"),
    "?": re.compile(r"[^\s&#\"'<>\\]*+"),
}


def _mask_values(text: str) -> Iterator[str]:
    """Replace the values of sensitive keys. The values of all other keys are searched too, because they may contain
    key-value pairs too.
    """
    done = 0
    while head := _HEAD.search(text, done):
        yield text[done : head.end()]
        done = head.end()
        kind = _kind_of_key(head)
        body = _BODIES[(head["quote"] or "?")[0]].match(text, done) if kind else None
        if kind and body and body[0] and not body[0].startswith(_MARKED):
            yield mask_value(body[0], kind)
            done = body.end()
    yield text[done:]


def _kind_of_key(head: re.Match[str]) -> Kind | None:
    if head["key"] == "name":
        return None  # in a repr, ``name`` is usually the name of a task or job, not of a person
    return kind_of(head["quoted_key"] or head["header"] or head["key"] or head["query_key"])


# token: value, password=value, "senha": 1234, Authorization: Basic value
_WORD_AND_VALUE = re.compile(
    rf"""
    (?=[AaPpSsTt])(?i:token | secret(?:[_-]?\w{{1,20}}+)? | senha | session(?:[_-]?id)? | password | passwd | passphrase
        | api[_-]?key | access[_-]?key | authorization)
    \\{{0,4}}["']?{_SPACE}(?:=>|[:=]){_SPACE}(?:(?:Bearer|Basic|Digest|Token)\x20{{1,3}})?
    # A comma ends the value when another field or a space follows.
    (?P<body>(?:[^\s"'<>,;&(){{}}\]\\]|[,;](?!\s|\w{{1,40}}[:=]|$))+)
    """,
    re.VERBOSE,
)
_SIGNS_OF_A_WORD = ("token", "secret", "senha", "session", "passw", "passphrase", "key", "authorization")
_COOKIE = re.compile(rf"(?i:cookie){_SPACE}:{_SPACE}(?P<body>[^\"'\r\n]++)")
_NOTHING = frozenset({"None", "null", "True", "true", "False", "false"})


def _mark_value(match: re.Match[str]) -> str:
    """Return a key-value pair with its value masked. A constant such as None, or a value that is already masked, stays
    unchanged.
    """
    if match["body"] in _NOTHING or match["body"].startswith(_MARKED):
        return match[0]
    start, end = match.span("body")
    return match.string[match.start() : start] + SECRET + match.string[end : match.end()]


_MARKED = (HIDDEN[:-1], TOKEN[:-1], SECRET[:-1], "[texto: ")
