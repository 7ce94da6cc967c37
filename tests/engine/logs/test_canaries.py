"""Personal data and secrets (canaries) never reach the log, whichever code path writes it."""

import asyncio
import io
import logging
import re
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import pytest
import structlog

from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.events import (
    Event,
    JobAnswered,
    JobCrashed,
    LoopFailed,
    ProcessEnded,
    RequestCrashed,
    SubscriberFailed,
    SwitchChanged,
)
from batuta.logs import LogSubscriber
from tests.engine.logs.log_lines import logging_to

CPF = "123.456.789-09"
BARE_CPF = "12345678909"
PHONE = "+55 (11) 98765-4321"
BARE_PHONE = "5511987654321"
TOKEN = f"bat_0123456789ab_{'5ec4e7' * 8}"
TEXT = "Doutora, prefiro o plantao de sexta"
PATTERNED = f"de {CPF} ou {BARE_CPF}, fone {PHONE} ou {BARE_PHONE}@s.whatsapp.net, chave {TOKEN}"
EVERYTHING = f"{TEXT}; {PATTERNED}"

GIVEN_AWAY = [CPF, BARE_CPF, PHONE, BARE_PHONE, TOKEN, TOKEN[-20:], TEXT, "plantao"]
DIGITS_GIVEN_AWAY = ["12345678909", "11987654321"]

PAYLOAD = {
    "key": {"remoteJid": BARE_PHONE, "id": "3EB0"},
    "pushName": TEXT,
    "message": {"conversation": TEXT},
    "apikey": TOKEN,
    "rows": [{"telefone": PHONE, "cpf": CPF}, [{"texto": TEXT}], PATTERNED, int(BARE_PHONE)],
    BARE_PHONE: 1,
}


@dataclass
class Doctor:
    nome: str
    telefone: str


def emit(event: Event) -> None:
    LogSubscriber()(event)


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def chain() -> BaseException:
    try:
        try:
            raise KeyError(EVERYTHING)
        except KeyError as first:
            raise ValueError(EVERYTHING) from first
    except ValueError:
        return raised(StoreUnavailable(where="db", why=PATTERNED))


def group() -> BaseException:
    return raised(ExceptionGroup(EVERYTHING, [ValueError(EVERYTHING), ExceptionGroup("x", [KeyError(EVERYTHING)])]))


def log_exception(error: BaseException) -> None:
    try:
        raise error
    except BaseException:
        logging.getLogger("theirs").exception("broke")


def structlog_exception(error: BaseException) -> None:
    try:
        raise error
    except BaseException:
        structlog.get_logger("ours").exception("broke", error=error, errors=[error])


def warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(EVERYTHING, UserWarning, stacklevel=1)
        warnings.warn(PATTERNED, DeprecationWarning, stacklevel=1)


def raise_in_a_thread() -> None:
    def run() -> None:
        raise ValueError(EVERYTHING)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def raise_in_a_callback() -> None:
    def fail(*_: object) -> None:
        raise ValueError(EVERYTHING)

    async def call() -> None:
        asyncio.get_running_loop().call_soon(fail, EVERYTHING)
        await asyncio.sleep(0)

    asyncio.run(call())


def forget_a_future() -> None:
    async def call() -> None:
        asyncio.get_running_loop().create_future().set_exception(ValueError(EVERYTHING))

    asyncio.run(call())


def bind_to_the_context() -> None:
    with structlog.contextvars.bound_contextvars(conteudo=TEXT, note=PATTERNED):
        structlog.get_logger("ours").info("hello")


