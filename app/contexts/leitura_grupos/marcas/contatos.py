"""Find contacts: phone numbers and the names next to them."""

import re
from functools import cache
from unicodedata import normalize

from app.contexts.leitura_grupos.marcas.marca import Fone, Marca, apagar
from app.contexts.leitura_grupos.texto.texto import Palavra, Texto, achados
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario, palavras_soltas
from batuta.kernel import dataclass

_LINK = re.compile(
    r"(?:https?://)?(?:www\.)?(?:wa\.me/|api\.whatsapp\.com/send/?\?phone=|whatsapp\.com/send\?phone=)\+?(?P<n>\d{8,15})[^\s]{0,200}"
)
_PHONE = re.compile(
    r"(?=[+\d(])(?<![\w.,$/])(?:\+\s?)?(?:(?P<pais>55)[\s.-]{0,2})?(?P<ddd>\(\s?0?\d{2}\s?\)|0?\d{2})[\s.-]{0,3}"
    r"(?P<a>(?:9[\s.]?)?\d{4})[\s.-]{0,3}(?P<b>\d{4})(?![\d/])"
)
_SHORT = re.compile(
    r"(?=[2-59])(?<![\w.,$/])(?P<a>9[\s.]?\d{4}|[2-5]\d{3})[\s.-]{1,2}(?P<b>\d{4})(?![\d/])|(?<![\w.,$/])9\d{8}(?!\d)"
)
# Faster pattern. A text without eight such digits contains no phone number.
_DIGITS = re.compile(r"\d{4}[\s.-]{0,3}\d{4}")
_EMAIL = re.compile(r"\b[\w.]{1,64}@[\w.-]{1,80}|(?<!\w)@[\w.]{2,40}")
# The pattern begins with a set of characters, because a search for a set is much faster than a search for alternatives.
_NOISE = re.compile(
    r"[hwcraept\d](?<!\w.)(?:(?<=h)ttps?://[^\s]{1,500}|(?<=w)ww\.[^\s]{1,300}"
    r"|(?<=\d)(?:\d\.\d{3}\.\d{3}/\d{4}-\d{2}\b|\d{2}\.\d{3}\.\d{3}-\d{2}\b|\d{4}-\d{3}\b|(?<=0)800[ \d-]{6,14})"
    r"|(?:(?<=c)(?:rm|oren|nes|npj)|(?<=r)qe)[ :/-]{0,3}(?:[a-z]{2}[ :/-]{0,3})?\d[\d./-]{2,18}"
    r"|(?:(?<=r)(?:ua|odovia)|(?<=a)(?:v|venida|lameda|l)|(?<=e)strada|(?<=p)raca|(?<=t)(?:ravessa|v))\b"
    r"\.? [a-z][^\n\d;|]{2,60}[, ] ?(?:n[o.]{0,2} ?)?\d{1,5}\b"
    r"|(?:(?<=\bupa 2)|(?<=\bupas 2))4 ?h(?:s|rs|oras)?\b"
    r"|(?<=\bpa 2)4 ?h(?:s|rs|oras)?\b(?= [a-z]{4})(?! (?:clinic|pediatr|medic|plant|valor|hoje|amanha|para|dias"
    r"|segunda|terca|quarta|quinta|sexta|sabado|domingo))|(?<=c)ep[ :]{0,2}\d{2}\.?\d{3}-?\d{3}\b"
    r"|(?:(?<=a)(?:tualizad[oa]|tualizacao)|(?<=p)(?:ostad[oa]|ublicad[oa]))(?: em| as| dia|:){0,2}"
    r" {0,2}\d{1,2}/\d{1,2}(?:/\d{2,4})?(?:[ ,]{1,2}(?:as )?\d{1,2}(?:h|:)\d{0,2}(?:min)?)?"
    r"|(?<=\d)(?:\d{0,2} ?(?:hs?|horas?|dias?) (?:de antecedencia|antes)\b"
    r"|\d? ?x ?(?:3[6-9]|[4-9]\d)h?\b(?![.\d])))"
)
_NO_AREA = frozenset((20, 23, 25, 26, 29, 30, 36, 39, 40, 50, 52, *range(56, 61), 70, 72, 76, 78, 80, 90))
_AREAS = frozenset(range(11, 100)) - _NO_AREA
_TITLE = frozenset(("dr", "dra", "doutor", "doutora", "dona", "enf", "sec", "prof", "profa", "sr", "sra"))
_PARTICLES = frozenset(("de", "da", "do", "das", "dos", "e"))


