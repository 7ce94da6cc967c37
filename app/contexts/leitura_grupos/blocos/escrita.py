"""Lines of a group message. A line stores each letter's position in the original message, so that the positions are
still known after a rule in ``blocos/`` has rewritten the line.
"""

from collections.abc import Iterable, Sequence

from app.contexts.leitura_grupos.texto.texto import Escrita, dobrado
from batuta.kernel import dataclass


@dataclass(slots=True, unsafe_hash=True)
class Linha:
    """A line of a group message. ``lugares`` has each letter's position in the original message. ``bloco`` is the name
    of the rule that rewrote the line, or empty if the line is as the author wrote it.
    """

    texto: str
    lugares: Sequence[int]
    bloco: str = ""

    @property
    def plano(self) -> str:
        return dobrado(self.texto)

    def parte(self, inicio: int, fim: int) -> "Linha":
        return Linha(self.texto[inicio:fim], self.lugares[inicio:fim], self.bloco)

    def trocada(self, inicio: int, fim: int, letters: str) -> "Linha":
        """Replace a range of the line with ``letters``. The new letters get the original position of the replaced
        range.
        """
        part = dito(letters, self.parte(inicio, fim))
        places = [*self.lugares[:inicio], *part.lugares, *self.lugares[fim:]]
        return Linha(self.texto[:inicio] + letters + self.texto[fim:], places, self.bloco)

    def com(self, at: int, letters: str) -> "Linha":
        """Insert letters into the line. The new letters get the original position of the letter before them."""
        where = self.lugares[max(0, at - 1)] if self.lugares else 0
        places = [*self.lugares[:at], *([where] * len(letters)), *self.lugares[at:]]
        return Linha(self.texto[:at] + letters + self.texto[at:], places, self.bloco)


def linhas(fonte: str) -> list[Linha]:
    found, start = [], 0
    for line in fonte.split("\n"):
        found.append(Linha(line, range(start, start + len(line))))
        start += len(line) + 1
    return found


def letras(found: Sequence[Linha]) -> str:
    """Join lines into one text. Each rewriting rule in ``blocos/`` searches this text for the layout that the rule
    rewrites.
    """
    return "\n".join([each.texto for each in found])


def inteiro(found: Sequence[Linha]) -> str:
    """Join lines into one text, in lower case without accents. Each rewriting rule in ``blocos/`` searches this text
    for the layout that the rule rewrites.
    """
    return dobrado(letras(found))


def dito(letters: str, source: Linha) -> Linha:
    """Return a line with the text ``letters`` that replaces the line ``source``. The last letter gets the position of
    the end of ``source`` in the original message, and all other letters get the position of its start.
    """
    first = source.lugares[0] if source.lugares else 0
    last = source.lugares[-1] if source.lugares else 0
    return Linha(letters, [*([first] * (len(letters) - 1)), last])


def juntas(parts: Iterable[Linha], bloco: str, entre: str = " ") -> Linha:
    """Join parts of lines into one line, with ``entre`` between them."""
    letters: list[str] = []
    places: list[int] = []
    for each in parts:
        if letters:
            letters.append(entre)
            places.extend([places[-1]] * len(entre))
        letters.append(each.texto)
        places.extend(each.lugares)
    return Linha("".join(letters), places, bloco)


def escrita(found: Sequence[Linha]) -> Escrita:
    """Return the text of the lines, and each letter's position in the original message."""
    places: list[int] = []
    for place, each in enumerate(found):
        places.extend(each.lugares)
        if place < len(found) - 1:
            places.append(places[-1] if places else 0)
    tables = frozenset(place for place, each in enumerate(found) if each.bloco)
    return Escrita("\n".join(each.texto for each in found), tuple(places), tables)
