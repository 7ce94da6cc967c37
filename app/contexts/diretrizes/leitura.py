"""Pure functions that read a briefing or a template: Markdown headings with lists below them.

A document that has no known section, repeats a section, or is too long is invalid. Unknown sections and lines that
cannot be understood become warnings (``avisos``).
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

from batuta.kernel import Json, dataclass
from batuta.reasons import Reason, define

LONGEST: Final = 64 * 1024
NO_SECTION = define("documento_sem_secao", "no known section: use at least one of the headings {secoes}, each after ##")
REPEATED = define("documento_secao_repetida", "section {secao} occurs twice: merge the two")
TOO_LONG = define("documento_longo", "the document has more than {most} characters: shorten it")
EMPTY_SECTION = define("documento_secao_vazia", "section {secao} has no text: write it, or remove the heading")
UNKNOWN_SECTION = define("aviso_secao", "section {secao} is unknown and was ignored")
UNREAD_VACANCY = define("aviso_vaga", "line '{linha}' was kept as text: expected 'Hospital - 12/03 - até R$ 1.800'")

BRIEFING: Final = {
    "foco": "foco_semana",
    "foco da semana": "foco_semana",
    "vagas prioritarias": "vagas_prioritarias",
    "tom": "tom_semana",
    "tom da semana": "tom_semana",
    "observacoes": "observacoes",
}
TEMPLATE: Final = {
    "objetivo": "objetivo",
    "tom": "tom",
    "informacoes importantes": "informacoes",
    "o que nao fazer": "nao_fazer",
    "nao fazer": "nao_fazer",
    "exemplo de abertura": "abertura",
    "follow-up": "followup",
    "followup": "followup",
    "margem": "margem",
}
PRIORITIES: Final = {
    "foco_semana": 10,
    "vagas_prioritarias": 10,
    "tom_semana": 9,
    "margem_negociacao": 8,
    "observacoes": 5,
}
TEMPLATE_PRIORITY: Final = 5
_HEADING = re.compile(r"#{1,6}\s++(\S.*)")
_ITEM = re.compile(r"\s*+[-*•]\s++(\S.*)")
_PERCENT = re.compile(r"(?<!\d)(\d{1,3})\s*%")
_MARGIN = re.compile(r"\bmais\b|negocia", re.IGNORECASE)
_VACANCY = re.compile(
    r"(?P<hospital>[^\s–—-](?:.*?\S)?)\s++[-–—]\s++(?P<data>\d{1,2}/\d{1,2}(?:/\d{2,4})?)\s++[-–—]\s++até\s++R\$\s*+(?P<valor>[\d.]++)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Lido:
    """The directives in a valid document, by type, and warnings for the document's author."""

    diretrizes: Mapping[str, Json]
    avisos: Sequence[Reason] = field(default=())


@dataclass(frozen=True, slots=True)
class Invalido:
    """A document that cannot be used. ``motivo`` says what is wrong and how to correct it."""

    motivo: Reason


def ler_briefing(texto: str) -> Lido | Invalido:
    """Read a briefing's directives: focus, tone, negotiation margin, priority vacancies and notes."""
    sections = _sections(texto, BRIEFING)
    if isinstance(sections, Invalido):
        return sections
    known, warnings = sections
    made: dict[str, Json] = {}
    for tipo, lines in known.items():
        if tipo != "vagas_prioritarias":
            made[tipo] = {"itens": list(lines)}
            continue
        read = [_vacancy(line) for line in lines]
        warnings += [
            UNREAD_VACANCY(linha=line) for line, each in zip(lines, read, strict=True) if "hospital" not in each
        ]
        made[tipo] = {"itens": list(read)}
    if (margin := _margin(known.get("tom_semana", ()))) is not None:
        made["margem_negociacao"] = {"percentual": margin}
    return Lido(made, tuple(warnings))


def ler_template(tipo: str, texto: str) -> Lido | Invalido:
    """Read a campaign type's template as one directive. The directive's type is ``template_`` followed by the campaign
    type.
    """
    sections = _sections(texto, TEMPLATE)
    if isinstance(sections, Invalido):
        return sections
    known, warnings = sections
    content: dict[str, Json] = {name: list(lines) for name, lines in known.items() if name != "margem"}
    found = [int(number) for line in known.get("margem", ()) for number in _PERCENT.findall(line) if int(number) <= 100]
    if found:
        content["margem"] = found[0]
    return Lido({f"template_{tipo}": content}, tuple(warnings))


def prioridade_de(tipo: str) -> int:
    return PRIORITIES.get(tipo, TEMPLATE_PRIORITY)


def _sections(texto: str, names: Mapping[str, str]) -> tuple[dict[str, list[str]], list[Reason]] | Invalido:
    """Return the lines of each known section, with bullets removed, and a warning for each unknown section."""
    if len(texto) > LONGEST:
        return Invalido(TOO_LONG(most=LONGEST))
    found: dict[str, list[str]] = {}
    titles: dict[str, str] = {}
    warnings: list[Reason] = []
    lines: list[str] = []
    for line in texto.splitlines():
        heading = _HEADING.match(line)
        if heading is None:
            if line.strip():
                item = _ITEM.match(line)
                lines.append((item[1] if item else line).strip())
            continue
        title, lines = heading[1].rstrip().rstrip("#").rstrip(), []
        if (name := names.get(_plain(title))) is None:
            if not line.startswith("# "):  # a line that begins with # is the title of the document
                warnings.append(UNKNOWN_SECTION(secao=title))
            continue
        if name in found:
            return Invalido(REPEATED(secao=title))
        found[name], titles[name] = lines, title
    if not found:
        return Invalido(NO_SECTION(secoes=", ".join(sorted(set(names)))))
    for name, written in found.items():
        if not written:
            return Invalido(EMPTY_SECTION(secao=titles[name]))
    return found, warnings


def _plain(title: str) -> str:
    """Return a heading in lower case, without accents, emphasis and final colon."""
    letters = unicodedata.normalize("NFKD", title.strip().strip("*_: ").lower())
    return " ".join("".join(each for each in letters if not unicodedata.combining(each)).split())


def _vacancy(line: str) -> dict[str, Json]:
    match = _VACANCY.match(line)
    if match is None:
        return {"texto": line}
    return {
        "hospital": match["hospital"].strip(),
        "data": match["data"],
        "valor_max": int(match["valor"].replace(".", "")),
    }


def _margin(lines: Sequence[str]) -> int | None:
    for line in lines:
        number = _PERCENT.search(line)
        if number is not None and _MARGIN.search(line) and int(number[1]) <= 100:
            return int(number[1])
    return None