@dataclass(slots=True, unsafe_hash=True)
class Nome(Marca):
    texto: str


@dataclass(slots=True, unsafe_hash=True)
class Contato:
    """A contact: a number, a name, or both."""

    fone: Fone | None
    nome: Nome | None

    @property
    def inicio(self) -> int:
        return min(each.inicio for each in (self.fone, self.nome) if each is not None)


def fones(livre: str) -> list[Fone]:
    found = [
        Fone(each.start(), each.end(), _add_country(each["n"])) for each in achados(_LINK, livre, "wa.me", "whatsapp")
    ]
    if _DIGITS.search(livre) is None:
        return found
    rest = apagar(livre, found)
    for each in _PHONE.finditer(rest):
        area = int(re.sub(r"\D", "", each["ddd"]))
        digits = re.sub(r"\D", "", each["a"] + each["b"])
        if area in _AREAS and ((len(digits) == 9) == digits.startswith("9") or digits[0] in "2345"):
            found.append(Fone(each.start(), each.end(), f"55{area}{digits}"))
    rest = apagar(rest, found)
    if _DIGITS.search(rest) is not None:
        found.extend(Fone(each.start(), each.end(), None) for each in _SHORT.finditer(rest))
    return sorted(found, key=lambda each: each.inicio)


# Matches the time of a message that was copied from WhatsApp: "[06/04 08:12] Fulana: …".
_SENT = re.compile(r"\[\d{1,2}/\d{1,2}(?:/\d{2,4})?,? \d{1,2}:\d{2}(?::\d{2})?\]")


def ruido(livre: str) -> list[Marca]:
    """Return links, addresses and document numbers in a text, so that their digits are not read as days or prices."""
    patterns = [_NOISE]
    if "@" in livre:
        patterns.append(_EMAIL)
    if "] " in livre:
        patterns.append(_SENT)
    return [Marca(each.start(), each.end()) for pattern in patterns for each in pattern.finditer(livre)]


def contatos(texto: Texto, livre: str, telefones: list[Fone], vocabulario: Vocabulario) -> list[Contato]:
    reader = _Nomes(texto, livre, vocabulario)
    found = []
    free = 0
    for place, fone in enumerate(telefones):
        until = telefones[place + 1].inicio if place + 1 < len(telefones) else len(livre)
        name = reader.antes(fone.inicio, free) or reader.depois(fone.fim, until)
        free = max(fone.fim, name.fim if name is not None else 0)
        found.append(Contato(fone, name))
    if not found and (name := reader.assinado()) is not None:
        found.append(Contato(None, name))
    if len(found) == 1 and found[0].nome is None and (name := reader.apresentado()) is not None:
        found = [Contato(found[0].fone, name)]
    return found


