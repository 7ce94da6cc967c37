import re
import string
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pytest

from batuta.access import Scope, UserRole
from batuta.dispatch.job import Overlap
from batuta.guard.breaker import CircuitState
from batuta.health.finding import Grade
from batuta.kernel import errors
from batuta.kernel.errors import BatutaError, SchemaOutOfDate
from batuta.processes.requests import RequestKind
from batuta.queue.inspection import BulkChange
from batuta.queue.item import ItemState
from batuta.runlog.execution import Status
from batuta.texts import HERE, LANGUAGES, Texts, choose_language, read_table
from tests import ROOT

FOLDERS = [HERE, ROOT / "app" / "texts"]


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def classes(kind: type[BatutaError]) -> list[type[BatutaError]]:
    return [kind] + [deeper for child in kind.__subclasses__() for deeper in classes(child)]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_both_languages_have_the_same_keys_and_facts(folder: Path) -> None:
    portuguese, english = (read_table(folder, language) for language in LANGUAGES)
    shared = {key for key in portuguese if not key.startswith(("error.", "reason.", "operation."))}
    assert shared == set(english)
    assert {key: placeholders(portuguese[key]) for key in shared} == {key: placeholders(english[key]) for key in shared}


def test_every_error_has_a_portuguese_text_with_its_facts() -> None:
    portuguese = {key: text for key, text in read_table(HERE, "pt-BR").items() if key.startswith("error.")}
    all_errors = {
        kind.__name__: kind.sentence
        for kind in classes(BatutaError)
        if kind is not BatutaError and kind.__module__ == errors.__name__
    }
    assert {key.removeprefix("error.") for key in portuguese} == set(all_errors)
    for name, sentence in all_errors.items():
        assert placeholders(portuguese[f"error.{name}"]) == placeholders(sentence), name


def test_every_reason_of_the_engine_has_a_portuguese_text_with_its_facts() -> None:
    portuguese = read_table(HERE, "pt-BR")
    written: dict[str, str] = {}
    for file in ROOT.glob("src/batuta/**/*.py"):
        written |= dict(re.findall(r"""(?:Reason|_refused)\(\s*"(\w+)",\s*"([^"]+)\"""", file.read_text()))
    assert len(written) > 15
    for key, english in written.items():
        assert placeholders(portuguese[f"reason.{key}"]) == placeholders(english), key


# Keys that the code composes: the first part, and every value that may follow it. Every composed key must be declared
# here, so that a missing text fails this test and not a page.
_OF_SCHEDULES = ("pause", "resume", "delete")
COMPOSED: dict[str, Iterable[str]] = {
    "batch_state.": ("open", "running", "cancelling", "ended", "cancelled"),
    "circuit.": CircuitState,
    "grade.": Grade,
    "cli.workers.asked_": RequestKind,
    "cli.schedules.state_": ("active", "paused", "over"),
    "item_state.": ItemState,
    "panel.act.": BulkChange,
    "panel.act.bulk_": BulkChange,
    "panel.act.process_": RequestKind,
    "panel.act.schedule_": _OF_SCHEDULES,
    "panel.act.switch_": ("on", "off"),
    "panel.depth.": ("due", "later", "running", "dead", "oldest"),
    "panel.done.": BulkChange,
    "panel.done.process_": RequestKind,
    "panel.done.schedule_": _OF_SCHEDULES,
    "panel.happening.": ("incident", "recovery", "restart", "action"),
    "panel.item_state.": ItemState,
    "panel.key.": ("late", "dead", "due", "held"),
    "panel.moment.": (
        *("created", "due", "claimed", "crashed", "again", "lease"),
        *(f"end_{state}" for state in ("done", "dead", "cancelled", "ready")),
    ),
    "panel.field.": ("since", "until"),
    "panel.operation.": ("running", "done", "stopped"),
    "panel.overlap_word.": Overlap,
    "panel.period.": ("planned", "waited", "earlier", "ran", "rests"),
    "panel.process.": ("ok", "held", "degraded", "failing"),
    "panel.request_kind.": RequestKind,
    "panel.status_word.": Status,
    "panel.target_": ("all", "category", "job", "queue"),
    "panel.token_role.": (*UserRole, "metrics"),
    "panel.token_state.": ("active", "expired", "revoked"),
    "panel.trigger_word.": ("schedule", "manual", "catch_up"),
    "panel.will.": BulkChange,
    "panel.will.process_": RequestKind,
    "panel.will.schedule_": _OF_SCHEDULES,
    "role_word.": UserRole,
    "scope_word.": Scope,
}
# First parts of keys that commands and the application's screens compose. Their own tests read these texts.
_COMPOSED_ELSEWHERE = ("cli.", "estado.", "grupos.", "problem.", "quadro.", "section.", "tela.")


