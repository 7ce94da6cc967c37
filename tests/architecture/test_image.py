"""The container image and the services that use it, checked without building the image."""

import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.servers import free_port

ROOT = Path(__file__).resolve().parents[2]
ENTRYPOINT = ROOT / "scripts" / "entrypoint.sh"
IMAGE = "batuta"
RUN_MODES = ("api", "scheduler", "worker", "telegram", "all")
ARQ = {"arq", "redis"}
SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|KEY|HASH|CREDENTIALS")
REQUIRED_VARIABLE = re.compile(r"\$\{\w+:\?.+\}")


# The entry point


def enter(
    path: Path, run_mode: str | None, *arguments: str, language: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the image's entry point with the environment variable PATH set to ``path``."""
    given = {"PATH": str(path), "RUN_MODE": run_mode, "BATUTA_LANG": language}
    env = {name: value for name, value in given.items() if value is not None}
    return subprocess.run([ENTRYPOINT, *arguments], env=env, capture_output=True, text=True, check=False, timeout=30)


def put_command(folder: Path, name: str) -> None:
    """Create an executable that prints its arguments, one per line."""
    command = folder / name
    command.write_text(f"""#!/bin/sh\nprintf '%s\\n' {name} "$@"\n""")
    command.chmod(0o755)


def test_entry_point_is_a_shell_script_that_parses() -> None:
    assert ENTRYPOINT.read_text().startswith("#!/bin/sh\n")
    assert "set -eu" in ENTRYPOINT.read_text().splitlines()
    assert ENTRYPOINT.stat().st_mode & stat.S_IXUSR
    assert subprocess.run(["sh", "-n", ENTRYPOINT], check=False).returncode == 0


@pytest.mark.parametrize("run_mode", [None, "", "migrate", "API", "api worker", "up"])
def test_missing_or_unknown_run_mode_is_refused_with_the_list(tmp_path: Path, run_mode: str | None) -> None:
    put_command(tmp_path, "batuta")
    for language, words in ((None, "defina RUN_MODE como um de"), ("en", "set RUN_MODE to one of")):
        done = enter(tmp_path, run_mode, language=language)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.endswith(f"{words} {', '.join(RUN_MODES)}.\n")


@pytest.mark.parametrize("run_mode", RUN_MODES)
def test_run_mode_becomes_the_role_of_that_name(tmp_path: Path, run_mode: str) -> None:
    put_command(tmp_path, "batuta")
    done = enter(tmp_path, run_mode)
    role = "up" if run_mode == "all" else run_mode
    assert (done.returncode, done.stdout, done.stderr) == (0, f"batuta\n{role}\n", "")


def test_arguments_after_the_image_reach_the_role(tmp_path: Path) -> None:
    put_command(tmp_path, "batuta")
    assert enter(tmp_path, "worker", "--queue", "fila um").stdout == "batuta\nworker\n--queue\nfila um\n"


def test_python_runs_the_module_without_a_batuta_command(tmp_path: Path) -> None:
    put_command(tmp_path, "python")
    assert enter(tmp_path, "api").stdout == "python\n-m\nbatuta\napi\n"


def test_role_replaces_the_shell_process(tmp_path: Path) -> None:
    (tmp_path / "batuta").write_text("#!/bin/sh\necho $$\n")
    (tmp_path / "batuta").chmod(0o755)
    env = {"PATH": str(tmp_path), "RUN_MODE": "api"}
    with subprocess.Popen([ENTRYPOINT], env=env, stdout=subprocess.PIPE, text=True) as started:
        said, _ = started.communicate(timeout=30)
    assert int(said) == started.pid


# The image


def instructions() -> list[tuple[str, str]]:
    """Return every Dockerfile instruction with its arguments. Lines continued with a backslash are joined."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [(word, arguments) for word, _, arguments in (line.partition(" ") for line in lines if line)]


def arguments_of(word: str) -> list[str]:
    return [arguments for instruction, arguments in instructions() if instruction == word]


def copied() -> list[str]:
    """Return the repository paths that are copied into the image."""
    return [path for copy in arguments_of("COPY") if "--from=" not in copy for path in copy.split()[:-1]]


def test_image_runs_as_a_user_that_is_not_root() -> None:
    last_stage = max(position for position, (word, _) in enumerate(instructions()) if word == "FROM")
    users = [arguments for word, arguments in instructions()[last_stage:] if word == "USER"]
    assert users
    assert users[-1].split(":")[0] not in ("root", "0")


def test_image_copies_only_existing_paths() -> None:
    assert copied()
    assert [path for path in copied() if not (ROOT / path).exists()] == []


def test_build_context_has_only_the_copied_paths() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    assert {line.removeprefix("!") for line in lines if line.startswith("!")} == set(copied())


def test_image_installs_the_pinned_packages_by_their_hashes() -> None:
    installs = [run for run in arguments_of("RUN") if "pip install" in run]
    assert len(installs) == 1
    assert "--require-hashes -r requirements.lock" in installs[0]


def test_image_fetches_only_its_base() -> None:
    assert {base.split()[0] for base in arguments_of("FROM")} == {"${PYTHON_IMAGE}"}
    (default,) = arguments_of("ARG")
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.11\.\d+-slim-bookworm", default)
    addresses = re.findall(r"\w+://[^/'\"\s]+", (ROOT / "Dockerfile").read_text())
    assert addresses == ["http://127.0.0.1:$PORT"]
    assert "index-url" not in (ROOT / "Dockerfile").read_text()


def test_image_contains_no_secret() -> None:
    settings = arguments_of("ENV") + arguments_of("ARG")
    assert [setting for setting in settings if SECRET.search(setting)] == []


def test_image_starts_at_the_entry_point() -> None:
    assert arguments_of("ENTRYPOINT") == ['["scripts/entrypoint.sh"]']
    assert "scripts/entrypoint.sh" in copied()


def test_python_path_contains_the_copied_code() -> None:
    [workdir] = arguments_of("WORKDIR")
    assert f"PYTHONPATH={workdir}/src:{workdir} " in arguments_of("ENV")[0]


def check_health(run_mode: str, port: int) -> int:
    """Run the image's health check on this machine. The environment names a proxy, which the health check must
    ignore.
    """
    [healthcheck] = arguments_of("HEALTHCHECK")
    _, _, command = healthcheck.partition("CMD ")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": path, "RUN_MODE": run_mode, "PORT": str(port), "http_proxy": "http://127.0.0.1:9"}
    return subprocess.run(["sh", "-c", command], env=env, capture_output=True, check=False, timeout=30).returncode


@contextmanager
def answering(status: int) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing, because the test reads only the exit code."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            serving.join()


@pytest.mark.parametrize("run_mode", ["api", "all"])
def test_role_that_serves_is_healthy_when_it_answers(run_mode: str) -> None:
    with answering(200) as port:
        assert check_health(run_mode, port) == 0
    with answering(503) as port:
        assert check_health(run_mode, port) != 0
    assert check_health(run_mode, free_port()) != 0


@pytest.mark.parametrize("run_mode", ["scheduler", "worker", "telegram", ""])
def test_role_without_a_server_is_healthy(run_mode: str) -> None:
    assert check_health(run_mode, free_port()) == 0


# The services


def compose() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return parsed


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose()["services"]
    return found


def ours() -> dict[str, dict[str, Any]]:
    return {name: service for name, service in services().items() if "build" in service}


def roles() -> dict[str, dict[str, Any]]:
    return {name: service for name, service in ours().items() if name not in ("migrate", "arq")}


def test_each_role_and_each_dependency_has_a_service() -> None:
    assert set(roles()) == {"api", "scheduler", "worker", "telegram"}
    assert set(services()) - set(roles()) == {"migrate", "postgres", "redis", "arq"}
    assert services()["worker"]["deploy"]["replicas"] == 3


def test_own_services_use_one_image_that_is_built_here() -> None:
    assert {service["image"] for service in ours().values()} == {IMAGE}
    assert {(service["build"]["context"], service["pull_policy"]) for service in ours().values()} == {(".", "build")}


def test_every_role_runs_in_the_mode_of_its_name() -> None:
    assert all(service["environment"]["RUN_MODE"] == name for name, service in roles().items())
    assert set(roles()) <= set(RUN_MODES)
    assert not any("entrypoint" in service or "command" in service for service in roles().values())


def test_every_role_waits_for_the_migrations_which_run_once() -> None:
    migrate = services()["migrate"]
    assert (migrate["entrypoint"], migrate["restart"]) == (["batuta", "migrate"], "no")
    assert migrate["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for service in (*roles().values(), services()["arq"]):
        assert service["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


def test_service_waits_only_for_services_that_start_with_it() -> None:
    for service in services().values():
        for name in service.get("depends_on", {}):
            assert name in services()
            assert set(services()[name].get("profiles", [])) <= set(service.get("profiles", []))


def test_only_services_of_arq_need_a_profile() -> None:
    assert {name for name, service in services().items() if service.get("profiles")} == ARQ


def test_arq_profile_has_three_workers_and_a_redis() -> None:
    assert {name for name, service in services().items() if service.get("profiles") == ["arq"]} == ARQ
    arq = services()["arq"]
    assert arq["entrypoint"] == ["python", "-m", "arq", "app.workers.config.WorkerSettings"]
    assert arq["deploy"]["replicas"] == 3
    assert arq["depends_on"]["redis"] == {"condition": "service_healthy"}
    environment_of_tasks = {name: arq["environment"][name] for name in ("TASKS_BACKEND", "REDIS_URL")}
    assert environment_of_tasks == {"TASKS_BACKEND": "arq", "REDIS_URL": "redis://redis:6379"}
    for line in ("COMPOSE_PROFILES=arq", "TASKS_BACKEND=arq", "REDIS_URL=redis://redis:6379"):
        assert line in (ROOT / "compose.yaml").read_text()
        assert line in (ROOT / "docs" / "agendamentos.md").read_text()


def test_databases_have_health_checks_and_keep_their_data() -> None:
    for name in ("postgres", "redis"):
        [volume] = services()[name]["volumes"]
        assert volume.partition(":")[0] in compose()["volumes"]
        assert services()[name]["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")


def test_redis_of_compose_starts_only_with_a_password(tmp_path: Path) -> None:
    shell, _, script = services()["redis"]["command"]
    script = (
        script.replace("$$", "$")
        .replace("/tmp/redis.conf", f"{tmp_path}/redis.conf")
        .replace("exec redis-server", "echo")
    )

    def start(**environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([shell, "-c", script], env=environment, capture_output=True, text=True, check=False)

    refused = start()
    assert refused.returncode != 0
    assert "set REDIS_PASSWORD in .env" in refused.stderr
    assert start(REDIS_PASSWORD="a b'c").returncode == 0
    assert (tmp_path / "redis.conf").read_text().splitlines() == ['requirepass "a b\'c"', "appendonly yes"]
    assert (tmp_path / "redis.conf").stat().st_mode & 0o077 == 0


def test_every_service_is_read_only_and_has_no_capability() -> None:
    for name, service in services().items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert name in ours() or service["user"] in ("postgres", "redis"), name
        assert name in ours() or service["image"].startswith("${"), name


def test_images_have_exact_tags_that_a_command_replaces_with_digests(tmp_path: Path) -> None:
    """Every image tag in the deployment files names one exact version. A command replaces the tags with digests at each
    release, because only the registry knows the digests.
    """
    named = {
        "PYTHON_IMAGE": ours()["api"]["build"]["args"]["PYTHON_IMAGE"],
        "POSTGRES_IMAGE": services()["postgres"]["image"],
        "REDIS_IMAGE": services()["redis"]["image"],
    }
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/sh\n[ "$1" = pull ] || printf "%s@sha256:0\\n" "$5"\n')
    docker.chmod(0o755)
    pin = [ROOT / "scripts" / "pin_images.sh"]
    done = subprocess.run(pin, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True, timeout=30)
    printed = dict(line.split("=") for line in done.stdout.splitlines())
    assert named == {name: f"${{{name}:-{image.removesuffix('@sha256:0')}}}" for name, image in printed.items()}
    assert all(re.fullmatch(r"\w+:\d+(\.\d+)+-(slim-)?bookworm@sha256:0", image) for image in printed.values())
    assert arguments_of("ARG") == [f"PYTHON_IMAGE={printed['PYTHON_IMAGE'].removesuffix('@sha256:0')}"]


def test_ports_are_published_on_this_machine_only() -> None:
    ports = [port for service in services().values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_compose_file_contains_no_secret() -> None:
    for name, service in services().items():
        for setting, value in service.get("environment", {}).items():
            if SECRET.search(setting) and value != f"${{{setting}:-}}":
                assert REQUIRED_VARIABLE.fullmatch(value), f"{setting} of {name}"
            password = re.search(r"://[^/@:]*:(.+)@", str(value))
            assert password is None or REQUIRED_VARIABLE.fullmatch(password[1]), f"{setting} of {name}"


def test_own_services_require_the_api_token() -> None:
    for service in ours().values():
        assert service["environment"]["API_TOKEN"].startswith("${API_TOKEN:?")
        assert service["env_file"] == [{"path": ".env", "required": False}]


# The Procfile


def test_every_process_of_the_procfile_is_a_known_role() -> None:
    lines = [line for line in (ROOT / "Procfile").read_text().splitlines() if line and not line.startswith("#")]
    commands = [re.fullmatch(r"\w+: RUN_MODE=(\w+) scripts/entrypoint\.sh", line) for line in lines]
    assert [command and command[1] for command in commands] == ["api", "scheduler", "worker", "telegram"]