class _Nomes:
    """Finds contacts' names: the words next to a phone number that remain after all known words are removed."""

    def __init__(self, texto: Texto, livre: str, vocabulario: Vocabulario) -> None:
        self._texto = texto
        self._livre = livre
        self._known = _conhecidas()
        self._flat = not 0 < texto.maiusculas <= 0.8
        self._vocabulario = vocabulario

    def antes(self, at: int, free: int) -> Nome | None:
        start = max(free, at - 80)
        text = self._livre[start:at]
        lines = text.split("\n")
        if len(lines) > 1 and not re.search(r"[a-z]", lines[-1]):
            text = "\n".join(lines[-2:]) if len(lines) > 1 else text
            start = at - len(text)
        else:
            start = at - len(lines[-1])
        words = list(self._texto.palavras_entre(start, at))
        return self._nome(self._find_name(words, at))

    def _find_name(self, words: list[Palavra], at: int) -> list[Palavra]:
        """Return the nearest name before a phone number at the position ``at``. The name consists of unknown words;
        words that introduce the number ("contato:") may separate it from the number.
        """
        while words and (words[-1].texto in _apresentam() or self._is_number(words[-1])):
            at = words.pop().inicio
        taken: list[Palavra] = []
        while words and len(taken) < 4:
            word = words[-1]
            between = self._livre[word.fim : taken[0].inicio if taken else at]
            if taken and not re.fullmatch(r"[ *_]{1,3}" if len(word.texto) > 2 else r"[ .*_]{1,3}", between):
                break
            if not taken and re.search(r"\n.*\n|[.!?;,]\s*[a-z]", between):
                break
            beside = not taken and self._is_word(word) and re.fullmatch(r"[ :|()*_-]{0,4}", between)
            if not beside and not self._could_be(word) and not (taken and word.texto in _PARTICLES):
                break
            taken.insert(0, words.pop())
        return taken

    def depois(self, at: int, until: int) -> Nome | None:
        end = self._livre.find("\n", at)
        end = min(len(self._livre) if end < 0 else end, until, at + 60)
        words = list(self._texto.palavras_entre(at, end))
        while words and (words[0].texto in _apresentam() or words[0].texto in _TITLE):
            first = words.pop(0)
            at = first.fim if first.texto in _TITLE and self._livre[at : first.inicio].strip(" *(-") == "" else at
        taken: list[Palavra] = []
        for word in words[:4]:
            between = self._livre[taken[-1].fim if taken else at : word.inicio]
            if re.search(r"[.;\n\x01\x02]" if not taken else r"[^ ]", between) and not (
                not taken and between.strip(" .*") == ""
            ):
                break
            if not self._could_be(word) and not (taken and word.texto in _PARTICLES):
                break
            taken.append(word)
        if taken and self._vocabulario.cidades.em(taken, 0) is not None:
            return None
        return self._nome(taken)

    def apresentado(self) -> Nome | None:
        """Return the name in an introduction such as "aqui é a Fulana"."""
        said = _HERE_IS.search(self._livre)
        words = [] if said is None else list(self._texto.palavras_entre(said.end(), said.end() + 30))[:1]
        if not words and (signed := _SPEAKS.search(self._livre)) is not None:
            words = list(self._texto.palavras_entre(*signed.span("n")))
        return self._nome(words) if words and self._could_be(words[0]) else None

    def assinado(self) -> Nome | None:
        """Return the name of a contact without an adjacent phone number: a name after "falar com" (talk to), or a
        signature at the end.
        """
        for each in _CALL.finditer(self._livre):
            words = list(self._texto.palavras_entre(each.end(), each.end() + 40))
            while words and words[0].texto in _TITLE:
                words.pop(0)
            taken: list[Palavra] = []
            for word in words[:3]:
                if taken and self._livre[taken[-1].fim : word.inicio] != " ":
                    break
                if not self._could_be(word):
                    break
                taken.append(word)
            if taken and (found := self._nome(taken)) is not None:
                return found
        tail = max(0, len(self._livre.rstrip()) - 60)
        signed = _SIGNED.search(self._livre.rstrip(), tail)
        if signed is None:
            return None
        words = list(self._texto.palavras_entre(*signed.span("n")))
        if not all(self._is_word(word) for word in words) or self._vocabulario.cidades.em(words, 0) is not None:
            return None
        return self._nome(words)

    def _is_number(self, word: Palavra) -> bool:
        """Return whether a word is part of a contact's phone number. A price directly before the phone number is not
        part of it.
        """
        return word.texto.isdigit() and self._livre[word.inicio : word.fim] == word.texto

    def _is_word(self, word: Palavra) -> bool:
        """Return whether a word may be part of a contact's name: the vocabulary does not contain the word, and the word
        is not part of another field, such as a place.
        """
        is_free = self._livre[word.inicio : word.fim] == word.texto
        is_long = len(word.texto) > 2 or (len(word.texto) == 2 and not self._flat and self._is_short_name(word))
        is_said = word.texto.isalpha() and not _LAUGHS.fullmatch(word.texto)
        return is_free and is_long and is_said and word.texto not in self._known

    def _is_short_name(self, word: Palavra) -> bool:
        """Return whether a word of two letters is a name such as "Gi" or "Lu": only the first letter is upper case."""
        first, last = self._texto.trecho(word.inicio, word.fim)
        return self._texto.fonte[first:last].istitle()

    def _could_be(self, word: Palavra) -> bool:
        if not self._is_word(word):
            return False
        return (
            self._flat
            or self._texto.fonte[self._texto.trecho(word.inicio, word.fim)[0]].isupper()
            or self._lower_line(word)
        )

    def _lower_line(self, word: Palavra) -> bool:
        """Return whether the line that contains a word has no capitals. A contact's name on such a line may lack a
        capital, too.
        """
        start = self._texto.plano.rfind("\n", 0, word.inicio) + 1
        end = self._texto.plano.find("\n", word.fim)
        line = self._texto.fonte[
            self._texto.trecho(start, word.fim)[0] : self._texto.trecho(
                word.inicio, len(self._livre) if end < 0 else end
            )[1]
        ]
        return not any(char.isupper() for char in line[-60:]) and not _CAPITALS.search(line)

    def _nome(self, words: list[Palavra]) -> Nome | None:
        while words and words[0].texto in _PARTICLES:
            words = words[1:]
        while words and words[-1].texto in _PARTICLES:
            words = words[:-1]
        if not words:
            return None
        start, end = words[0].inicio, words[-1].fim
        first, last = self._texto.trecho(start, end)
        written = normalize("NFKC", self._texto.fonte[first:last])
        return Nome(start, end, written if not (written.islower() or written.isupper()) else written.title())


