"""The command line ``batuta`` as operators use it."""

import asyncio
import gc
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from batuta.__main__ import main
from batuta.stores.sql.migrations import engine_migrations
from tests import ROOT
from tests.command import Command, one_sentence
from tests.servers import free_port

pytestmark = pytest.mark.usefixtures("folder")


def test_migrate_applies_missing_migrations_once(batuta: Command, folder: Path) -> None:
    code, out, _ = batuta("migrate")
    assert (code, out) == (0, "".join(f"migração {migration.title} aplicada\n" for migration in engine_migrations()))
    assert (folder / "work.db").exists()
    assert batuta("migrate")[1] == f"o esquema de {folder / 'work.db'} já está em dia\n"
    assert (folder / "work.db").stat().st_mode & 0o777 == 0o600


def test_garbage_is_collected_from_the_moment_the_application_is_loaded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (folder / "program.py").read_text()
    (folder / "program.py").write_text(f"import gc\nwas_collected = gc.isenabled()\n{source}")
    monkeypatch.setattr(sys, "argv", ["batuta", "migrate"])
    assert main() == 0
    assert (sys.modules["program"].was_collected, gc.isenabled()) == (False, True)


def test_every_answer_is_available_as_json(batuta: Command, folder: Path) -> None:
    migrated = json.loads(batuta("migrate", "--json")[1])
    assert migrated == {
        "database": str(folder / "work.db"),
        "applied": [migration.title for migration in engine_migrations()],
    }
    made = json.loads(batuta("token", "create", "--name", "painel", "--scope", "read", "--json")[1])
    assert re.fullmatch(r"bat_[0-9a-f]{12}_[0-9a-f]{48}", made["token"])
    listed = json.loads(batuta("token", "list", "--json")[1])["tokens"]
    assert [(each["name"], each["scopes"]) for each in listed] == [("painel", ["read"])]
    assert json.loads(batuta("doctor", "--json")[1])["healthy"] is True


def test_token_is_shown_once_alone_on_its_line_and_can_be_revoked(batuta: Command) -> None:
    code, out, err = batuta("token", "create", "--name", "painel", "--scope", "read", "--scope", "operate")
    assert code == 0
    assert re.fullmatch(r"bat_[0-9a-f]{12}_[0-9a-f]{48}\n", out)
    assert "não será mostrado de novo" in err
    id = out.split("_")[1]
    table = batuta("token", "list")[1]
    assert (id in table, "ler operar" in table) == (True, True)
    assert "operate read" in batuta("--lang", "en", "token", "list")[1]
    assert out.strip() not in table
    assert batuta("token", "revoke", id)[0] == 0
    assert batuta("token", "revoke", id)[0] == 1


def test_empty_list_says_so(batuta: Command) -> None:
    assert batuta("migrate")[0] == 0
    assert batuta("token", "list") == (0, "nenhum token: crie um com `batuta token create`\n", "")
    assert batuta("schedules", "list") == (0, "nenhuma programação: crie uma com `batuta schedules create`\n", "")
    assert batuta("batches", "list") == (0, "nenhum lote\n", "")


def test_role_gives_a_token_its_scopes(batuta: Command) -> None:
    roles = {"leitura": ["read"], "operador": ["operate", "read"], "admin": ["operate", "read", "send", "tokens"]}
    for role, scopes in roles.items():
        made = json.loads(batuta("token", "create", "--name", "ana", "--role", role, "--json")[1])
        assert made["scopes"] == scopes
    made = json.loads(batuta("token", "create", "--name", "ana", "--role", "leitura", "--scope", "pii", "--json")[1])
    assert made["scopes"] == ["pii", "read"]


@pytest.mark.parametrize(
    "words",
    [
        ["migrat"],
        ["token", "create", "--scope", "everything", "--name", "x"],
        ["token", "create", "--name", "x"],
        ["migrate", "--jsn"],
        ["--lang", "fr", "migrate"],
        ["--app", "program", "migrate"],
        ["--app", "nowhere:work", "migrate"],
        ["--app", "program:nothing", "migrate"],
        ["--app", "program:not_work", "migrate"],
    ],
)
def test_unknown_word_is_one_sentence_with_the_next_step(batuta: Command, words: list[str]) -> None:
    code, out, err = batuta(*words)
    assert code == 2
    assert one_sentence(err), err
    assert out == ""


