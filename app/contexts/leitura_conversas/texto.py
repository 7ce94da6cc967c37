"""Split a typed message into sentences of known words.

The module ignores case, accents and look-alike letters, removes invisible characters, joins spaced-out letters and
splits words written without spaces. Quoted text is kept apart, because the sender did not write it.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from app.contexts.leitura_conversas.lexico import fold, load_known_words, meanings, split_glued, terms
from batuta.kernel import dataclass

LONGEST: Final = 65_536
# A text without a full stop is divided into pieces of this many words.
_LONGEST_SENTENCE: Final = 160
_OVERLAP: Final = 20
_INVISIBLE: Final = re.compile(
    "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff\U0001f3fb-\U0001f3ff\u20e3]"
)
_LOOKALIKES: Final = str.maketrans(
    "λавсԁеёғɡһіїјкӏӀмпорԛгѕтуѵԝхүνοορταειικυχηβρ"
    "ɑıɩʟɴʀꜱᴀʙᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢ",
    "aabcdeefghiijkllmnopqrstuvwxyvooptaeiikuxnbp"
    "aiilnrsabcdejkmoptuvwz",
)  # fmt: skip
_SQUARED: Final = {
    base + offset: chr(97 + offset) for base in (0x1F150, 0x1F170, 0x1F1E6, 0x1F130, 0x24B6) for offset in range(26)
}
_SPACED: Final = re.compile(r"(?<![a-z0-9])[a-z0-9](?:[ .\-_*/|~]{1,2}[a-z0-9]){2,}(?![a-z0-9])")
_APOSTROPHE: Final = re.compile(r"(?<=[a-z])'(?=[a-z])")
_STARRED: Final = re.compile(r"(?<![a-z*])([a-z]+)\*([a-z]+)(?![a-z*])")
_QUOTED: Final = re.compile(r'"([^"]{1,400})"')
_QUOTED_SINGLE: Final = re.compile(r"(?<![a-z0-9])'([^'\n]{2,200})'(?![a-z0-9])")
_TOKEN: Final = re.compile(r"[a-z0-9@$]+|[.!?\n;]+|[,:()]|\+|[^\s\x00-\x7f]| - ")
_ENDS: Final = frozenset(".!?\n;")
_NAO: Final = "nao"
_CACHED: Final = 16_384


@dataclass(frozen=True, slots=True)
class Palavra:
    texto: str
    marcas: frozenset[str]

    def __hash__(self) -> int:
        return hash(self.texto)


@dataclass(frozen=True, slots=True)
class Frase:
    palavras: tuple[Palavra, ...]
    sinais: tuple[Palavra, ...]  # emoji anywhere in the sentence
    fim: str  # the punctuation that ends the sentence

    def is_question(self) -> bool:
        return "?" in self.fim


@dataclass(frozen=True, slots=True)
class Texto:
    frases: tuple[Frase, ...]
    citadas: tuple[Frase, ...]

    def distinct(self) -> Sequence[Frase]:
        """Return the sentences of the text without repetitions."""
        if len(self.frases) < 2:
            return self.frases
        return list({(each.palavras, each.sinais, each.fim[:1]): each for each in self.frases}.values())


def separate(texto: str) -> Texto:
    own, quoted = _without_quotes(_plain(texto))
    return Texto(tuple(_sentences(own)), tuple(_sentences(quoted)))


def _plain(texto: str) -> str:
    """Return the text in lower-case Latin letters without accents."""
    if len(texto) > LONGEST:
        texto = texto[: LONGEST // 2] + "\n" + texto[-LONGEST // 2 :]
    visible = _INVISIBLE.sub("", texto)
    if not visible.isascii():
        visible = unicodedata.normalize("NFKC", visible.translate(_SQUARED)).lower().translate(_LOOKALIKES)
        visible = "".join(each for each in unicodedata.normalize("NFD", visible) if not unicodedata.combining(each))
        visible = visible.translate(_QUOTES)
    return _STARRED.sub(_unstar, _SPACED.sub(_join, _APOSTROPHE.sub("", visible.lower())))


_QUOTES: Final = str.maketrans("“”„«»‘’´`–—•", '"""""\'\'\'\',,,')


def _unstar(match: re.Match[str]) -> str:
    """Replace a star that was written in place of a vowel: "p*rar" becomes "parar"."""
    found = [word for vowel in "aeiou" if load_known_words().get(fold(word := f"{match[1]}{vowel}{match[2]}"))]
    return found[0] if found else match[0]


