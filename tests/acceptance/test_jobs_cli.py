"""The scheduler's commands as people type them."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Command, one_sentence

PROGRAM = """
from datetime import time
from batuta import Batuta, Failed, Ok, Partial
from batuta.engine import Extension
from batuta.guard.switches import SwitchRule
from batuta.schedule.window import Window

work = Batuta(
    "sqlite:///work.db",
    extension=Extension(
        profiles=["always", "windows"],
        windows={"manha": Window(opens=time(10))},
        switches={"ofertas": SwitchRule(key="offers.enabled", hold_when=False, at_rest=True)},
    ),
)

@work.job("* * * * *", category="live", critical=True)
async def pulse(run):
    return Ok(items=len(run.params), details={"params": dict(run.params)})

@work.job("0 3 * * *", category="upkeep", profiles=["always"])
async def tidy():
    raise RuntimeError("broken on purpose")

@work.job("0 10 * * 1-5", category="offers", profiles=["windows"], window="manha",
          holds=(SwitchRule(key="offers.enabled", hold_when=False, at_rest=True),))
async def offer():
    return Partial("half of them", items=2)
"""


@pytest.fixture(autouse=True)
def program(folder: Path) -> None:
    (folder / "program.py").write_text(PROGRAM)


def as_json(answer: tuple[int, str, str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer[1])
    return found


def test_jobs_lists_every_job_of_the_profile_with_its_state(batuta: Command) -> None:
    code, out, _ = batuta("jobs")
    assert code == 0
    assert "2 tarefas, perfil always" in out
    assert "pulse" in out
    assert "aguardando" in out
    listed = as_json(batuta("jobs", "--profile", "windows", "--json"))
    assert listed["profile"] == "windows"
    assert [each["name"] for each in listed["jobs"]] == ["pulse", "offer"]


def test_run_runs_now_and_the_execution_is_in_the_log(batuta: Command) -> None:
    ran = as_json(batuta("run", "pulse", "--param", "tipo=manha", "--json"))
    assert (ran["status"], ran["trigger"], ran["items_processed"]) == ("success", "manual", 1)
    assert ran["result"] == {"params": {"tipo": "manha"}}
    (row,) = as_json(batuta("executions", "pulse", "--json"))["executions"]
    assert row["id"] == ran["id"]


def test_a_run_that_fails_exits_with_1_and_keeps_the_message_out_of_the_log(batuta: Command) -> None:
    code, out, _ = batuta("run", "tidy")
    assert code == 1
    assert "tidy: error" in out
    assert "RuntimeError in the job" in out
    assert "broken on purpose" not in out


def test_a_partial_run_says_so(batuta: Command) -> None:
    code, out, _ = batuta("run", "offer", "--even-if-held")
    assert code == 0
    assert "partial: half of them" in out
    assert "parcial" in batuta("jobs", "--profile", "windows")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "puls"), "não existe tarefa 'puls': você quis dizer pulse?"),
        (("executions", "puls"), "não existe tarefa 'puls': você quis dizer pulse?"),
        (("pause", "offer_s"), "não existe tarefa nem categoria 'offer_s': você quis dizer"),
        (("jobs", "--profile", "window"), "não existe perfil 'window': você quis dizer windows?"),
        (("schedule", "use", "alway"), "não existe perfil 'alway': você quis dizer always?"),
        (("schedule", "--day", "amanha"), "--day"),
        (("windows", "set", "tarde", "10:00"), "não existe janela 'tarde': você quis dizer manha?"),
        (("windows", "set", "manha", "25:00"), "a janela 'manha' não pode valer: hour must be in 0..23"),
        (("windows", "set", "manha", "10:00", "--minutes", "0"), "a janela 'manha' não pode valer"),
        (("windows", "set", "manha", "10:00", "--days", "seg-foo"), "a janela 'manha' não pode valer"),
        (("pause", "live", "--for", "amanha"), "--for"),
        (("run", "pulse", "--param", "x"), "--param"),
        (("switch", "on", "offers"), "não existe chave 'offers': você quis dizer"),
    ],
)
def test_a_wrong_word_is_one_sentence_with_the_next_step(
    batuta: Command,
    words: tuple[str, ...],
    said: str,
) -> None:
    code, _, err = batuta(*words)
    assert code == 2
    assert one_sentence(err)
    assert said in err


def test_pause_holds_and_resume_lifts_and_both_are_recorded(batuta: Command) -> None:
    paused = as_json(batuta("pause", "live", "--reason", "manutenção", "--for", "2h", "--json"))
    assert (paused["key"], paused["on"]) == ("pause.category.live", True)
    code, _, err = batuta("run", "pulse")
    assert code == 1
    assert "switch pause.category.live is on" in err
    assert batuta("run", "pulse", "--even-if-held")[0] == 0
    switches = {each["key"]: each for each in as_json(batuta("switch", "list", "--json"))["switches"]}
    assert switches["pause.category.live"]["reason"] == "manutenção"
    assert switches["pause.category.live"]["until"] is not None
    assert switches["offers.enabled"] == {
        "key": "offers.enabled", "on": True, "turned": False, "reason": None, "by": None, "at": None, "until": None
    }  # fmt: skip
    assert "segurada" in batuta("jobs")[1]
    assert batuta("resume", "live")[0] == 0
    assert batuta("run", "pulse")[0] == 0


def test_a_word_of_the_applications_own_turns_its_switch(batuta: Command) -> None:
    assert as_json(batuta("pause", "ofertas", "--json"))["key"] == "offers.enabled"
    assert "switch offers.enabled is off" in batuta("run", "offer")[2]
    assert as_json(batuta("resume", "ofertas", "--json"))["on"] is True
    assert as_json(batuta("switch", "off", "ofertas", "--json"))["on"] is False


def test_the_day_is_a_timeline(batuta: Command) -> None:
    out = batuta("schedule", "--day", "2026-01-05", "--profile", "windows")[1]
    assert "05/01/2026, perfil windows: 1441 disparos" in out
    assert "10:00  offer" in out
    assert "pulse (* * * * *): 1440 vezes" in out
    fires = json.loads(batuta("schedule", "--day", "2026-01-05", "--json")[1])
    assert len(fires) == 1441
    assert {"job": "tidy", "at": "2026-01-05T03:00:00-03:00"} in fires
    assert datetime.fromisoformat(fires[0]["at"]).utcoffset() is not None


def test_the_chosen_profile_and_window_count_from_now_on(batuta: Command) -> None:
    assert batuta("schedule", "use", "windows")[0] == 0
    assert "perfil windows" in batuta("jobs")[1]
    assert batuta("windows", "set", "manha", "11:30", "--minutes", "90", "--days", "1-6")[0] == 0
    (window,) = as_json(batuta("windows", "list", "--json"))["windows"]
    assert window == {"name": "manha", "opens": "11:30", "minutes": 90, "days": "1-6", "on_holidays": True}
    assert "30 11 * * 1-6" in batuta("jobs")[1]


def test_two_profiles_are_compared_and_too_little_gain_is_a_failure(batuta: Command) -> None:
    code, out, _ = batuta("schedule", "compare", "always", "windows")
    assert code == 1  # one a day became five a week
    assert "o catálogo inteiro" in out
    found = as_json(batuta("schedule", "compare", "always", "windows", "--at-least", "-100", "--json"))
    assert found["before"] == 1.0
    assert found["after"] == 0.71
    assert set(found) == {"before", "after", "reduction", "all", "per_job", "per_hour"}
