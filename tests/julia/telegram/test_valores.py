"""The translation of errors from Telegram's server: which errors end a message, and which stop the account."""

import pytest
from telethon.errors import rpc_message_to_error
from telethon.tl import functions, types

from app.contexts.telegram.porta import Falha, Metodo, PeerFlood, Refused, SessionRevoked, Unknown
from app.integrations.telethon.valores import failure


def failure_of(code: int, name: str) -> Falha:
    return failure(
        rpc_message_to_error(types.RpcError(code, name), functions.help.GetConfigRequest()), Metodo.SEND_TEXT
    )


@pytest.mark.parametrize("name", ["FROZEN_METHOD_INVALID", "FROZEN_PARTICIPANT_MISSING"])
def test_frozen_account_stops_and_keeps_its_messages(name: str) -> None:
    assert isinstance(failure_of(420, name), PeerFlood)


@pytest.mark.parametrize("name", ["ALLOW_PAYMENT_REQUIRED", "PRIVACY_PREMIUM_REQUIRED", "UNHEARD_OF"])
def test_error_about_one_request_does_not_revoke_the_account(name: str) -> None:
    assert isinstance(failure_of(406, name), Refused)


def test_key_that_another_machine_uses_revokes_the_account() -> None:
    assert isinstance(failure_of(406, "AUTH_KEY_DUPLICATED"), SessionRevoked)


def test_busy_server_leaves_the_message_in_doubt() -> None:
    assert isinstance(failure_of(500, "MSG_WAIT_FAILED"), Unknown)
