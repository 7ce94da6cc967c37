"""An application that tries to leak personal data through every code path. The log, the responses and the database must
not show the data.

``work`` is the application for the command ``batuta``, and ``app`` is the one for uvicorn. When the module runs as a
script, it dies of an exception that quotes the script's input.
"""

import asyncio
import json
import logging
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import structlog

from batuta import Batuta
from batuta.config import EngineSettings, environment, load_settings
from batuta.logs import begin_logging
from batuta.queue.outcome import Done, Failed, Outcome
from batuta.receive.endpoints import JobCall
from batuta.tasks.task import TaskContext
from batuta.web import create_api

settings = load_settings(EngineSettings, environment())
work = Batuta(settings.database_url.get_secret_value(), settings=settings)


class Leak(Exception):
    """An exception whose message contains the input that it was given."""


def said(call: JobCall) -> str:
    return json.dumps(dict(call.params))


async def logs(call: JobCall) -> Outcome:
    theirs, ours = logging.getLogger("theirs"), structlog.get_logger("ours")
    theirs.info("asked with %s", dict(call.params))
    theirs.warning(f"asked with {dict(call.params)}", extra={"params": dict(call.params)})
    ours.info("asked", payload=dict(call.params), **call.params)
    ours.info(call.params["dsn"])
    warnings.warn(said(call), UserWarning, stacklevel=1)
    return Done()


async def raises(call: JobCall) -> Outcome:
    raise Leak(said(call)) from ValueError(call.params["cpf"])


async def answers(call: JobCall) -> Outcome:
    return Failed(
        f"CPF {call.params['cpf']}, fone {call.params['telefone']}, {call.params['dsn']}, {call.params['token']}"
    )


async def throws(call: JobCall) -> Outcome:
    def run() -> None:
        raise Leak(said(call))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    asyncio.get_running_loop().create_future().set_exception(Leak(said(call)))
    asyncio.get_running_loop().call_soon(run)
    return Done()


async def enqueues(call: JobCall) -> Outcome:
    await work.enqueue("leaks", dict(call.params))
    return Done()


@work.task(retry=[], name="leaks")
async def leaks(ctx: TaskContext, params: dict[str, str]) -> Any:
    logging.getLogger("theirs").info("task with %s", params)
    raise Leak(json.dumps(params))


for name, handler in {
    "logs": logs,
    "raises": raises,
    "answers": answers,
    "throws": throws,
    "enqueues": enqueues,
}.items():
    work.endpoints.add(name, handler, manual=True)


def __getattr__(name: str) -> object:
    if name != "app":
        raise AttributeError(name)
    begin_logging(work.events, settings, service="api", stream=sys.stdout, zone=work.zone)
    return create_api(work, settings)


if __name__ == "__main__":
    begin_logging(work.events, settings, service="crash", stream=sys.stdout, zone=work.zone)
    raise Leak(Path(sys.argv[1]).read_text())
