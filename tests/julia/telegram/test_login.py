"""The guarantees of a login, tested with the simulated Telegram and with Telethon."""

import logging

import pytest

from app.composition.development.simulator import SIMULATED, as_child
from app.contexts.telegram.porta import (
    Entrou,
    Feito,
    LoginRecusado,
    MotivoDaRecusa,
    PedeSenha,
    Unavailable,
    Unknown,
    Vivo,
)
from app.settings import Settings
from simulador.telegram.mundo import LOGIN_CODE
from tests.julia.telegram.ambiente import LONG, SHORT, Ambiente
from tests.julia.telegram.tl_server import session_of

PHONE, PASSWORD = "+5511987654321", "canary-password"


def add_person(ambiente: Ambiente, senha: str | None = None) -> int:
    return ambiente.mundo.add_person("Conta Nova", telefone=PHONE[1:], senha=senha)


async def connects(ambiente: Ambiente, sessao: str) -> bool:
    """Return whether a stored session can be used to connect."""
    conta = await ambiente.add_row("nova")
    await ambiente.sessoes.store(conta, sessao)
    line = await ambiente.telegram.connect(conta, marca=None, limit=LONG)
    alive = await line.probe(limit=LONG)  # type: ignore[union-attr]
    await line.close(limit=LONG)  # type: ignore[union-attr]
    return isinstance(alive, Vivo)


async def test_a_code_logs_in(ambiente: Ambiente) -> None:
    person = add_person(ambiente)
    login = ambiente.login()
    assert await login.ask_code(PHONE, limit=LONG) == Feito()
    assert await login.sign_in("99999", limit=LONG) == LoginRecusado(MotivoDaRecusa.CODIGO)
    entered = await login.sign_in(LOGIN_CODE, limit=LONG)
    await login.close(limit=LONG)
    assert isinstance(entered, Entrou)
    assert (entered.eu.peer.id, entered.eu.nome, entered.eu.telefone) == (person, "Conta Nova", PHONE[1:])
    assert await connects(ambiente, entered.sessao)


async def test_an_account_with_a_password_asks_for_it(ambiente: Ambiente) -> None:
    add_person(ambiente, PASSWORD)
    login = ambiente.login()
    await login.ask_code(PHONE, limit=LONG)
    assert await login.sign_in(LOGIN_CODE, limit=LONG) == PedeSenha()
    entered = await login.check_password(PASSWORD, limit=LONG)
    await login.close(limit=LONG)
    assert isinstance(entered, Entrou)
    assert await connects(ambiente, entered.sessao)


async def test_an_unknown_number_is_refused(ambiente: Ambiente) -> None:
    login = ambiente.login()
    assert await login.ask_code("+5511900000000", limit=LONG) == LoginRecusado(MotivoDaRecusa.TELEFONE)
    await login.close(limit=LONG)


async def test_a_session_is_imported_if_it_is_logged_in(ambiente: Ambiente) -> None:
    person = add_person(ambiente)
    token = ambiente.mundo.open_session(person)
    sessao = token if ambiente.name == "simulador" else session_of(token)
    login = ambiente.login()
    entered = await login.import_session(sessao, limit=LONG)
    await login.close(limit=LONG)
    assert isinstance(entered, Entrou)
    assert entered.eu.peer.id == person
    assert await connects(ambiente, entered.sessao)
    ambiente.mundo.revoke(person)
    login = ambiente.login()
    assert await login.import_session(sessao, limit=LONG) == LoginRecusado(MotivoDaRecusa.SESSAO)
    await login.close(limit=LONG)


@pytest.mark.parametrize("broken", ["", "1", "1abc", "not a session", "sessão", "1" + "A" * 352])
async def test_text_that_is_not_a_session_is_refused(ambiente: Ambiente, broken: str) -> None:
    login = ambiente.login()
    assert await login.import_session(broken, limit=LONG) == LoginRecusado(MotivoDaRecusa.SESSAO)
    await login.close(limit=LONG)


async def test_a_login_ends_at_its_limit(ambiente: Ambiente) -> None:
    add_person(ambiente)
    login = ambiente.login()
    ambiente.mundo.change({"hang": True})
    assert isinstance(await login.ask_code(PHONE, limit=SHORT), Unavailable | Unknown)
    await login.close(limit=LONG)


async def test_nothing_secret_is_logged_or_shown(ambiente: Ambiente, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    add_person(ambiente, PASSWORD)
    login = ambiente.login()
    shown = [await login.ask_code(PHONE, limit=LONG), await login.sign_in(LOGIN_CODE, limit=LONG)]
    entered = await login.check_password(PASSWORD, limit=LONG)
    await login.close(limit=LONG)
    assert isinstance(entered, Entrou)
    assert await connects(ambiente, entered.sessao)
    written = caplog.text + repr([*shown, entered])
    for secret in (PHONE, PHONE[1:], LOGIN_CODE, PASSWORD, entered.sessao):
        assert secret not in written


def test_login_in_development_uses_the_telegram_and_the_key_of_the_worker() -> None:
    """In development, a command in another terminal uses the same simulated Telegram and the same encryption key as the
    child processes of `batuta up`.
    """
    settings = as_child(Settings(app_env="development", secret_key="synthetic key of the operator"))
    assert settings.session_keys == (SIMULATED,)
    assert settings.telegram_simulador_url == "http://127.0.0.1:8098/telegram"
    own = as_child(Settings(app_env="development", telegram_session_keys="synthetic own key"))
    assert own.session_keys == ("synthetic own key",)
    assert as_child(Settings(app_env=None)).telegram_simulador_url is None