_CALL = re.compile(
    r"\b(?:falar|tratar|chamar|contato|contatar|procurar|telefonar|falem|fale|chame|ligar|ligue|procurem|infos?|informacoes|detalhes|datas|inscricoes|chama|chamem|fala|me\schama)"
    r"[ :]{1,2}(?:(?:com|c/|c|a|o|no|pv|privado|direto)[ :]{1,2}){0,3}"
)
_HERE_IS = re.compile(
    r"\b(?:(?:aqui|quem fala|meu nome) e (?:(?:a|o|dr|dra)\.? ){0,2}|me chamo (?:dra?\.? )?|sou [ao] (?:dra?\.? )?)"
)
_SPEAKS = re.compile(r"\bdra?\.? (?P<n>[a-z]{3,15}) aqui\b")
_LAUGHS = re.compile(r"k{2,}|(?:ha){2,}h?|(?:rs){1,}|(?:he){2,}")
# Matches a capitalised word inside a sentence, which shows that the author capitalises names.
_CAPITALS = re.compile(r"[a-zà-ÿ,] [A-ZÀ-Ý][a-zà-ÿ]{2,}")
_SIGNED = re.compile(r"[-.!\n]\s{0,2}(?:dra?\.?\s)?(?P<n>[a-z]{3,15}(?:\s[a-z]{3,15})?)\.?$")


@cache
def _conhecidas() -> frozenset[str]:
    return palavras_soltas("nao_sao_nomes") | _apresentam() | _TITLE


@cache
def _apresentam() -> frozenset[str]:
    """Return the words that may occur between a name and its phone number."""
    return palavras_soltas("apresentam_numero")


def _add_country(digits: str) -> str | None:
    if digits.startswith("55") and len(digits) in (12, 13):
        return digits
    return f"55{digits}" if len(digits) in (10, 11) else None
