"""The commands of ``batuta`` for jobs, runs, pauses and schedules, as operators use them."""

import json
import os
import re
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.command import Command, one_sentence
from tests.conftest import lack
from tests.servers import postgres_server

PROGRAM = """
from datetime import time
from batuta import Batuta, Done, Failed, Partial
from batuta.engine.extension import Extension
from batuta.guard.switches import SwitchRule
from batuta.schedule.window import Window

work = Batuta(
    "sqlite:///work.db",
    extension=Extension(
        profiles=["always", "windows"],
        windows={"manha": Window(opens=time(10))},
        switches={"ofertas": SwitchRule(key="offers.enabled", hold_when=False, default=True)},
    ),
)

@work.job("* * * * *", category="live", critical=True)
async def pulse(run):
    return Done(items=len(run.params), result={"params": dict(run.params)})

@work.job("0 3 * * *", category="upkeep", profiles=["always"])
async def tidy():
    raise RuntimeError("broken on purpose")

@work.job("0 10 * * 1-5", category="offers", profiles=["windows"], window="manha",
          holds=(SwitchRule(key="offers.enabled", hold_when=False, default=True),))
async def offer():
    return Partial("half of them", items=2)
"""


@pytest.fixture(autouse=True)
def program(folder: Path) -> None:
    (folder / "program.py").write_text(PROGRAM)


def add_to_program(folder: Path, text: str) -> None:
    with (folder / "program.py").open("a") as program:
        program.write(text)


