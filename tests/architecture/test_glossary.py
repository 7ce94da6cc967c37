"""docs/glossary.md lists every state that the code defines, with the word that operators see for it."""

import importlib
import pkgutil
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

import app.contexts
import batuta

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "glossary.md"
TEXTS = (ROOT / "src" / "batuta" / "texts" / "pt_BR.toml", ROOT / "app" / "texts" / "pt_BR.toml")
SCHEMAS = (ROOT / "src" / "batuta" / "stores" / "sql" / "schema", ROOT / "app" / "schema")
# Columns without a CHECK. The code chooses their values.
BY_HAND = {
    "feature_flags.value": {"on", "off"},
    "health_incidents.resolved_at": {"open", "resolved"},
    "importacoes.status": {"recebendo", "em_andamento", "concluida", "falhou"},
}
# Names of enumerations that list states. Other enumerations list kinds, reasons and choices.
STATES = re.compile("Status|State|Estado|Estagio|Situacao|Phase|Fase|Grade|Level|Nivel")
# Columns that are not states: their first value never changes, their changes do not concern operators, or they are part
# of another list.
NO_STATES = {
    "app.contexts.chips.service.StatusDoChip",  # the values that an operator may set
    "app.contexts.grupos.fila.Estagio",  # the stages in which a row waits
    "alertas_enviados.kind",
    "avaliacoes_qualidade.avaliador",
    "avisos_equipe.destino",
    "briefing_sync_log.origem",
    "bulk_operations.change",
    "process_requests.request",
    "briefing_sync_log.resultado",
    "business_events.source",
    "campanhas.tipo_campanha",
    "campanhas.tipo_de_agora",  # the name of tipo_campanha during a migration
    "chips.provider",
    "chips.tipo",
    "clientes.tipo",
    "conversations.chatwoot_estado",
    "conversations.controlled_by",
    "conversas_historico.acao",
    "doctor_state.objection_severity",
    "doctor_state.temperature_band",
    "doctor_state.temperature_trend",
    "especialidades_alias.origem",
    "external_handoffs.decidido_via",
    "fila_mensagens.fila",
    "gatilhos_contatos.avaliacao",
    "gatilhos_contatos.gatilho",
    "hospitais_alias.origem",
    "interacoes.autor_tipo",
    "interacoes.classe",
    "interacoes.opt_out",
    "interacoes.tipo",
    "lgpd_pedidos.tipo",
    "optouts_provaveis.decisao",
    "relatorios.tipo",
    "relatorios_envios.destino",
    "telegram_acoes.acao",
    "telegram_entrada.origem",
    "vagas.origem",
    "vagas.valor_tipo",
    "vagas_grupo.valor_tipo",
}


@dataclass(frozen=True)
class Machine:
    """One table of states in the glossary: where the code defines them, the key of their translations, and the
    glossary's word for each state.
    """

    title: str
    sources: tuple[str, ...]
    words: str | None
    states: Mapping[str, str]


@cache
def machines() -> tuple[Machine, ...]:
    sections = FILE.read_text(encoding="utf-8").split("\n## States\n")[1].split("\n### ")[1:]
    return tuple(_machine(section) for section in sections)


