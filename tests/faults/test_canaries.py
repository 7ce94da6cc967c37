"""The personal data and secrets of a thousand people (fault test T48) pass through every code path of real processes,
and no output shows them.

Each person has a CPF, a phone number, a name, a token and a DSN with a password. Each code path receives the data of
some of the people.
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlencode

import httpx2
import pytest

from tests.faults.figures import LONG
from tests.faults.processes import ROOT, until
from tests.servers import free_port

COUNT = 1000
FIRST = 8
TOKEN = "api-token-" + "k" * 24
GOOD = {"Authorization": f"Bearer {TOKEN}"}


@dataclass(frozen=True)
class Canary:
    cpf: str
    telefone: str
    nome: str
    token: str
    senha: str

    @property
    def dsn(self) -> str:
        return f"postgresql://julia:{self.senha}@db.example:5432/julia"

    @property
    def params(self) -> dict[str, str]:
        return {"cpf": self.cpf, "telefone": self.telefone, "nome": self.nome, "token": self.token, "dsn": self.dsn}

    @property
    def text(self) -> str:
        return f"CPF {self.cpf} fone {self.telefone} {self.token} {self.dsn}"

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the strings that no output may contain. Of the DSN, only the password is a secret."""
        plain = self.cpf.translate({ord("."): None, ord("-"): None}), self.telefone.lstrip("+")
        return (self.cpf, self.telefone, self.nome, self.token, self.senha, *plain)


def count_shown(given: Sequence[Canary], output: str) -> int:
    """Count the people whose data appear in the output. Strings are first compared by prefix, which is faster for a
    thousand people and a long output.
    """
    beginnings = {output[at : at + FIRST] for at in range(len(output))}
    return sum(any(part[:FIRST] in beginnings and part in output for part in each.parts) for each in given)


def canaries() -> list[Canary]:
    chance = random.Random(48)
    return [
        Canary(
            cpf=_cpf(100_000_000 + 7919 * n),
            telefone=f"+55119{80000000 + 104729 * n % 19999999:08d}",
            nome=f"Fulana {chance.randbytes(6).hex()}",
            token=f"bat_{chance.randbytes(6).hex()}_{chance.randbytes(24).hex()}",
            senha=f"pw{chance.randbytes(9).hex()}",
        )
        for n in range(COUNT)
    ]


def _cpf(nine: int) -> str:
    digits = [int(each) for each in f"{nine:09d}"]
    for _ in range(2):
        weighed = sum(digit * weight for digit, weight in zip(digits, range(len(digits) + 1, 1, -1), strict=True))
        digits.append(weighed * 10 % 11 % 10)
    written = "".join(map(str, digits))
    return f"{written[:3]}.{written[3:6]}.{written[6:9]}-{written[9:]}"


Road: TypeAlias = Callable[[httpx2.Client, Canary], httpx2.Response]


def called(endpoint: str) -> Road:
    return lambda client, canary: client.post(f"/jobs/{endpoint}", params=canary.params, headers=GOOD)


def with_headers(make: Callable[[Canary], Mapping[str, str]], path: str = "/jobs") -> Road:
    return lambda client, canary: client.get(path, headers=dict(make(canary)))


ROADS: dict[str, Road] = {
    "a handler that logs": called("logs"),
    "a handler that raises": called("raises"),
    "a handler that answers with it": called("answers"),
    "a thread and a future that fail": called("throws"),
    "a task that fails": called("enqueues"),
    "an unknown address": lambda client, canary: client.get(f"/{canary.text}", params=canary.params),
    "an unknown job": lambda client, canary: client.post(f"/jobs/{canary.cpf}-{canary.telefone}", headers=GOOD),
    "an unknown page": lambda client, canary: client.get(
        f"/painel/tarefas/{canary.telefone}", headers={**GOOD, "Accept": "text/html"}
    ),
    "an unknown execution": lambda client, canary: client.get(f"/painel/execucoes/{canary.token}", headers=GOOD),
    "a parameter that is wrong": lambda client, canary: client.get("/health/ready", params={"strict": canary.text}),
    "a header that is wrong": with_headers(lambda canary: {"X-Batuta-Deadline": canary.text, **GOOD}),
    "headers": with_headers(
        lambda canary: {
            "X-Request-Id": canary.cpf,
            "User-Agent": canary.text,
            "Referer": f"http://x/?{urlencode(canary.params)}",
            "traceparent": f"00-{canary.telefone.lstrip('+'):0>32}-{canary.telefone[-8:]:0>16}-01",
            **GOOD,
        }
    ),
    "a wrong token": with_headers(lambda canary: {"Authorization": f"Bearer {canary.token}"}),
    "another scheme": with_headers(lambda canary: {"Authorization": f"Basic {canary.senha}"}),
    "a wrong token at the door": lambda client, canary: client.post(
        "/painel/entrar", content=urlencode({"token": canary.token, "para": canary.dsn, **canary.params}),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    ),
    "a cookie": with_headers(lambda canary: {"Cookie": f"batuta_session={canary.token}; nome={canary.senha}"}),
    "a key": lambda client, canary: client.post(
        "/jobs/logs", params=canary.params, headers={**GOOD, "Idempotency-Key": canary.cpf}
    ),
    "a key used again": lambda client, canary: client.post(
        "/jobs/logs", params=canary.params, headers={**GOOD, "Idempotency-Key": "the-same"}
    ),
    "an unknown method": lambda client, canary: client.request(
        "PURGE", "/jobs", params=canary.params, content=json.dumps(canary.params), headers=GOOD
    ),
}  # fmt: skip


