"""``batuta telegram``: without a subcommand, run the Telegram worker."""

from collections.abc import Callable, Mapping
from typing import Final

from app.cli.telegram.contas import chaves, historico, pausar, retomar, status, vincular
from app.cli.telegram.login import login
from app.cli.telegram.mensagens import acoes, apagar, editar, encaminhar, enviar, ler

COMMANDS: Final[Mapping[str, Callable[..., None]]] = {
    "status": status,
    "enviar": enviar,
    "editar": editar,
    "apagar": apagar,
    "ler": ler,
    "encaminhar": encaminhar,
    "acoes": acoes,
    "historico": historico,
    "pausar": pausar,
    "retomar": retomar,
    "vincular": vincular,
    "login": login,
    "chaves": chaves,
}
