"""Map a written word to its meanings. The lexicon ignores spelling variants, knows the inflected forms of verbs, and
corrects one typing error in a long word.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

_FILE: Final = Path(__file__).parent / "lexico.toml"
_FIELDS: Final = Path(__file__).parent / "campos.toml"
# Shortest word in which a typing error is corrected. A shorter word resembles too many other words.
_LONG_ENOUGH: Final = 6
_LONGEST_GLUED: Final = 80
_MOST_FIELDS: Final = 3
_LONGEST_WORD: Final = 24
_LEET: Final = str.maketrans("013457@$", "oieastas")
_REPEATED: Final = re.compile(r"(.)\1+")
_LAUGHTER: Final = re.compile(
    r"k{2,}[a-z]?|(?:rs)+|(?:ha|he|hi|hu|ah|eh){2,}h?|(?:ks|sk|kj|kk)+k?|(?=[a-z]*k[a-z]*k)[kashu]{5,}"
)
_SOFT_C: Final = re.compile(r"c(?=[ei])")
_REQUESTS: Final = {
    "ar": ("ar", "a", "e", "em", "es", "arem", "asse", "assem", "ando", "armos", "emos", "en"),
    "er": ("er", "e", "a", "am", "as", "erem", "esse", "essem", "endo", "amos", "ermos"),
    "ir": ("ir", "i", "e", "a", "am", "as", "irem", "isse", "issem", "indo", "amos"),
}
_REPORTS: Final = {
    "ar": ("o", "am", "ei", "ou", "aram", "ava", "avam", "amos", "aste", "ara", "arao", "aria", "ariam"),
    "er": ("o", "em", "i", "eu", "eram", "ia", "iam", "emos", "era", "erao", "eria", "eriam"),
    "ir": ("o", "em", "iu", "iram", "ia", "iam", "imos", "ira", "irao", "iria", "iriam", "em"),
}
_PARTICIPLES: Final = {"ar": "ad", "er": "id", "ir": "id"}


def fold(word: str) -> str:
    """Return a word's approximate phonetic form. For example, a doubled letter becomes one letter, soft c and z become
    s, and qu becomes k.
    """
    word = word.replace("qu", "k").replace("q", "k").replace("z", "s").replace("y", "i").replace("w", "u")
    return _REPEATED.sub(r"\1", _SOFT_C.sub("s", word))


@cache
def terms(written: str) -> frozenset[str]:
    """Return the phonetic form of each word in ``written``. The words in sentences are in phonetic form too, so both
    can be compared.
    """
    return frozenset(map(fold, written.split()))


def _forms(verb: str) -> Iterator[tuple[str, str]]:
    stem, ending = verb[:-2], verb[-2:]
    before_e = re.sub("c$", "qu", re.sub("g$", "gu", stem)) if ending == "ar" else stem
    if verb.endswith("ear"):
        yield from (("", stem + suffix) for suffix in ("ia", "ie", "iem"))
        yield "_DITO", stem + "io"
    for suffix in _REQUESTS[ending]:
        yield "", (before_e if suffix[0] in "ei" else stem) + suffix
    for suffix in _REPORTS[ending]:
        yield "_DITO", (before_e if suffix[0] in "ei" else stem) + suffix
    for gender in ("o", "a", "os", "as"):
        yield "_PP", stem + _PARTICIPLES[ending] + gender


@cache
def _lexicon() -> tuple[dict[str, frozenset[str]], dict[str, str]]:
    """Load the lexicon. Return two mappings: from the phonetic form of each word to its meanings, and from each
    spelling to its phonetic form.
    """
    read = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    found: dict[str, set[str]] = {}
    spellings: dict[str, str] = {}
    for name, verbs in read["verbos"].items():
        for verb in verbs:
            if verb[-2:] not in _REQUESTS:
                continue
            for suffix, form in _forms(verb):
                # "não incomoda" states that something does not bother. "não incomode" is a request.
                is_statement = name == "INCOMODAR" and verb.endswith("ar") and form == verb[:-1]
                found.setdefault(fold(form), set()).add("INCOMODA" if is_statement else name + suffix)
                spellings[form] = fold(form)
    for name, listed in read["palavras"].items():
        for word in listed:
            found.setdefault(fold(word), set()).add(name)
            spellings[word] = fold(word)
    # Known words without a meaning. They are never corrected to another word, and a misspelt word may be corrected to
    # them.
    for word in read["conhecidas"]["palavras"]:
        found.setdefault(fold(word), set())
        spellings[word] = fold(word)
    spellings.update({word: word for word in found})
    return {word: frozenset(names) for word, names in found.items()}, spellings


def load_known_words() -> dict[str, frozenset[str]]:
    """Map each known word's phonetic form to its meanings. The lexicon is loaded on first use, because most processes
    read no messages.
    """
    return _lexicon()[0]


@cache
def fields() -> dict[str, tuple[str, ...]]:
    """Map each word's phonetic form to its semantic fields. Only ``classificador`` uses these fields."""
    read = tomllib.loads(_FIELDS.read_text(encoding="utf-8"))
    found: dict[str, set[str]] = {}
    for name, verbs in read["verbos"].items():
        for verb in verbs:
            for suffix, form in _forms(verb):
                found.setdefault(fold(form), set()).add(f"#{name}_DITO" if suffix else f"#{name}")
    for name, words in read["palavras"].items():
        for word in words:
            found.setdefault(fold(word), set()).add(f"#{name}")
    return {word: tuple(sorted(names)[:_MOST_FIELDS]) for word, names in found.items()}


