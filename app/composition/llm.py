"""The model, put together: one circuit, one limit and one budget for all who ask."""

from datetime import timedelta

from app.contexts.llm.service import Consulta, Modelo, Precos
from app.integrations.llm.client import ChatClient
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.guard.base import Together
from batuta.guard.rate import Limit, RateGuard

OPENAI = "https://api.openai.com/v1"
# The model's; by the name the operators know it by.
CIRCUIT = "claude"
LIMIT = "modelo/minuto"


def model_of(work: Batuta, settings: Settings) -> Consulta | None:
    """None: no key is set, and the rules work alone."""
    if settings.openai_api_key is None:
        return None
    key = settings.openai_api_key.get_secret_value()
    client = ChatClient(settings.openai_base_url or OPENAI, key, settings.llm_model, work.clock)
    work.closers.append(client.close)
    return asking(work, settings, client)


def asking(work: Batuta, settings: Settings, model: Modelo) -> Consulta:
    """Behind its circuit and its limit, which all who ask share."""
    wanted = Limit(name=LIMIT, key="modelo", most=settings.llm_per_minute, per=timedelta(minutes=1))
    limit = work.limits.get(LIMIT) or work.limit(wanted)
    guard = Together(work.circuits.breaker(CIRCUIT), RateGuard(rates=work.rates, limits=(limit,)), clock=work.clock)
    prices = Precos(
        entrada=settings.llm_input_usd_per_million,
        saida=settings.llm_output_usd_per_million,
        por_dia=settings.llm_daily_budget_usd,
    )
    name, zone = settings.llm_model, work.zone
    return Consulta(work.database, model, name, guard, prices, zone, work.ids, work.clock)