def test_mistake_in_a_program_is_reported_as_it_happened(folder: Path, batuta: Command) -> None:
    """The command may load a faulty program a second time. It must report the program's mistake, instead of complaining
    that the program's tasks already exist.
    """
    (folder / "shared.py").write_text("from batuta import Batuta\n\nwork = Batuta('sqlite:///work.db')\n")
    (folder / "wrong.py").write_text(
        "from shared import work\n\n@work.task()\nasync def send() -> None: ...\n\n"
        "@work.job(every=5, name='slow-job')\nasync def slow() -> None: ...\n"
    )
    code, _, err = batuta("--app", "wrong:work", "jobs")
    assert code == 2
    assert "slow-job" in err


def test_misspelt_command_suggests_the_nearest(batuta: Command) -> None:
    assert batuta("migrat")[2] == "batuta: não existe o comando 'migrat': tente `batuta migrate`\n"
    assert batuta("--lang", "en", "xyz")[2] == "batuta: there is no command 'xyz': try `batuta --help`\n"


def test_command_of_an_application_that_is_not_found_says_where_to_go(
    folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = folder / "vazia"
    elsewhere.mkdir()
    (folder / "pyproject.toml").unlink()
    monkeypatch.chdir(elsewhere)
    code, _, err = batuta("--lang", "en", "grupos", "status")
    assert (code, one_sentence(err)) == (2, True)
    assert f"there is no command 'grupos', and {elsewhere} has no application" in err
    assert "go to its folder" in err
    assert "[tool.batuta] app" in err
    assert "'program:not_work'" in batuta("--lang", "en", "--app", "program:not_work", "grupos")[2]
    monkeypatch.setenv("APP_ENV", "marte")
    sys.modules.pop("program", None)  # another process would read the settings again
    code, _, err = batuta("--lang", "en", "--app", "program:work", "grupos", "status")
    assert (code, one_sentence(err), "which could not be loaded: " in err, "APP_ENV" in err) == (2, True, True, True)
    assert "try `batuta token`" in batuta("--lang", "en", "tokn")[2]


@pytest.mark.parametrize(
    ("words", "portuguese", "english"),
    [
        (
            ("token", "creat"),
            "não existe o comando 'creat': tente `batuta token create`",
            "there is no command 'creat': try `batuta token create`",
        ),
        (
            ("tokn",),
            "não existe o comando 'tokn': tente `batuta token`",
            "there is no command 'tokn': try `batuta token`",
        ),
        (
            ("queue", "show", "default", "--limit", "x"),
            "--limit não aceita 'x': escreva um número inteiro. Veja `batuta queue show --help`",
            "invalid value for --limit: 'x' (Input should be a valid integer, unable to parse string as an integer)."
            " See `batuta queue show --help`",
        ),
        (
            ("pause",),
            "falta o argumento NOME. Veja `batuta pause --help`",
            "the argument NAME is missing. See `batuta pause --help`",
        ),
        (
            ("token", "create", "--scope", "read"),
            "falta a opção --name. Veja `batuta token create --help`",
            "the option --name is missing. See `batuta token create --help`",
        ),
        (
            ("migrate", "--jsn"),
            "não existe a opção --jsn (você quis dizer --json?). Veja `batuta migrate --help`",
            "there is no option --jsn (did you mean --json?). See `batuta migrate --help`",
        ),
        (
            ("up", "--port", "8001"),
            "não existe a opção --port: defina PORT=… no ambiente. Veja `batuta up --help`",
            "there is no option --port: set PORT=… in the environment. See `batuta up --help`",
        ),
        (
            ("migrate", "now"),
            "há argumentos a mais: now. Veja `batuta migrate --help`",
            "there are too many arguments: now. See `batuta migrate --help`",
        ),
        (
            ("token", "create", "--name"),
            "a opção --name precisa de um valor. Veja `batuta token create --help`",
            "the option --name needs a value. See `batuta token create --help`",
        ),
        (
            ("pause", "all", "--for", "2x"),
            "valor inválido para --for: o formato esperado é 30m, 2h ou 1d (no máximo 36500d). Veja `batuta pause --help`",
            "invalid value for --for: the expected form is 30m, 2h or 1d (at most 36500d). See `batuta pause --help`",
        ),
        (
            ("token", "create", "--name", " ", "--scope", "read"),
            "o nome ' ' é inválido para token: informe a pessoa ou o programa que vai usar o token",
            "' ' cannot be the name of a token: name the person or program that will use the token",
        ),
        (
            ("token", "create", "--name", "ana"),
            "o token 'ana' não foi criado: um token sem escopo não dá acesso a nada; informe --scope ou --role",
            "the token 'ana' was not created: without a scope it gives no access; give --scope or --role",
        ),
        (
            ("token", "create", "--name", "ana", "--scope", "read", "--network", "casa"),
            "o token 'ana' não foi criado: 'casa' não é um endereço nem uma rede: use um valor como 10.0.0.0/8",
            "the token 'ana' was not created: 'casa' is not an address or network such as 10.0.0.0/8",
        ),
    ],
)
def test_usage_error_is_in_the_chosen_language_with_the_help_of_its_command(
    batuta: Command, words: tuple[str, ...], portuguese: str, english: str
) -> None:
    assert batuta("migrate")[0] == 0
    assert batuta(*words) == (2, "", f"batuta: {portuguese}\n")
    assert batuta("--lang", "en", *words) == (2, "", f"batuta: {english}\n")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("PORT", "eighty", "PORT não pode ter esse valor: escreva um número inteiro. Corrija o valor"),
        ("PORT", "99999", "PORT não pode ter esse valor: o máximo é 65535. Corrija"),
        (
            "LOG_FORMAT",
            "xml",
            "LOG_FORMAT não pode ter esse valor: escreva um destes valores: 'auto', 'pretty', 'json'. Corrija",
        ),
        ("TIMEZONE", "Marte", "'Marte' não é um fuso horário válido; use um nome como America/Sao_Paulo"),
        (
            "BATUTA_NADA_DISSO",
            "1",
            "BATUTA_NADA_DISSO não é uma configuração conhecida: renomeie ou remova BATUTA_NADA_DISSO",
        ),
        ("BATUTA_LNG", "en", "você quis dizer BATUTA_LANG"),
        ("APP_ENV", "production", "API_TOKEN não está definida"),
    ],
)
def test_invalid_setting_is_one_sentence_that_names_it(
    batuta: Command,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    said: str,
) -> None:
    monkeypatch.setenv(name, value)
    code, _, err = batuta("api")
    assert code == 2
    assert one_sentence(err)
    assert said in err


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://x/y", "'mysql' não é um banco de dados suportado; as formas aceitas são sqlite:///file.db"),
        ("postgresql://user:segredo@127.0.0.1:1/x", "confira se ele está no ar"),
        ("sqlite:////proc/work.db", "permissão de escrita"),
        (
            "sqlite:////nao/existe/x.db",
            "a pasta /nao/existe do banco de dados não existe: crie-a (`mkdir -p /nao/existe`)",
        ),
    ],
)
def test_unusable_database_is_one_sentence(
    batuta: Command, monkeypatch: pytest.MonkeyPatch, url: str, said: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    code, _, err = batuta("--app", "app.main:work", "migrate")
    assert code in (1, 2)
    assert one_sentence(err), err
    assert said in err
    assert "segredo" not in err


def test_taken_port_is_one_sentence_and_starts_nothing(batuta: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        monkeypatch.setenv("PORT", str(other.getsockname()[1]))
        for role in ("up", "api"):
            code, _, err = batuta(role)
            assert code == 2
            assert one_sentence(err)
            assert "PORT" in err


def test_one_process_refuses_a_second_worker(batuta: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", str(free_port()))
    code, _, err = batuta("up", "--one-process", "--workers", "2")
    assert code == 2
    assert one_sentence(err)
    assert "retire --workers" in err


def test_up_does_not_start_when_the_port_of_the_simulator_is_taken(
    batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORT", str(free_port()))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        monkeypatch.setenv("TELEGRAM_SIMULADOR_PORT", str(free_port()))
        monkeypatch.setenv("SIMULADOR_PORT", str(other.getsockname()[1]))
        code, _, err = batuta("--app", "app.main:work", "up")
    assert code == 2
    assert one_sentence(err)
    assert "SIMULADOR_PORT" in err


def test_doctor_warns_if_up_would_refuse_to_start_without_secrets(
    batuta: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("APP_ENV")
    out = batuta("doctor")[1]
    assert "! a API não inicia com esta configuração" in out
    assert "API_TOKEN não está definida" in out
    assert "(APP_ENV não está definida)" in out


def test_doctor_lists_its_checks_and_the_next_step_of_each_failure(
    batuta: Command, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    code, out, _ = batuta("doctor")
    assert code == 1
    assert "work.db ainda não existe" in out
    assert not (folder / "work.db").exists()  # doctor creates no file
    (folder / "work.db").touch()
    code, out, _ = batuta("doctor")
    assert code == 1
    assert "✗ o banco de dados não pode ser usado com o esquema atual" in out
    assert "execute `batuta migrate`" in out
    batuta("migrate")
    monkeypatch.setenv("DATABSE_URL", "x")
    code, out, _ = batuta("doctor")
    assert code == 0
    assert "✓ o esquema está em dia" in out
    assert "✓ Hora atual" in out
    assert "a API não inicia" not in out  # in development, the API needs no secret
    assert "✓ detecção de quedas" in out
    assert "você quis dizer DATABASE_URL?" in out


def test_output_without_a_terminal_has_no_colour(batuta: Command) -> None:
    assert "\x1b[" not in "".join(map(str, batuta("doctor"))) + "".join(map(str, batuta("--help")))


def test_help_lists_the_roles_of_the_application(batuta: Command) -> None:
    out = batuta("--app", "app.main:work", "--help")[1]
    assert all(word in out for word in ("migrate", "doctor", "token", "up", "api", "worker", "simulador"))


def test_module_and_uvicorn_command_start_from_a_plain_shell(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    said = subprocess.run(
        [sys.executable, "-m", "batuta", "--version"], env=environment, capture_output=True, text=True, check=True
    )
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", said.stdout)
    for mode in ("production", ""):  # an unset mode is as strict as production
        refused = subprocess.run(
            [sys.executable, "-m", "uvicorn", "app.main:app"],
            env={**environment, "APP_ENV": mode},
            capture_output=True,
            text=True,
            check=False,
        )
        assert refused.returncode != 0
        assert "Traceback" not in refused.stderr
        assert "API_TOKEN is not set" in refused.stderr


def test_misspelt_absolute_path_is_an_error_and_not_a_new_database(
    batuta: Command, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{folder}/nowhere/julia.db")
    code, _, err = batuta("--app", "app.main:work", "migrate")
    assert code == 2
    assert one_sentence(err)
    assert not (folder / "nowhere").exists()


def test_misspelt_name_and_broken_line_in_the_env_file_are_reported(batuta: Command, folder: Path) -> None:
    (folder / ".env").write_text("DATABSE_URL=x\n")
    assert "você quis dizer DATABASE_URL?" in batuta("doctor")[1]
    (folder / ".env").write_text("PORT=1\nnot a line = at all'\n")
    sys.modules.pop("program", None)  # the next command is another process and reads the file again
    code, out, _ = batuta("doctor")
    assert code == 1
    assert "a linha 2 não está no formato NOME=valor" in out


def test_command_without_arguments_shows_the_help(batuta: Command) -> None:
    for words in ([], ["token"], ["-h"], ["token", "create", "-h"]):
        code, out, err = batuta(*words)
        assert code in (0, 2)
        assert "batuta" in out
        assert err == ""


def test_option_help_is_in_the_chosen_language(batuta: Command) -> None:
    assert "em JSON, para programas" in batuta("--lang", "pt-BR", "queue", "list", "--help")[1]
    assert "as JSON, for programs" in batuta("--lang", "en", "queue", "list", "--help")[1]


def test_read_only_server_is_not_a_configuration_error(batuta: Command, folder: Path, postgres_url: str) -> None:
    """For `batuta up` and systemd, exit code 2 means a permanent error, so a database failover must not cause it."""
    (folder / "program.py").write_text(f'from batuta import Batuta\nwork = Batuta("{postgres_url}")\n')
    assert batuta("migrate")[0] == 0
    assert asyncio.run(_execute(postgres_url, "ALTER DATABASE {} SET default_transaction_read_only = on")) is None
    code, _, err = batuta("--lang", "en", "token", "create", "--name", "panel", "--scope", "read")
    assert (code, one_sentence(err)) == (1, True)
    assert "is read-only now" in err


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement.format(url.rpartition("/")[2]))
    finally:
        await connection.close()


def test_option_that_belongs_before_the_command_is_reported_as_such(batuta: Command) -> None:
    code, _, err = batuta("jobs", "--lang", "en")
    assert code == 2
    assert "write the option --lang before the command" in err
    assert "Número de workers" in batuta("up", "--help")[1]
