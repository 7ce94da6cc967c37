"""Login to the simulated Telegram."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import httpx2

from app.contexts.telegram.porta import (
    Entrou,
    Falha,
    Feito,
    LoginRecusado,
    MotivoDaRecusa,
    PedeSenha,
    Unavailable,
    Unknown,
)
from app.integrations.telegram.conexao import Prazo, close_client
from app.integrations.telegram.simulado import entity_of
from batuta.errors import DeadlineExceeded
from batuta.kernel import Clock, Json

REFUSALS: Final = {
    "PHONE_NUMBER_INVALID": MotivoDaRecusa.TELEFONE,
    "PHONE_CODE_INVALID": MotivoDaRecusa.CODIGO,
    "PASSWORD_HASH_INVALID": MotivoDaRecusa.SENHA,
    "AUTH_KEY_UNREGISTERED": MotivoDaRecusa.SESSAO,
    "USER_DEACTIVATED_BAN": MotivoDaRecusa.BANIDA,
}


class LoginSimulado:
    def __init__(self, base_url: str, clock: Clock) -> None:
        self._base_url = base_url.rstrip("/")
        self._clock = clock
        self._client = httpx2.AsyncClient(trust_env=False, verify=False)
        self._telefone = ""

    async def ask_code(self, telefone: str, *, limit: timedelta) -> Feito | LoginRecusado | Falha:
        self._telefone = telefone
        found = await self._post("/auth/code", {"telefone": telefone}, limit)
        return Feito() if isinstance(found, Mapping) else found

    async def sign_in(self, codigo: str, *, limit: timedelta) -> Entrou | PedeSenha | LoginRecusado | Falha:
        found = await self._post("/auth/sign_in", {"telefone": self._telefone, "codigo": codigo}, limit)
        if isinstance(found, Unknown) and found.why == "SESSION_PASSWORD_NEEDED":
            return PedeSenha()
        return _read_login(found)

    async def check_password(self, senha: str, *, limit: timedelta) -> Entrou | LoginRecusado | Falha:
        return _read_login(await self._post("/auth/password", {"telefone": self._telefone, "senha": senha}, limit))

    async def import_session(self, sessao: str, *, limit: timedelta) -> Entrou | LoginRecusado | Falha:
        if not sessao or not sessao.isascii() or not sessao.isprintable():
            return LoginRecusado(MotivoDaRecusa.SESSAO)
        found = await self._post("/get_me", {}, limit, {"Authorization": f"Bearer {sessao}"})
        return _read_login({"sessao": sessao, "eu": found["result"]}) if isinstance(found, Mapping) else found

    async def close(self, *, limit: timedelta) -> None:
        await close_client(self._client.aclose(), self._clock)

    async def _post(
        self, path: str, body: Mapping[str, Json], limit: timedelta, headers: Mapping[str, str] | None = None
    ) -> Mapping[str, Any] | LoginRecusado | Falha:
        try:
            sent = self._client.post(f"{self._base_url}{path}", json=body, headers=dict(headers or {}))
            answer = await Prazo(limit, self._clock).run(sent, path)
        except (httpx2.HTTPError, DeadlineExceeded) as error:
            return Unavailable(type(error).__name__)
        read: Mapping[str, Any] = answer.json()
        if answer.status_code == 200:
            return read
        name = str(read.get("error"))
        return LoginRecusado(REFUSALS[name]) if name in REFUSALS else Unknown(name)


def _read_login(found: Mapping[str, Any] | LoginRecusado | Falha) -> Entrou | LoginRecusado | Falha:
    if not isinstance(found, Mapping):
        return found
    return Entrou(sessao=found["sessao"], eu=entity_of(found["eu"]))