def _join(match: re.Match[str]) -> str:
    letters = re.sub(r"[^a-z0-9]", "", match[0])
    words = split_glued(letters)
    return " ".join(words) if words else match[0]


def _without_quotes(plain: str) -> tuple[str, str]:
    """Split a text into the sender's own words and the words that the sender quotes. If the text is only a quotation,
    treat it as the sender's own words.
    """
    own: list[str] = []
    quoted: list[str] = []
    for line in plain.split("\n"):
        (quoted if line.lstrip().startswith(">") else own).append(line)
    text = "\n".join(own)
    quoted += [match[1] for shape in (_QUOTED, _QUOTED_SINGLE) for match in shape.finditer(text)]
    text = _QUOTED_SINGLE.sub(" citado ", _QUOTED.sub(" citado ", text))
    if quoted and not re.search(r"[a-z0-9]", text.replace("citado", "")):
        return "\n".join(quoted), ""
    return text, "\n".join(quoted)


def _sentences(plain: str) -> Iterator[Frase]:
    words: list[Palavra] = []
    for match in _TOKEN.finditer(plain):
        piece = match[0]
        if piece[0] in _ENDS:
            # The full stop of "dr. teste" does not end a sentence. Punctuation without words before it is ignored.
            if words and not (piece == "." and words[-1].texto in terms("dr dra sr sra")):
                yield _sentence(words, piece)
                words = []
            continue
        words.extend(_words(piece))
        if len(words) >= _LONGEST_SENTENCE:
            yield _sentence(words, "")
            words = words[-_OVERLAP:]
    if words:
        yield _sentence(words, "")


@lru_cache(maxsize=_CACHED)
def _words(piece: str) -> tuple[Palavra, ...]:
    if piece in (",", ":", "(", ")", " - "):
        return (Palavra(",", frozenset()),)
    if piece == "+":
        return (Palavra("mais", meanings("mais")[1]),)
    word, marks = meanings(piece)
    if marks or word in load_known_words() or len(piece) < 7 or not piece.isalpha() or not piece.isascii():
        return (Palavra(word, marks),)
    pieces = split_glued(piece)
    if len(pieces) > 2 or (len(pieces) == 2 and pieces[0] == _NAO):
        return tuple(Palavra(*meanings(each)) for each in pieces)
    return (Palavra(word, marks),)


def _sentence(words: Sequence[Palavra], end: str) -> Frase:
    signs = tuple(each for each in words if not each.texto.isascii())
    own = [each for each in words if each.texto.isascii()] if signs else words
    return Frase(tuple(_contact_verbs(_plain_num(own))), signs, end)


_AFTER_NOT: Final = frozenset(("ME", "QUERER", "ENVIAR", "CHAMAR", "LIGAR", "PRECISA", "INCOMODAR"))


def _plain_num(words: Sequence[Palavra]) -> list[Palavra]:
    """Remove the meaning "negation" from the word "num" if it is a preposition ("in a"). In "num me manda" it is a
    negation and keeps this meaning.
    """
    return [
        Palavra(each.texto, each.marcas - {"NAO"})
        if each.texto == "num" and not (at + 1 < len(words) and words[at + 1].marcas & _AFTER_NOT)
        else each
        for at, each in enumerate(words)
    ]


_CONTACT: Final = frozenset(("contato", "contatos", "contacto", "ctt"))
_INTO_CONTACT: Final = terms("entrar entre entrem entrarem entrasem entra entrando entrase")
_MAKE_CONTACT: Final = frozenset(
    ("faser", "fasa", "fasam", "facam", "faca", "manter", "mantenha", "mantenham", "tente", "tentem", "estabelecer")
)


def _contact_verbs(words: Sequence[Palavra]) -> list[Palavra]:
    """Merge the words "entrar em contato" (to get in touch) into one verb."""
    if _CONTACT.isdisjoint([each.texto for each in words]):
        return list(words)
    read, at = [], 0
    while at < len(words):
        ahead = [each.texto for each in words[at + 1 : at + 5]]
        found = next((n for n, each in enumerate(ahead) if each in _CONTACT), None)
        into = words[at].texto in _INTO_CONTACT and "em" in ahead
        make = words[at].texto in _MAKE_CONTACT
        if found is None or not (into or make):
            read.append(words[at])
            at += 1
            continue
        between = [each for each in words[at + 1 : at + 1 + found] if each.texto != "em"]
        read += [Palavra("contatar", frozenset(("CONTATAR",))), *between, Palavra("me", frozenset(("ME", "LEVE")))]
        at += found + 2
    return read
