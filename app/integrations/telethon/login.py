"""Login through Telethon."""

import struct
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from telethon import errors
from telethon.errors.common import AuthKeyNotFound
from telethon.sessions import StringSession
from telethon.tl import functions, types

from app.contexts.telegram.porta import (
    Entrou,
    Falha,
    Feito,
    LoginRecusado,
    Metodo,
    MotivoDaRecusa,
    PedeSenha,
    Unavailable,
)
from app.integrations.telegram.conexao import Ok, Prazo
from app.integrations.telethon.cliente import Cliente
from app.integrations.telethon.valores import BANNED, REVOKED, entity_of, failure
from batuta.errors import DeadlineExceeded
from batuta.kernel import Clock

REFUSALS: Final = {
    errors.PhoneNumberInvalidError: MotivoDaRecusa.TELEFONE,
    errors.PhoneNumberUnoccupiedError: MotivoDaRecusa.TELEFONE,
    errors.PhoneCodeInvalidError: MotivoDaRecusa.CODIGO,
    errors.PhoneCodeEmptyError: MotivoDaRecusa.CODIGO,
    errors.PhoneCodeExpiredError: MotivoDaRecusa.CODIGO_VENCIDO,
    errors.PasswordHashInvalidError: MotivoDaRecusa.SENHA,
    errors.PasswordEmptyError: MotivoDaRecusa.SENHA,
}


class LoginTelethon:
    def __init__(self, make: Callable[[StringSession], Cliente], clock: Clock) -> None:
        """Create the login through Telethon. ``make`` builds a Telethon client that follows a redirect to another data
        centre.
        """
        self._make = make
        self._clock = clock
        self._client: Cliente | None = None
        self._telefone = ""
        self._hash = ""

    async def ask_code(self, telefone: str, *, limit: timedelta) -> Feito | LoginRecusado | Falha:
        self._telefone, prazo = telefone, Prazo(limit, self._clock)
        failed = await self._connect(StringSession(), prazo)
        if failed is not None:
            return failed
        found = await self._call(self._open.send_code_request(telefone), prazo)
        if not isinstance(found, Ok):
            return found
        self._hash = found.value.phone_code_hash
        return Feito()

    async def sign_in(self, codigo: str, *, limit: timedelta) -> Entrou | PedeSenha | LoginRecusado | Falha:
        request = functions.auth.SignInRequest(self._telefone.lstrip("+"), self._hash, codigo)
        try:
            return await self._enter(self._open(request), limit)
        except errors.SessionPasswordNeededError:
            return PedeSenha()

    async def check_password(self, senha: str, *, limit: timedelta) -> Entrou | LoginRecusado | Falha:
        return await self._enter(self._open.sign_in(password=senha), limit)

    async def import_session(self, sessao: str, *, limit: timedelta) -> Entrou | LoginRecusado | Falha:
        try:
            session = StringSession(sessao)
        except (ValueError, struct.error):
            return LoginRecusado(MotivoDaRecusa.SESSAO)
        if session.auth_key is None:
            return LoginRecusado(MotivoDaRecusa.SESSAO)
        failed = await self._connect(session, Prazo(limit, self._clock))
        if failed is not None:
            return failed
        return await self._enter(self._open(functions.users.GetUsersRequest([types.InputUserSelf()])), limit)

    async def close(self, *, limit: timedelta) -> None:
        if self._client is not None:
            await self._call(self._client.disconnect(), Prazo(limit, self._clock))

    @property
    def _open(self) -> Cliente:
        assert self._client is not None, "ask_code or import_session come first"
        return self._client

    async def _connect(self, session: StringSession, prazo: Prazo) -> LoginRecusado | Falha | None:
        self._client = self._make(session)
        found = await self._call(self._client.connect(), prazo)
        return None if isinstance(found, Ok) else found

    async def _enter(self, call: Any, limit: timedelta) -> Entrou | LoginRecusado | Falha:
        found = await self._call(call, Prazo(limit, self._clock))
        if not isinstance(found, Ok):
            return found
        user = found.value[0] if isinstance(found.value, list) else getattr(found.value, "user", found.value)
        eu = entity_of(user)
        assert eu is not None
        return Entrou(sessao=str(self._open.session.save()), eu=eu)

    async def _call(self, call: Any, prazo: Prazo) -> Ok | LoginRecusado | Falha:
        try:
            return Ok(await prazo.run(call, "login"))
        except errors.SessionPasswordNeededError:
            raise
        except BANNED:
            return LoginRecusado(MotivoDaRecusa.BANIDA)
        except (errors.RPCError, AuthKeyNotFound) as error:
            if type(error) in REFUSALS:
                return LoginRecusado(REFUSALS[type(error)])
            return (
                LoginRecusado(MotivoDaRecusa.SESSAO) if isinstance(error, REVOKED) else failure(error, Metodo.CONNECT)
            )
        except (OSError, DeadlineExceeded) as error:
            return Unavailable(type(error).__name__)