class Process:
    def __init__(self, folder: Path, name: str, *words: str, **env: str) -> None:
        self.log = folder / f"{name}.log"
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("BATUTA_")},
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "LOG_FORMAT": "json",
            "LOG_LEVEL": "DEBUG",
            "APP_ENV": "production",
            "SECRET_KEY": "k" * 32,
            "DATABASE_URL": f"sqlite:///{folder}/canary.db",
            "API_TOKEN": TOKEN,
            **env,
        }
        with self.log.open("wb") as log:
            self.running = subprocess.Popen(
                [sys.executable, *words], cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
            )

    def end(self, number: int = signal.SIGTERM) -> str:
        self.running.send_signal(number)
        self.running.wait(120)
        return self.log.read_text()


@contextmanager
def started(*processes: Process) -> Iterator[None]:
    try:
        yield
    finally:
        for process in processes:
            if process.running.poll() is None:
                process.running.kill()
                process.running.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    migrating = Process(tmp_path, "migrate", "-m", "batuta", "--app", "tests.faults.canary_plant:work", "migrate")
    assert migrating.running.wait(120) == 0
    return tmp_path


def read_answer(answer: httpx2.Response) -> str:
    return f"{answer.status_code} {answer.headers} {answer.text}"


def read_stored_outcomes(folder: Path) -> str:
    """Return the stored results that operators can read: errors, responses and endpoints. Task arguments are excluded,
    because they are data and may contain personal data.
    """
    with sqlite3.connect(f"file:{folder}/canary.db?mode=ro", uri=True) as connection:
        rows = connection.execute("SELECT error FROM tasks").fetchall()
        rows += connection.execute("SELECT response, endpoint FROM job_calls").fetchall()
    return str(rows)


def failed(folder: Path) -> int:
    with sqlite3.connect(f"file:{folder}/canary.db?mode=ro", uri=True) as connection:
        (tasks,) = connection.execute("SELECT count(*) FROM tasks WHERE status = 'failed'").fetchone()
    return int(tasks)


@pytest.mark.parametrize(("how", "count"), [("uvicorn", COUNT), ("batuta", COUNT if LONG else 5 * len(ROADS))])
def test_processes_show_no_personal_data_or_secret_of_a_thousand_people(folder: Path, how: str, count: int) -> None:
    port = free_port()
    plant = "tests.faults.canary_plant"
    by_hand = ("-m", "uvicorn", f"{plant}:app", "--port", str(port), "--log-level", "debug")
    words = by_hand if how == "uvicorn" else ("-m", "batuta", "--app", f"{plant}:work", "api")
    api = Process(folder, "api", *words, PORT=str(port))
    worker = Process(folder, "worker", "-m", "batuta", "--app", f"{plant}:work", "worker")
    given, said = canaries()[:count], dict[str, list[str]]()
    with started(api, worker), httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        until("it answers", lambda: _answers(client))
        for n, canary in enumerate(given):
            road = list(ROADS)[n % len(ROADS)]
            said.setdefault(road, []).append(read_answer(ROADS[road](client, canary)))
        until("the tasks are over", lambda: failed(folder) >= count // len(ROADS))
        figures = client.get("/metrics", headers=GOOD).text
        # A process that dies of SIGABRT leaves no core dump, and its stack trace shows no values.
        outputs = {
            "worker": worker.end(signal.SIGABRT),
            "api": api.end(),
            "metrics": figures,
            "database": read_stored_outcomes(folder),
        }
    outputs |= {road: "\n".join(answers) for road, answers in said.items()}
    assert len(said) == len(ROADS)
    assert outputs["api"].count('"event":"request answered"') >= count, "nothing was logged, so nothing was tested"
    assert outputs["worker"].count("task failed") >= count // len(ROADS)
    assert outputs["api"].count("job crashed") >= count // len(ROADS)
    assert {name: count_shown(given, text) for name, text in outputs.items()} == dict.fromkeys(outputs, 0)


def test_process_that_dies_of_an_exception_does_not_quote_it(folder: Path) -> None:
    given = canaries()
    (folder / "data.json").write_text(json.dumps([each.params for each in given]))
    crash = Process(folder, "crash", "-m", "tests.faults.canary_plant", str(folder / "data.json"))
    assert crash.running.wait(120) == 1
    said = crash.log.read_text()
    assert "uncaught exception" in said
    assert count_shown(given, said) == 0


def test_shown_counts_every_person_whose_data_is_in_the_output() -> None:
    given = canaries()
    for part in given[7].parts:
        assert count_shown(given, f"before{part}behind") == 1
    assert count_shown(given, f"{given[7].dsn} {given[999].text}") == 2
    assert count_shown(given, f"{given[7].nome[:-1]} postgresql://julia:[token]@db.example") == 0


@pytest.mark.parametrize(
    "form", ["postgresql://julia:{}@127.0.0.1:1/julia", "postgres//julia:{}@db.example/julia"], ids=["away", "misspelt"]
)
def test_process_that_cannot_start_does_not_show_the_password(tmp_path: Path, form: str) -> None:
    password = canaries()[0].senha
    process = Process(
        tmp_path, "start", "-m", "batuta", "--app", "app.main:work", "worker", DATABASE_URL=form.format(password)
    )
    with started(process):
        assert process.running.wait(240) != 0
    said = process.log.read_text()
    assert said.strip()
    assert password not in said


def _answers(client: httpx2.Client) -> bool:
    try:
        return client.get("/health").status_code == 200
    except httpx2.HTTPError:
        return False
