"""Write an offer's text. Julia introduces itself as a virtual assistant and states only facts about the vacancy."""

from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from app.contexts.comum.texto import chamado
from batuta.sql import Row

DIAS: Final = ("segunda-feira", "terça-feira", "quarta-feira", "quinta-feira", "sexta-feira", "sábado", "domingo")
FATOS: Final = (
    "• Hospital: {hospital}\n• Especialidade: {especialidade}\n• Data: {data}\n• Período: {periodo}\n• Valor: {valor}"
)
OFERTA: Final = (
    "Oi{nome}! Aqui é a Julia, assistente virtual de escalas. Temos um plantão em aberto:\n"
    "{fatos}\n"
    "Tem interesse? É só responder por aqui. Se preferir não receber mais mensagens, responda PARAR."
)


def oferta(nome: str | None, vaga: Row | Mapping[str, Any]) -> str:
    """Write the message that offers a vacancy to one doctor. ``vaga`` includes the names of its hospital, speciality
    and period.
    """
    return OFERTA.format(nome=chamado(nome), fatos=fatos_da_vaga(vaga))


def fatos_da_vaga(vaga: Row | Mapping[str, Any]) -> str:
    """Return a text with a vacancy's hospital, speciality, day, period and price, one per line."""
    return FATOS.format(
        hospital=_lugar(vaga),
        especialidade=vaga["especialidade"],
        data=_dia(vaga["data"]),
        periodo=_periodo(vaga),
        valor=_valor(vaga["valor"], vaga["valor_tipo"]),
    )


def _lugar(vaga: Row | Mapping[str, Any]) -> str:
    town = "/".join(part for part in (vaga["cidade"], vaga["uf"]) if part)
    return f"{vaga['hospital']} ({town})" if town else str(vaga["hospital"])


def _dia(day: date) -> str:
    return f"{DIAS[day.weekday()]}, {day:%d/%m/%Y}"


def _periodo(vaga: Row | Mapping[str, Any]) -> str:
    starts, ends = vaga["hora_inicio"], vaga["hora_fim"]
    hours = f"das {starts} às {ends}" if starts and ends else f"a partir das {starts}" if starts else ""
    return ", ".join(part for part in (vaga["periodo"], hours) if part) or "a combinar"


def _valor(valor: int | None, tipo: str | None) -> str:
    if valor is None or tipo not in (None, "fixo"):
        return "a combinar"
    return f"R$ {valor:,}".replace(",", ".") + ",00"
