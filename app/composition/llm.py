"""Build the client for the language model. All contexts share the client, its circuit breaker, its rate limit and its
budget.
"""

from datetime import timedelta

from app.contexts.llm.service import Consulta, Llm, Precos
from app.integrations.llm.client import ChatClient
from app.settings import Settings
from batuta import Batuta
from batuta.guards import AllOf, Limit, RateGuard

OPENAI = "https://api.openai.com/v1"
# Name of the language model's circuit breaker, as operators see it.
CIRCUIT = "claude"
LIMIT = "modelo/minuto"


def build_llm(work: Batuta, settings: Settings) -> Consulta | None:
    """Build the language model service. Return None if no API key is set; then only rules read texts."""
    if settings.openai_api_key is None:
        return None
    key = settings.openai_api_key.get_secret_value()
    client = ChatClient(settings.openai_base_url or OPENAI, key, settings.llm_model, work.clock)
    work.closers.append(client.close)
    return guard_llm(work, settings, client)


def guard_llm(work: Batuta, settings: Settings, model: Llm) -> Consulta:
    """Return a client that calls ``model`` only if the circuit breaker and the rate limit admit the call."""
    wanted = Limit(name=LIMIT, key="modelo", most=settings.llm_per_minute, per=timedelta(minutes=1))
    limit = work.limits.get(LIMIT) or work.limit(wanted)
    guard = AllOf(work.circuits.breaker(CIRCUIT), RateGuard(rates=work.rates, limits=(limit,)), clock=work.clock)
    prices = Precos(
        entrada=settings.llm_input_usd_per_million,
        saida=settings.llm_output_usd_per_million,
        por_dia=settings.llm_daily_budget_usd,
    )
    name, zone = settings.llm_model, work.zone
    return Consulta(work.database, model, name, guard, prices, zone, work.ids, work.clock)
