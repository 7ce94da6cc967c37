"""The entry points: ``app`` for uvicorn, and ``work`` and ``command_line`` for the ``batuta`` command.

This module imports neither the services nor the settings, because every command imports it, even `batuta --help`.
``app`` and ``work`` are built on first use.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import COMMANDS
from batuta.cli import CommandLine

if TYPE_CHECKING:
    from fastapi import FastAPI

    from app.composition.envio import Pace
    from app.composition.julia import Julia
    from app.contexts.telegram.porta import Telegram as Port
    from app.settings import Settings
    from batuta import Batuta
    from batuta.kernel import Clock

    app: FastAPI
    work: Batuta

__all__ = ["app", "build", "command_line", "work"]


def _catalogue() -> "Batuta":
    from app.composition.catalogue import build_catalogue

    return build_catalogue(_settings())


command_line = CommandLine(
    commands=COMMANDS,
    roles=("simulador", "simulador_telegram", "telegram", "arq"),
    texts=[Path(__file__).parent / "texts"],
    language="pt-BR",
    catalogue=_catalogue,
)


def __getattr__(name: str) -> object:
    if name == "app":
        return _app()
    if name == "work":
        return _julia().work
    raise AttributeError(name)


def build(
    settings: "Settings", clock: "Clock | None" = None, pace: "Pace | None" = None, port: "Port | None" = None
) -> "Julia":
    """Build Julia for this process. If ``port`` is given, it replaces the Telegram client that the settings select."""
    from app.web import application

    return application.build(settings, COMMANDS, clock, pace, port)


def _settings() -> "Settings":
    from app.settings import Settings
    from batuta.config import environment, load_settings

    return load_settings(Settings, environment(), Path(".env"))


@cache
def _julia() -> "Julia":
    return build(_settings())


@cache
def _app() -> "FastAPI":
    """Build the application for a uvicorn server that an operator starts. Configure logging as ``batuta api`` does."""
    import sys

    from app.web.application import create_api
    from batuta import __version__
    from batuta.errors import ConfigError
    from batuta.events import ProcessStarted
    from batuta.extension import begin_logging

    try:
        julia = _julia()
        julia.settings.require_access()
    except ConfigError as error:
        raise SystemExit(f"julia: {error}") from None
    work = julia.work
    wording = work.extension.wording
    begin_logging(work.events, julia.settings, service="api", stream=sys.stdout, zone=work.zone, wording=wording)
    work.events.emit(ProcessStarted("api", __version__, work.clock.now().astimezone(work.zone)))
    return create_api(julia)