# Abbreviations and the words that they stand for.
_ALIASES: Final = {
    **dict.fromkeys(("n", "nn", "naum", "nau", "naun", "noa", "naao"), "nao"),
    **dict.fromkeys(("q", "k", "ki"), "ke"),
    **dict.fromkeys(("mt", "mto", "mtu"), "muito"),
    **dict.fromkeys(("td", "tds"), "tudo"),
    "eh": "e",
    "tou": "to",
    "hj": "hoje",
    "ngm": "ninguem",
}


def _shorter(word: str) -> set[str]:
    return {word[:at] + word[at + 1 :] for at in range(len(word))}


@cache
def _neighbours() -> dict[str, list[tuple[str, str]]]:
    """Build an index that finds known words from a spelling with one wrong letter. The keys are each known spelling,
    and that spelling with any one letter removed. The values are lists of pairs: a known spelling and its phonetic
    form.
    """
    index: dict[str, list[tuple[str, str]]] = {}
    for spelling, word in sorted(_lexicon()[1].items()):
        if len(spelling) >= _LONG_ENOUGH + (not load_known_words()[word]):
            for key in {spelling, *_shorter(spelling)}:
                index.setdefault(key, []).append((spelling, word))
    return index


@lru_cache(maxsize=16_384)
def meanings(word: str) -> tuple[str, frozenset[str]]:
    """Return a word's phonetic form and its meanings. An unknown word has no meanings."""
    if _LAUGHTER.fullmatch(word):
        return "riso", frozenset(("RISO",))
    plain = _ALIASES.get(word) or fold(word)
    if plain in load_known_words():
        return plain, load_known_words()[plain]
    if any(each.isdigit() or each in "@$" for each in word):
        return _with_digits(word, plain)
    if len(plain) < _LONG_ENOUGH - 1 or len(plain) > _LONGEST_WORD:
        return plain, frozenset()
    for tried in (plain, word):
        near = {each for key in (tried, *_shorter(tried)) for each in _neighbours().get(key, ())}
        close = sorted(
            (each for each in near if each[0][0] == tried[0] and one_slip(tried, each[0]) and _may_be(tried, each)),
            key=lambda each: (not load_known_words()[each[1]] & _KEY, each),
        )
        if close:
            return close[0][1], load_known_words()[close[0][1]]
    return plain, frozenset()


def _may_be(tried: str, near: tuple[str, str]) -> bool:
    """Return whether a written word may be a misspelling of a similar known word. For a short word, only words that are
    typical of opt-outs (``_KEY``) are considered.
    """
    return len(tried) >= _LONG_ENOUGH or (len(near[0]) > len(tried) and bool(load_known_words()[near[1]] & _KEY))


_KEY: Final = frozenset(
    (
        "ENVIAR",
        "CONTATAR",
        "RECEBER",
        "TIRAR",
        "DESCADASTRAR",
        "CANCELAR",
        "BLOQUEAR",
        "INCOMODAR",
        "MSG",
        "NUMERO",
        "NADA",
    )
)


def _with_digits(word: str, plain: str) -> tuple[str, frozenset[str]]:
    keyword = fold(word.translate(_LEET))
    if load_known_words().get(keyword, frozenset()) & {"SAIR", "STOP", "PARAR", "CANCELAR", "TIRAR"}:
        return keyword, load_known_words()[keyword]
    if plain.isdigit() or re.fullmatch(r"\d+[a-z]{1,3}\d*", plain):
        return plain, frozenset(("NUM",))
    swapped = fold(word.translate(_LEET))
    if swapped in load_known_words() and len(swapped) > 2:
        return swapped, load_known_words()[swapped]
    return plain, frozenset(("NUM",)) if plain[:1].isdigit() else frozenset()


def one_slip(left: str, right: str) -> bool:
    """Return whether two words differ by at most one typing error: one letter added, missing or wrong, or two
    neighbouring letters swapped.
    """
    if abs(len(left) - len(right)) > 1:
        return False
    start = 0
    while start < min(len(left), len(right)) and left[start] == right[start]:
        start += 1
    a, b = left[start:], right[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def split_glued(letters: str) -> tuple[str, ...]:
    """Split text written without spaces into known words. Returns an empty tuple if this is not possible."""
    letters = letters.translate(_LEET) if any(each.isdigit() for each in letters) else letters
    if len(letters) > _LONGEST_GLUED:
        return ()
    best: list[tuple[str, ...] | None] = [()] + [None] * len(letters)
    for end in range(1, len(letters) + 1):
        for start in range(max(0, end - 14), end):
            before = best[start]
            piece = letters[start:end]
            if before is None or not _is_piece(piece):
                continue
            longer = (*before, piece)
            kept = best[end]
            if kept is None or len(longer) < len(kept):
                best[end] = longer
    return best[-1] or ()


def _is_piece(piece: str) -> bool:
    return (len(piece) > 1 and bool(load_known_words().get(fold(piece)))) or piece in ("o", "a", "e")