def _machine(section: str) -> Machine:
    title, _, rest = section.partition("\n")
    intro = rest.partition("\n|")[0]
    defined, _, words = intro.partition("The Portuguese words are the texts ")
    key = re.search(r"`([^`]+)`", words)
    return Machine(
        title,
        tuple(re.findall(r"`([\w.]+\.\w+)`", defined)),
        key[1] if key else None,
        dict(re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", rest, re.MULTILINE)),
    )


@cache
def constraints() -> dict[str, set[str]]:
    """Return the values that each CHECK constraint allows, by table and column."""
    found: dict[str, set[str]] = {}
    for file in sorted(file for folder in SCHEMAS for file in folder.glob("*.sql")):
        table = ""
        for match in re.finditer(
            r"(?:CREATE|ALTER) TABLE\s+(\w+)|CHECK\s*\(\s*(\w+)\s+IN\s*\(([^)]*)\)", file.read_text(encoding="utf-8")
        ):
            table = match[1] or table
            if match[2]:
                found[f"{table}.{match[2]}"] = set(re.findall(r"'([^']*)'", match[3]))
    return found


def states_of(source: str) -> set[str]:
    if source in BY_HAND:
        return BY_HAND[source]
    if source in constraints():
        return constraints()[source]
    module, _, name = source.rpartition(".")
    defined = getattr(importlib.import_module(module), name)
    if isinstance(defined, type) and issubclass(defined, Enum):
        return {str(each.value) for each in defined}
    return set(get_args(defined))


@cache
def texts(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def text_at(key: str) -> str | None:
    for file in TEXTS:
        value: Any = texts(file)
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, str):
            return value
    return None


def modules_below(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


@pytest.mark.parametrize("machine", machines(), ids=lambda machine: machine.title)
def test_listed_states_are_those_of_the_code(machine: Machine) -> None:
    assert machine.sources
    assert {source: states_of(source) for source in machine.sources} == {
        source: set(machine.states) for source in machine.sources
    }


@pytest.mark.parametrize(
    "machine", [each for each in machines() if each.words is not None], ids=lambda machine: machine.title
)
def test_portuguese_word_of_a_state_is_the_one_that_operators_read(machine: Machine) -> None:
    """The glossary uses the word that operators see for each state. If no page or command shows a state, the glossary
    may use any word for it.
    """
    assert machine.words is not None
    read = {state: text_at(machine.words.replace("*", state)) for state in machine.states}
    assert any(read.values())
    assert {state: text or machine.states[state] for state, text in read.items()} == dict(machine.states)


def test_every_column_with_a_list_of_values_is_in_the_glossary_or_not_a_state() -> None:
    listed = {source for machine in machines() for source in machine.sources}
    assert set(constraints()) - listed - NO_STATES == set()
    assert listed & NO_STATES == set()


@pytest.mark.parametrize("package", [batuta, app.contexts], ids=lambda package: package.__name__)
def test_every_enumeration_of_states_is_in_the_glossary(package: ModuleType) -> None:
    listed = {source for machine in machines() for source in machine.sources}
    enumerations = {
        f"{value.__module__}.{name}"
        for module in modules_below(package)
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, StrEnum) and value is not StrEnum
        if value.__module__ == module.__name__ and STATES.search(name)
    }
    assert enumerations - listed - NO_STATES == set()


@pytest.mark.parametrize("title", ["Engine", "Julia"])
def test_terms_are_in_alphabetical_order(title: str) -> None:
    section = FILE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    terms = [term.lower() for term in re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)][1:]
    assert terms == sorted(terms, key=_without_accents)


def _without_accents(text: str) -> str:
    return text.translate(str.maketrans("áàâãéêíóôõúçü", "aaaaeeioooucu"))


def test_operators_glossary_uses_the_terms_and_states_of_the_glossary() -> None:
    ours, theirs = FILE.read_text(encoding="utf-8"), FILE.with_name("glossario.md").read_text(encoding="utf-8")
    pairs = set(re.findall(r"^\| ([^|]+) \| ([^|]+) \|", ours.split("\n## Julia\n")[0], re.MULTILINE))
    terms = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", theirs.split("\n## Situações\n")[0], re.MULTILINE)[2:]
    assert len(terms) > 40
    assert [(english, portuguese) for portuguese, english in terms if (english, portuguese) not in pairs] == []
    states = re.findall(r"^\| [^|]+ \| ([^|]+) \|", theirs.split("\n## Situações\n")[1], re.MULTILINE)[2:]
    known = {words for machine in machines() for words in machine.states.values()}
    known |= set(texts(TEXTS[0])["item_state"].values())
    assert [word for row in states for word in row.split(", ") if word not in known] == []
