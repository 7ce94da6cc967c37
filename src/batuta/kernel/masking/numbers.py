"""Masks CPF, CNPJ, RG (Brazilian identity numbers) and phone numbers in text, but keeps ids, instants and counts.

Formatted numbers are always masked. Unformatted numbers are masked if their check digits match or if they are valid
phone numbers. UUIDs, ISO instants and hexadecimal digests are excluded first, because parts of them look like phone
numbers.
"""

import re

CPF, CNPJ, RG, PHONE = "[cpf]", "[cnpj]", "[rg]", "[telefone]"


def without_numbers(text: str) -> str:
    if sum(map(text.count, "0123456789")) < _FEWEST_DIGITS:
        return text
    # Pieces with an odd index are the matches of the pattern's group.
    pieces = _KEPT.split(text)
    pieces[::2] = [_mark(piece) for piece in pieces[::2]]
    return "".join(pieces)


_FEWEST_DIGITS = 8  # length of an RG, the shortest number that is masked

_TIME = r"[0-2][0-9]:?[0-5][0-9]:?[0-6][0-9](?:[.,][0-9]{1,9})?(?:Z|[+-][0-2][0-9]:?[0-5][0-9])?"
_KEPT = re.compile(
    rf"""
    ( (?<![0-9A-Za-z]) (?:
        [0-9A-Fa-f]{{8}}-(?:[0-9A-Fa-f]{{4}}-){{3}}[0-9A-Fa-f]{{12}}
      | [0-9a-f]{{32}} | [0-9a-f]{{40}} | [0-9a-f]{{64}}
    ) (?![0-9A-Za-z])
    | (?<![0-9]) (?:
        [0-9]{{4}}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01]) (?: [T\x20]{_TIME} | [T\x20][0-9]{{2}}:[0-9]{{2}}(?!:) )?
      | [0-9]{{8}}T{_TIME}
      | [0-2][0-9]:[0-5][0-9]:[0-6][0-9](?:[.,][0-9]{{1,9}})?(?:Z|[+-][0-2][0-9]:?[0-5][0-9])?
    ) (?![0-9]) )
    """,
    re.VERBOSE,
)


def _mark(text: str) -> str:
    text = _CNPJ.sub(lambda found: CNPJ if found["sure"] or is_cnpj(found[0]) else found[0], text)
    text = _CPF.sub(lambda found: CPF if found["sure"] or is_cpf(found[0]) else found[0], text)
    text = _RG.sub(RG, text)
    return _PHONE.sub(PHONE, text)


def is_cpf(text: str) -> bool:
    """Return whether the digits in a text form a valid CPF: eleven digits that are not all equal, of which the last two
    are check digits.
    """
    digits = [int(sign) for sign in text if sign.isdecimal()]
    if len(digits) != 11 or len(set(digits)) == 1:
        return False
    return all(digits[end] == _check_digit(digits[:end], range(end + 1, 1, -1)) for end in (9, 10))


def is_cnpj(text: str) -> bool:
    digits = [int(sign) for sign in text if sign.isdecimal()]
    if len(digits) != 14 or len(set(digits)) == 1:
        return False
    weights = (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)
    return all(digits[end] == _check_digit(digits[:end], weights[13 - end :]) for end in (12, 13))


def _check_digit(digits: list[int], weights: range | tuple[int, ...]) -> int:
    rest = sum(digit * weight for digit, weight in zip(digits, weights, strict=True)) % 11
    return 0 if rest < 2 else 11 - rest


# A number starts after a non-digit or after a percent escape: %2011 is a space and the area code 11.
_START = r"(?=[0-9A-Z+(%])(?:(?<![0-9])|(?=[+(%])|(?<=%[0-9A-Fa-f][0-9A-Fa-f]))"
_END = r"(?![0-9])"
_DASH = r"[-\u2010-\u2015\u2212]"
_GAP = rf"(?:[\x20\t\u00a0\u2000-\u200b\u202f._+]|{_DASH}|%20|\\u[0-9A-Fa-f]{{4}})"

_CPF = re.compile(
    rf"""{_START}(?:
        (?P<sure>[0-9]{{3}}\.[0-9]{{3}}\.[0-9]{{3}}{_DASH}[0-9]{{2}})
      | [0-9]{{3}}(?:{_GAP}?[0-9]{{3}}){{2}}(?:{_GAP}|/)?[0-9]{{2}}
    ){_END}""",
    re.VERBOSE,
)
# Since July 2026 the first twelve characters of a CNPJ may be letters.
_CNPJ = re.compile(
    rf"""{_START}(?:
        (?P<sure>[0-9A-Z]{{2}}\.[0-9A-Z]{{3}}\.[0-9A-Z]{{3}}(?:/|%2F)[0-9A-Z]{{4}}{_DASH}[0-9]{{2}})
      | [0-9]{{2}}\.?[0-9]{{3}}\.?[0-9]{{3}}/?[0-9]{{4}}{_DASH}?[0-9]{{2}}
    ){_END}""",
    re.VERBOSE,
)
_RG = re.compile(rf"{_START}[0-9]{{1,2}}\.[0-9]{{3}}\.[0-9]{{3}}{_DASH}[0-9Xx](?![0-9A-Za-z])")

_AREA = r"(?:1[1-9]|2[12478]|3[1-578]|4[1-9]|5[1-5]|6[1-9]|7[134579]|8[1-9]|9[1-9])"
_COUNTRY = rf"(?:(?:\+|00|%2B)?55{_GAP}{{0,3}})?"
_TRUNK = rf"(?:0(?:[0-9]{{2}})?{_GAP}{{0,2}})?"
_BRACKET = r"(?:[()]|%28|%29)"
_HALF = rf"(?:9{_GAP}{{0,2}}[0-9]{{4}}|[2-9][0-9]{{3}})"
_PHONE = re.compile(
    rf"""
    (?=[0-9+(%]){_START}(?:
        # In one piece, or in groups: 11 98765-4321, 11 9 8765 4321, 11-987654321, 1198765-4321, 11 987 654 321.
        {_COUNTRY}{_TRUNK}{_AREA}(?:
            9[0-9]{{8}}
          | (?!\.[0-9]{{6}}){_GAP}{{1,3}}(?:{_HALF}{_GAP}{{0,2}}[0-9]{{4}}|9[0-9]{{2}}{_GAP}[0-9]{{3}}{_GAP}[0-9]{{3}})
          | {_HALF}{_GAP}{{1,2}}[0-9]{{4}}
        )
        # Numbers without the ninth digit. Ten digits that begin with 16 to 19, followed by 6 to 9, are seconds since 1970.
      | 55{_AREA}[2-9][0-9]{{7}}
      | 0?(?:{_AREA}[2-5]|(?!1[6-9]){_AREA}[6-9])[0-9]{{7}}
        # After +55, or after an area code in brackets, the digits may be grouped in any way.
      | (?:\+|00|%2B)55(?:{_GAP}|{_BRACKET}){{0,4}}0?[1-9](?:(?:{_GAP}|{_BRACKET}){{0,4}}[0-9]){{9,10}}
      | {_COUNTRY}(?:\(|%28){_GAP}?0?[1-9][0-9]{_GAP}?(?:\)|%29){_GAP}{{0,3}}[0-9](?:{_GAP}{{0,3}}[0-9]){{7,8}}
        # Numbers of other countries. Without an area code, only the form 9xxxx-xxxx, which no other kind of number has.
      | (?:\+|%2B)[1-9][0-9]{{9,14}}
      | 9{_GAP}?[0-9]{{4}}{_DASH}[0-9]{{4}}
    ){_END}
    """,
    re.VERBOSE,
)