def test_every_key_used_by_the_code_is_in_the_table() -> None:
    known = set().union(*(read_table(folder, "en") for folder in FOLDERS))
    asked = set()
    for file in [path for kind in ("src/batuta/**/*", "app/**/*") for path in ROOT.glob(kind)]:
        if file.suffix not in (".py", ".j2"):
            continue
        text = file.read_text()
        asked |= set(re.findall(r"""texts(?:\(\))?\(\s*["']([\w.]+)["']""", text))
        asked |= set(re.findall(r"""f["']((?:panel\.\w|circuit\.)[\w.]*[._])\{\w""", text))
        asked |= {
            f"problem.{slug}.{part}"
            for slug in re.findall(r'Problem\(\d+, "(\w+)"', text)
            for part in ("title", "detail")
        }
    assert len(asked) > 40
    composed = {key for key in asked if key.endswith((".", "_"))}
    assert {key for key in composed if not key.startswith(_COMPOSED_ELSEWHERE)} <= COMPOSED.keys()
    needed = {f"{key}{value}" for key in composed & COMPOSED.keys() for value in COMPOSED[key]}
    assert (asked - composed) | needed <= known, sorted(((asked - composed) | needed) - known)
    assert all(any(each.startswith(key) for each in known) for key in composed - COMPOSED.keys())


def test_error_is_shown_in_the_language_of_the_operator() -> None:
    error = SchemaOutOfDate(missing="app/0003")
    assert Texts("pt-BR").error(error).startswith("a migração app/0003, de que este código precisa, não foi aplicada")
    assert Texts("en").error(error).startswith("this code needs migration app/0003")


@pytest.mark.parametrize(
    ("asked", "language"),
    [
        ("pt-BR,pt;q=0.9,en;q=0.8", "pt-BR"),
        ("en-GB", "en"),
        ("fr,en;q=0.5", "en"),
        ("fr", "pt-BR"),
        ("", "pt-BR"),
        (";;,", "pt-BR"),
    ],
)
def test_first_supported_language_is_chosen(asked: str, language: str) -> None:
    assert choose_language(asked, otherwise="pt-BR") == language


def test_count_is_shown_with_separators_of_thousands() -> None:
    facts = {"queue": "default", "target": "other"}
    assert Texts("pt-BR")("cli.queue.rehomed", count=1234, **facts) == "1.234 itens movidos de default para other"
    assert Texts("pt-BR")("cli.queue.rehomed", count=1, **facts) == "1 item movido de default para other"
    assert Texts("en")("cli.queue.rehomed", count=1234, **facts) == "1,234 items moved from default to other"


def test_durations_have_one_format_each() -> None:
    portuguese, english = Texts("pt-BR"), Texts("en")
    limits = [timedelta(seconds=1.5), timedelta(minutes=45), timedelta(minutes=90), timedelta(hours=25)]
    assert [portuguese.span(each) for each in limits] == ["1,5 s", "45 min", "1 h 30 min", "1 d 1 h"]
    assert english.span(limits[0]) == "1.5 s"
    ages = [timedelta(seconds=-5), timedelta(seconds=59), timedelta(minutes=90), timedelta(days=3)]
    assert [portuguese.about(each) for each in ages] == ["0 s", "59 s", "90 min", "3 d"]
    assert [portuguese.took(ms) for ms in (7, 1234, 61_000)] == ["7 ms", "1,2 s", "1 min 1 s"]