theirs = logging.getLogger("theirs")
SECOND = timedelta(seconds=1)
ROADS: dict[str, Callable[[], object]] = {
    "a crash of a job": lambda: emit(JobCrashed(PATTERNED, raised(ValueError(EVERYTHING)))),
    "a crash of a request": lambda: emit(RequestCrashed("GET", "/x", chain(), PATTERNED)),
    "a failing loop": lambda: emit(LoopFailed(PATTERNED, group(), 1, SECOND)),
    "a loop that fails again": lambda: emit(LoopFailed("x", raised(ValueError(EVERYTHING)), 2, SECOND)),
    "a failing subscriber": lambda: emit(SubscriberFailed("x", "y", chain())),
    "a job's reason": lambda: emit(JobAnswered("x", "error", PATTERNED, None, SECOND)),
    "a switch's reason": lambda: emit(SwitchChanged(PATTERNED, True, PATTERNED, PATTERNED, None)),
    "the reason of a stop": lambda: emit(ProcessEnded("x", PATTERNED, failed=True)),
    "our words": lambda: structlog.get_logger("ours").info(PATTERNED),
    "our fields": lambda: structlog.get_logger("ours").info(
        "x", conteudo=TEXT, nome=TEXT, cpf=CPF, telefone=PHONE, token=TOKEN, note=PATTERNED, number=int(BARE_PHONE)
    ),
    "our nested fields": lambda: structlog.get_logger("ours").info("x", payload=PAYLOAD, many=[PAYLOAD, (PAYLOAD,)]),
    "our bound fields": lambda: structlog.get_logger("ours").bind(texto=TEXT, note=PATTERNED).warning("x"),
    "our context": bind_to_the_context,
    "our arguments": lambda: structlog.get_logger("ours").info("x %s %s", PAYLOAD, PATTERNED),
    "our record of a person": lambda: structlog.get_logger("ours").info("x", doctor=Doctor(TEXT, PHONE)),
    "our exception": lambda: structlog_exception(chain()),
    "our group": lambda: structlog_exception(group()),
    "an exception as our words": lambda: structlog.get_logger("ours").info(raised(ValueError(EVERYTHING))),
    "their exception": lambda: log_exception(ValueError(EVERYTHING)),
    "their chain": lambda: log_exception(chain()),
    "their group": lambda: log_exception(group()),
    "their words": lambda: theirs.info(PATTERNED),
    "their extra": lambda: theirs.info(
        "x", extra={"conteudo": TEXT, "payload": PAYLOAD, "note": PATTERNED, "nome": TEXT}
    ),
    "their text argument": lambda: theirs.info("x %s %r", PATTERNED, PATTERNED),
    "their number argument": lambda: theirs.info("x %d", int(BARE_PHONE)),
    "their nested argument": lambda: theirs.info("x %s %r", PAYLOAD, [PAYLOAD]),
    "their named arguments": lambda: theirs.info("x %(conteudo)s %(note)s", {"conteudo": TEXT, "note": PATTERNED}),
    "their record of a person": lambda: theirs.info("x %s", Doctor(TEXT, PHONE)),
    "their exception argument": lambda: theirs.info("x %s %r", ValueError(EVERYTHING), KeyError(EVERYTHING)),
    "their exception as words": lambda: theirs.error(ValueError(EVERYTHING)),
    "their dict as words": lambda: theirs.error(PAYLOAD),
    "their dict in an f-string": lambda: theirs.error(f"got {PAYLOAD}"),
    "their record in an f-string": lambda: theirs.error(f"got {Doctor(TEXT, PHONE)}"),
    "arguments that do not fit": lambda: theirs.info("x %d %d", EVERYTHING, EVERYTHING),
    "a logger's name": lambda: logging.getLogger(f"theirs.{BARE_PHONE}").info("x"),
    "a warning": warn,
    "an uncaught exception": lambda: sys.excepthook(ValueError, ValueError(EVERYTHING), None),
    "an exception in a thread": raise_in_a_thread,
    "an exception in a callback": raise_in_a_callback,
    "an exception that was never retrieved": forget_a_future,
}


@pytest.mark.parametrize("format", ["json", "pretty"])
@pytest.mark.parametrize("road", ROADS)
def test_log_contains_no_personal_data_and_no_secret(
    road: str, format: Literal["json", "pretty"], capfd: pytest.CaptureFixture[str]
) -> None:
    with logging_to(stream := io.StringIO(), format):
        ROADS[road]()
    written = stream.getvalue()
    assert written.strip(), "nothing was logged, so nothing was tested"
    assert "could not be written" not in written
    everywhere = written + "".join(capfd.readouterr())
    assert [canary for canary in GIVEN_AWAY if canary in everywhere] == []
    digits = re.sub(r"\D", "", everywhere)
    assert [number for number in DIGITS_GIVEN_AWAY if number in digits] == []


def test_canaries_appear_in_an_unmasked_log() -> None:
    """This test proves that the other tests could detect a canary. Without it, they might pass because they check
    nothing.
    """
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    theirs.addHandler(handler)
    try:
        theirs.error("%s", EVERYTHING)
    finally:
        theirs.removeHandler(handler)
    assert [canary for canary in GIVEN_AWAY if canary not in stream.getvalue()] == []
