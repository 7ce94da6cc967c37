"""The engine's log lines, categories and health sections use Julia's words, because operators search for them."""

import io
from datetime import UTC, datetime, timedelta

import pytest

from app.composition.catalogue import SECTIONS
from app.main import build
from app.settings import Settings
from batuta.config import load_settings
from batuta.dispatch.runner import Lanes
from batuta.health.finding import WHOLE
from batuta.kernel.events import ExecutionStarted, ProcessStarted
from batuta.logs import LogSubscriber
from batuta.texts import LANGUAGES, Language, Texts
from tests.engine.logs.log_lines import json_lines, logging_to

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def test_log_has_the_phrases_that_operators_search_for() -> None:
    work = build(load_settings(Settings, {})).work
    log = LogSubscriber(work.extension.wording)
    with logging_to(stream := io.StringIO(), "json"):
        log(ProcessStarted("scheduler", "1", NOON.astimezone(work.zone)))
        log(ExecutionStarted("report_manha", "report", "e-1", "schedule", NOON, 1, timedelta(0)))
        process, job = json_lines(stream)
    assert process["event"] == "process started. Hora atual: 05/01/2026 09:00:00 -0300"
    assert process["hora_atual"] == "2026-01-05T09:00:00-03:00"
    assert (job["event"], job["job"], job["categoria"]) == ("Executando job", "report_manha", "report")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_category_has_a_text_and_pause_accepts_it(language: Language) -> None:
    work = build(load_settings(Settings, {})).work
    texts = Texts(language, work.extension.texts)
    for category in work.registry.categories:
        shown = texts.get(f"category.{category}", "")
        assert shown != "", category
        assert work.find_pause(f"category:{shown}", texts.category).key == f"pause.category.{category}"
    assert Texts("pt-BR", work.extension.texts).category("critico") == "essencial"


def test_score_has_julias_sections_and_the_live_category_is_reserved() -> None:
    extension = build(load_settings(Settings, {})).work.extension
    assert [section.label for section in extension.sections] == [
        "connectivity", "fila", "chips", "circuits", "jobs_and_workers",
    ]  # fmt: skip
    assert sum(section.weight for section in SECTIONS) == WHOLE
    assert Lanes(reserved=extension.reserved).is_reserved("critico")
