"""``batuta telegram login``, used interactively and by a script. No codes, passwords or sessions are left behind."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from batuta.kernel import SystemClock
from batuta.processes.address import listen
from batuta.web.api import serve
from simulador.telegram.api import create_app
from simulador.telegram.mundo import LOGIN_CODE, Mundo

ROOT = Path(__file__).parents[2]
PHONE, PASSWORD = "5511987654321", "canary-password-7731"


@dataclass
class Desk:
    """A simulated Telegram, and a folder with a database in which the login command runs."""

    mundo: Mundo
    folder: Path
    environment: dict[str, str]

    async def run(self, *words: str, typed: str = "", lang: str = "pt-BR") -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "batuta", "--app", "app.main:work", "--lang", lang, *words),
            cwd=self.folder,
            env=self.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(120):
            out, _ = await process.communicate(typed.encode())
        assert process.returncode is not None
        return process.returncode, out.decode()

    def traces(self, *secrets: str) -> list[str]:
        """Return every file in the folder and its subfolders that contains a secret."""
        return [
            str(file)
            for file in self.folder.rglob("*")
            if file.is_file() and any(secret.encode() in file.read_bytes() for secret in secrets)
        ]


@asynccontextmanager
async def desk(folder: Path, url: str, **environment: str) -> AsyncIterator[Desk]:
    app, listening, stop = create_app(SystemClock()), listen("127.0.0.1", 0), asyncio.Event()
    serving = asyncio.create_task(serve(app, listening, stop, timedelta(seconds=1)))
    known = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        "DATABASE_URL": url,
        "APP_ENV": "development",
        "TELEGRAM_SIMULADOR_URL": f"http://127.0.0.1:{listening.getsockname()[1]}/telegram",
        "TELEGRAM_SESSION_KEYS": "synthetic key",
        "LOG_LEVEL": "DEBUG",
        **environment,
    }
    try:
        yield Desk(app.state.telegram.mundo, folder, known)
    finally:
        stop.set()
        await serving


async def test_a_person_logs_in_by_code_and_password_without_a_trace(julia_url: str, tmp_path: Path) -> None:
    async with desk(tmp_path, julia_url) as made:
        made.mundo.add_person("Conta Nova", telefone=PHONE, senha=PASSWORD)
        typed = f"+{PHONE}\n00000\n{LOGIN_CODE}\nwrong\n{PASSWORD}\n"
        code, out = await made.run("telegram", "login", "principal", typed=typed)
        assert code == 0, out
        assert "conta principal conectada (número com final 4321)" in out
        assert "o código está errado" in out
        assert "a senha está errada" in out
        (session,) = made.mundo.sessoes
        for secret in (PHONE, PASSWORD, LOGIN_CODE, session):
            assert secret not in out
        assert made.traces(PASSWORD, session) == []
        code, out = await made.run("telegram", "status", "--json")
        assert code == 0, out
        assert "principal" in out
        assert session not in out


async def test_a_session_is_imported_in_english(julia_url: str, tmp_path: Path) -> None:
    async with desk(tmp_path, julia_url) as made:
        session = made.mundo.open_session(made.mundo.add_person("Conta", telefone=PHONE))
        code, out = await made.run("telegram", "login", "one", "--importar", typed=f"{session}\n", lang="en")
        assert (code, "account one is logged in" in out) == (0, True), out
        assert session not in out
        assert made.traces(session) == []


@pytest.mark.parametrize(
    ("words", "typed", "sentence"),
    [
        (("conta",), "+5511900000000\n", "nenhuma conta do Telegram tem este número"),
        (("conta", "--importar"), "not a session\n", "este texto não é uma sessão ativa"),
        (("conta",), "\n", "nada foi digitado"),
        (("1BVtsOHcBu" * 30,), "", "nunca os escreva como argumento deste comando"),
    ],
)
async def test_a_refused_login_names_the_next_step(
    julia_url: str, tmp_path: Path, words: Any, typed: str, sentence: str
) -> None:
    async with desk(tmp_path, julia_url) as made:
        code, out = await made.run("telegram", "login", *words, typed=typed)
        assert code != 0
        assert sentence in out
        assert words[0] not in out or words[0] == "conta"


async def test_a_login_without_a_key_asks_for_one_before_anything_is_typed(julia_url: str, tmp_path: Path) -> None:
    async with desk(tmp_path, julia_url, APP_ENV="", TELEGRAM_SESSION_KEYS="") as made:
        code, out = await made.run("telegram", "login", "conta")
        assert code != 0
        assert "SECRET_KEY" in out
