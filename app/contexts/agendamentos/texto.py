"""Normalise typed text. Every function runs in time linear in the length of the text."""

import re
import unicodedata
from functools import lru_cache
from typing import Final

# Maximum number of characters that are read. It is longer than any address or document.
LONGEST_READ: Final = 1000
NOTHING: Final = frozenset(
    """
    -|--|---|.|..|...|/|?|n/i|n/a|na|ni|n/d|nd|s/i|null|none|nan|x|xx|xxx|#n/a|#n/d
    nao informado|nao informada|nao informou|nao consta|nao tem|nao possui|nao trouxe|nao sabe|nao disponivel|nao cadastrado
    sem informacao|sem endereco|sem documento|sem documentos|em branco|vazio|nenhum|ignorado|desconhecido|pendente|a confirmar
    o mesmo|o mesmo da mae|o mesmo do pai|mesmo da mae|mesmo do pai|mesmo endereco|o mesmo endereco|a mesma|idem
    """.replace("\n", "|")
    .replace("    ", "")
    .split("|")
)
# First words of texts that mean "unknown": "mesmo endereço da mãe", "a confirmar com o paciente".
_BEGINS_NOTHING: Final = (
    "mesmo endereco", "o mesmo endereco", "mesma residencia", "a confirmar", "a verificar", "confirmar com",
    "nao informad", "nao soube",
    "em situacao de rua", "situacao de rua", "paciente em situacao de rua", "morador de rua", "moradora de rua", "sem endereco",
)  # fmt: skip
# Characters to remove. Private-use characters are among them, because the readers use these as placeholders.
_INVISIBLE = re.compile(r"[\u200b-\u200f\u2060\ufeff\u00ad\ue000-\uf8ff]+")
_SIGNS: Final = (
    {ord(sign): "-" for sign in "‐‑‒–—―−"} | {ord(sign): "'" for sign in "’‘´`"} | {0x00A0: " ", 0x202F: " "}
)
_TABLE: Final = {**_SIGNS, ord("\t"): " ", ord("\r"): "\n", ord("\v"): "\n", ord("\f"): "\n"}
# Texts with only these characters need no Unicode normalisation.
_USUAL = re.compile(r"[\n -_a-~ªº°À-ÿ]*")
_ACCENTED = re.compile(r"[\n -~àáâãäçèéêëìíîïñòóôõöùúûüý]*")
_DIGIT = re.compile(r"[0-9]")
_SPACES = re.compile(r"[ \u1680\u2000-\u200a\u205f\u3000]+")
_SMALL: Final = frozenset(["de", "da", "do", "das", "dos", "e", "em", "na", "no", "nas", "nos", "ao", "à"])
_ROMAN = re.compile(r"[ivx]{2,5}", re.IGNORECASE)
_CODE = re.compile(r"[a-z]{1,4}-?[0-9]+[a-z]?", re.IGNORECASE)


def limpo(texto: str) -> str:
    """Unify spaces, hyphens and line endings, and remove invisible characters. Line breaks are kept."""
    texto = texto[:LONGEST_READ]
    if not _USUAL.fullmatch(texto):
        texto = _SPACES.sub(" ", _INVISIBLE.sub("", unicodedata.normalize("NFC", texto)).translate(_TABLE))
    elif "  " in texto:
        texto = _SPACES.sub(" ", texto)
    return texto.strip()


@lru_cache(maxsize=8192)
def plano(texto: str) -> str:
    """Return the text in lower case and without accents."""
    if texto.isascii():
        return texto.lower()
    texto = texto.lower()
    if _ACCENTED.fullmatch(texto):
        return unicodedata.normalize("NFD", texto).encode("ascii", "ignore").decode()
    bare = "".join(each for each in unicodedata.normalize("NFD", texto) if not unicodedata.combining(each))
    return bare.replace("º", "o").replace("ª", "a").replace("°", "o")


def diz_nada(texto: str) -> bool:
    """Return whether a cell contains words but no information, such as "não informado", "-" or "o mesmo da mãe"."""
    if not texto or _DIGIT.search(texto):
        return not texto
    said = plano(texto).strip(" .!*()")
    return said in NOTHING or said.startswith(_BEGINS_NOTHING) or not any(each.isalnum() for each in texto)


def titulo(texto: str) -> str:
    """Capitalise a text that is all upper case or all lower case. A text in mixed case is returned unchanged."""
    if not (texto.isupper() or texto.islower()):
        return texto
    return " ".join(_word(word, first=place == 0) for place, word in enumerate(texto.split(" ")))


def _word(word: str, *, first: bool) -> str:
    small = word.lower()
    if small in _SMALL and not first:
        return small
    if _ROMAN.fullmatch(word) or _CODE.fullmatch(word):
        return word.upper()
    if "-" in small:
        head, _, tail = small.partition("-")
        return f"{head.capitalize()}-{tail}"
    return small.capitalize()


def quase(one: str, other: str) -> bool:
    """Return whether two words differ by at most one typing error: an added, missing or wrong letter, or two swapped
    letters.
    """
    if one == other:
        return True
    if abs(len(one) - len(other)) > 1 or (len(one) > 2 and one[0] != other[0] and one[-1] != other[-1]):
        return False
    start = next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    one, other = one[start:], other[start:]
    return (
        one[1:] == other[1:]
        or one[1:] == other
        or one == other[1:]
        or (one[2:] == other[2:] and one[:2] == other[1::-1])
    )