def as_json(answer: tuple[int, str, str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer[1])
    return found


def test_jobs_lists_every_job_of_the_profile_with_its_state(batuta: Command) -> None:
    code, out, _ = batuta("jobs")
    assert code == 0
    assert "tarefas agendadas: 2, perfil always" in out
    assert "pulse" in out
    assert "aguardando" in out
    listed = as_json(batuta("jobs", "--profile", "windows", "--json"))
    assert listed["profile"] == "windows"
    assert [each["name"] for each in listed["jobs"]] == ["pulse", "offer"]


def test_run_starts_the_job_now_and_logs_the_execution(batuta: Command) -> None:
    ran = as_json(batuta("run", "pulse", "--param", "tipo=manha", "--json"))
    assert (ran["status"], ran["trigger"], ran["items_processed"]) == ("success", "manual", 1)
    assert ran["result"] == {"params": {"tipo": "manha"}}
    (row,) = as_json(batuta("executions", "pulse", "--json"))["executions"]
    assert row["id"] == ran["id"]


def test_failed_run_exits_with_1_and_keeps_the_message_out_of_the_log(batuta: Command) -> None:
    code, out, _ = batuta("run", "tidy")
    assert code == 1
    assert "tidy: erro" in out
    assert "RuntimeError na tarefa" in out
    assert "broken on purpose" not in out


def test_run_of_a_job_without_a_handler_exits_with_1(folder: Path, batuta: Command) -> None:
    add_to_program(
        folder,
        """
from batuta import Skipped
from batuta.reasons import UNFINISHED

@work.job("0 5 * * *", category="upkeep")
async def later():
    return Skipped(UNFINISHED())

@work.job("0 5 * * *", category="upkeep")
async def nothing():
    return Skipped("nothing to do")
""",
    )
    assert [batuta("run", name)[0] for name in ("later", "nothing")] == [1, 0]


def test_partial_run_is_reported_as_partial(batuta: Command) -> None:
    code, out, _ = batuta("run", "offer", "--even-if-held")
    assert code == 0
    assert "parcial: half of them" in out
    assert "parcial" in batuta("jobs", "--profile", "windows")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "puls"), "não existe tarefa agendada 'puls': você quis dizer pulse?"),
        (("run", "nada"), "não existe tarefa agendada 'nada'; as opções são: "),
        (("executions", "puls"), "não existe tarefa agendada 'puls': você quis dizer pulse?"),
        (("pause", "offer_s"), "não existe tarefa agendada, fila ou categoria 'offer_s': você quis dizer"),
        (("jobs", "--profile", "window"), "não existe perfil 'window': você quis dizer windows?"),
        (("schedule", "use", "alway"), "não existe perfil 'alway': você quis dizer always?"),
        (("schedule", "--day", "amanha"), "--day"),
        (("windows", "set", "tarde", "10:00"), "não existe janela 'tarde'; as opções são: manha"),
        (("windows", "set", "manha", "25:00"), "a janela 'manha' é inválida: "),
        (
            ("windows", "set", "manha", "11:00:00"),
            "'11:00:00' não é uma hora: escreva a hora e os minutos, por exemplo 10:00",
        ),
        (("windows", "set", "manha", "10:00", "--minutes", "999999999999999"), "a janela 'manha' é inválida"),
        (("windows", "set", "manha", "10:00", "--minutes", "0"), "a janela 'manha' é inválida"),
        (("windows", "set", "manha", "10:00", "--days", "seg-foo"), "a janela 'manha' é inválida"),
        (("pause", "live", "--for", "amanha"), "--for"),
        (("pause", "live", "--for", "0s"), "--for"),
        (("pause", "live", "--for", "99999999999999d"), "--for"),
        (("pause", "live", "--for", "9" * 5000 + "d"), "--for"),
        (("pause", "live", "--for", "36501d"), "30m, 2h ou 1d (no máximo 36500d)"),
        (("pause", "live", "--reason", os.fsdecode(b"a\xffb")), "'a?b' não é texto em UTF-8"),
        (("run", os.fsdecode(b"pul\xffse")), "'pul?se' não é texto em UTF-8"),
        (("schedule", "--day", "9999-12-31"), "… 31/12/9899"),
        (("schedule", "--day", "0001-01-01"), "… 31/12/9899"),
        (("run", "pulse", "--param", "x"), "--param"),
        (("switch", "on", "offers"), "não existe chave 'offers': você quis dizer"),
    ],
)
def test_unknown_word_is_one_sentence_with_the_next_step(
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
    assert "pausa da categoria live" in err
    assert batuta("run", "pulse", "--even-if-held")[0] == 0
    switches = {each["key"]: each for each in as_json(batuta("switch", "list", "--json"))["switches"]}
    assert switches["pause.category.live"]["reason"] == "manutenção"
    assert switches["pause.category.live"]["until"] is not None
    assert switches["offers.enabled"] == {
        "key": "offers.enabled", "on": True, "is_set": False, "reason": None, "by": None, "at": None, "until": None
    }  # fmt: skip
    assert "suspensa" in batuta("jobs")[1]
    assert batuta("resume", "live")[0] == 0
    assert batuta("run", "pulse")[0] == 0


def test_name_defined_by_the_application_changes_its_switch(batuta: Command) -> None:
    assert as_json(batuta("pause", "ofertas", "--json"))["key"] == "offers.enabled"
    assert "chave offers.enabled desligada" in batuta("run", "offer")[2]
    assert as_json(batuta("resume", "ofertas", "--json"))["on"] is True
    assert as_json(batuta("switch", "off", "ofertas", "--json"))["on"] is False


def test_schedule_shows_the_day_as_a_timeline(batuta: Command) -> None:
    out = batuta("schedule", "--day", "2026-01-05", "--profile", "windows")[1]
    assert "05/01/2026, perfil windows: 1.441 disparos" in out
    assert "10:00  offer" in out
    assert "pulse (* * * * *): 1.440 vezes" in out
    fires = json.loads(batuta("schedule", "--day", "2026-01-05", "--json")[1])
    assert len(fires) == 1441
    assert {"job": "tidy", "at": "2026-01-05T03:00:00-03:00"} in fires
    assert datetime.fromisoformat(fires[0]["at"]).utcoffset() is not None


def test_chosen_profile_and_window_apply_from_now_on(batuta: Command) -> None:
    assert batuta("schedule", "use", "windows")[0] == 0
    assert "perfil windows" in batuta("jobs")[1]
    assert batuta("windows", "set", "manha", "11:30", "--minutes", "90", "--days", "1-6")[0] == 0
    (window,) = as_json(batuta("windows", "list", "--json"))["windows"]
    assert window == {"name": "manha", "opens": "11:30", "minutes": 90, "days": "1-6", "on_holidays": True}
    assert "30 11 * * 1-6" in batuta("jobs")[1]


def test_compare_fails_when_the_gain_is_below_the_minimum(batuta: Command) -> None:
    code, out, _ = batuta("schedule", "compare", "always", "windows")
    assert code == 1  # five fires a week instead of one a day is a difference
    assert "total de todas as tarefas agendadas" in out
    found = as_json(batuta("schedule", "compare", "always", "windows", "--at-least", "-100", "--json"))
    assert found["before"] == 1.0
    assert found["after"] == 0.71
    assert set(found) == {"before", "after", "reduction", "all", "per_job", "per_hour"}


@pytest.mark.parametrize(("day", "year"), [("1913-06-01", 1913), ("0002-01-01", 2), ("9899-12-31", 9899)])
def test_schedule_accepts_a_day_of_any_year(batuta: Command, day: str, year: int) -> None:
    fires = json.loads(batuta("schedule", "--day", day, "--json")[1])
    assert len(fires) == 1441
    assert {datetime.fromisoformat(each["at"]).year for each in fires} == {year}


def test_every_command_works_on_either_database(
    batuta: Command, folder: Path, anyio_backend: str, database_url: str
) -> None:
    (folder / "program.py").write_text(PROGRAM.replace("sqlite:///work.db", database_url))
    assert batuta("executions")[0] == 0
    assert batuta("run", "pulse")[0] == 0
    assert batuta("run", "tidy")[0] == 1
    assert batuta("pause", "live", "--reason", "manutenção", "--for", "36500d")[0] == 0
    assert [each["job"] for each in as_json(batuta("executions", "--json"))["executions"]] == ["tidy", "pulse"]
    assert as_json(batuta("executions", "pulse", "--status", "error", "--json"))["executions"] == []
    for words in (
        ("executions",), ("jobs",), ("switch", "list"), ("schedule",), ("windows", "list"), ("resume", "live"),
        ("windows", "set", "manha", "11:00"), ("schedule", "use", "windows"), ("token", "list"), ("doctor",), ("migrate",),
    ):  # fmt: skip
        code, out, err = batuta(*words)
        assert (code, err) == (0, ""), words
        assert out


@pytest.mark.parametrize(
    "text", ["ver [/painel] antes", "[red]urgente[/red]", "[link=http://x]aqui", "[bold", "às :warning: 10", "\\[x]"]
)
def test_texts_of_operators_and_jobs_are_shown_unchanged(batuta: Command, folder: Path, text: str) -> None:
    assert batuta("run", "pulse")[0] == 0
    with sqlite3.connect(folder / "work.db") as database:
        database.execute("UPDATE job_executions SET status = 'error', error = ?", [text])
    database.close()
    assert text in batuta("executions")[1]
    assert text in batuta("jobs")[1]
    assert batuta("pause", "pulse", "--reason", text)[0] == 0
    assert text in batuta("switch", "list")[1]
    assert text in batuta("jobs")[1]
    assert text in batuta("run", "pulse")[2]
    assert batuta("token", "create", "--scope", "read", "--name", text)[0] == 0
    assert text in batuta("token", "list")[1]
    assert text in batuta("run", text)[2]


def test_resume_reports_what_still_holds_the_job(batuta: Command) -> None:
    assert "volta a ser executada no próximo disparo" in batuta("resume", "pulse")[1]
    batuta("pause", "live", "--reason", "obra na rede")
    code, out, _ = batuta("resume", "pulse")
    assert code == 0
    assert "suspensão removida" not in out
    assert re.search(
        r"continua suspensa por: chave pause\.category\.live ligada por \S+ desde .*, sem prazo: obra na rede",
        out,
    )
    batuta("pause", "tudo")
    assert as_json(batuta("resume", "pulse", "--json"))["still_held_by"] == ["pause.all", "pause.category.live"]
    batuta("resume", "live")
    assert "chave pause.all ligada" in batuta("resume", "pulse")[1]
    assert "volta a ser executada no próximo disparo" in batuta("resume", "tudo")[1]


def test_resume_reports_which_jobs_are_still_held(batuta: Command) -> None:
    batuta("pause", "tidy", "--for", "2h")
    out = batuta("resume", "tudo")[1]
    assert "suspensão removida" in out
    assert "tarefas agendadas ainda suspensas por: chave pause.job.tidy ligada" in out
    batuta("pause", "ofertas")
    assert "chave offers.enabled desligada" in batuta("resume", "offer")[1]


def test_pause_with_an_end_shows_it_in_local_time(batuta: Command) -> None:
    document = as_json(batuta("pause", "live", "--for", "2h", "--json"))
    assert document["before"] is None
    out = batuta("pause", "upkeep", "--for", "30m")[1]
    assert re.search(r"suspensa até \d\d/\d\d/\d{4} \d\d:\d\d \(chave pause\.category\.upkeep\)", out)
    assert "antes disto" not in out
    assert re.search(r"desligada até \d\d/", batuta("switch", "off", "ofertas", "--for", "1d")[1])


def test_second_pause_reports_the_earlier_one(batuta: Command) -> None:
    batuta("pause", "live", "--reason", "até segunda ordem")
    out = batuta("pause", "live", "--for", "2h", "--reason", "almoço")[1]
    assert re.search(
        r"antes desta mudança: chave pause\.category\.live ligada por .*, sem prazo: até segunda ordem", out
    )
    document = as_json(batuta("pause", "live", "--json"))
    assert document["before"]["reason"] == "almoço"
    assert document["before"]["until"] is not None
    batuta("resume", "live")
    assert as_json(batuta("pause", "live", "--json"))["before"] is None


def test_user_without_a_name_is_recorded_by_the_uid(batuta: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 54321)
    assert as_json(batuta("pause", "live", "--json"))["by"] == "uid:54321"
    assert batuta("schedule", "use", "windows")[0] == 0
    assert batuta("windows", "set", "manha", "11:00")[0] == 0
    made = as_json(batuta("token", "create", "--name", "painel", "--scope", "read", "--json"))
    (listed,) = as_json(batuta("token", "list", "--json"))["tokens"]
    assert listed["created_by"] == "uid:54321"
    assert batuta("token", "revoke", made["id"])[0] == 0


INTERRUPTED = """
import asyncio, signal

@work.job("0 0 1 1 *")
async def interrupted():
    signal.raise_signal(signal.SIGINT)
    await asyncio.Event().wait()
"""


def test_interrupted_run_reports_its_outcome(batuta: Command, folder: Path) -> None:
    add_to_program(folder, INTERRUPTED)
    code, out, err = batuta("run", "interrupted", "--param", "limite=1")
    assert (code, out) == (130, "")
    assert one_sentence(err), err
    (row,) = as_json(batuta("executions", "--json"))["executions"]
    assert f"interrupted foi interrompida: a execução {row['id']}" in err
    assert (row["status"], "abandonada" in err) == ("abandoned", True)


ORPHANED = """
import asyncio, os, signal

@work.job("0 0 1 1 *")
async def orphaned():
    import asyncpg

    connection = await asyncpg.connect(URL)
    said = await connection.fetchval("SELECT pg_read_file('postmaster.pid')")
    os.kill(int(said.split()[0]), signal.SIGQUIT)
    await asyncio.sleep(1)  # for the driver to notice, and to complain if it is let
    signal.raise_signal(signal.SIGINT)
    await asyncio.Event().wait()
"""


def test_lost_database_during_a_run_prints_no_traceback(batuta: Command, folder: Path) -> None:
    with postgres_server() as server:
        server = server or lack("PostgreSQL", "set BATUTA_PG_BIN to the folder that holds initdb")
        add_to_program(folder, f"URL = {server.url()!r}\n{ORPHANED}")
        program = folder / "program.py"
        program.write_text(program.read_text().replace("sqlite:///work.db", server.url()))
        code, out, err = batuta("run", "orphaned")
        server.start()
    assert (code, out) == (130, "")
    assert one_sentence(err), err
    assert "`batuta executions orphaned`" in err
