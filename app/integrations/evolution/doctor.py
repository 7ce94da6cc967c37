"""Check that the gateway accepts our key, that instances are connected, and that their webhooks deliver all events."""

from urllib.parse import urlsplit

from app.contexts.comum.whatsapp import EstadoDaConexao, Instancia, Unavailable
from app.integrations.evolution.client import EvolutionClient, Webhook
from batuta.extension import Examined
from batuta.reasons import define

TEXT = "doctor.evolution"
NOT_OPEN = {
    EstadoDaConexao.CONNECTING: define("linha_conectando", "connecting"),
    EstadoDaConexao.CLOSE: define("linha_fechada", "disconnected"),
}


async def examine(line: EvolutionClient, address: str, *, has_secret: bool) -> list[Examined]:
    found = await line.instances()
    if isinstance(found, Unavailable):
        return [_badly("down", why=found.why)]
    examined = [Examined(True, f"{TEXT}.instances", facts={"count": len(found)})] if found else [_badly("none")]
    if not has_secret:
        examined.append(_badly("no_secret"))
    for instance in found:
        examined.append(_state(instance))
        examined.append(_webhook(instance.name, await line.webhook(instance.name), address))
    return examined


def _state(instance: Instancia) -> Examined:
    if instance.state is EstadoDaConexao.OPEN:
        return Examined(True, f"{TEXT}.open", facts={"instance": instance.name})
    return _badly("shut", instance=instance.name, state=NOT_OPEN[instance.state](), code=instance.code or "-")


def _webhook(instance: str, webhook: Webhook | Unavailable | None, address: str) -> Examined:
    if isinstance(webhook, Unavailable):
        return _badly("down", why=webhook.why)
    if webhook is None or not webhook.enabled:
        problem, facts = "webhook_none", {}
    elif _place(webhook.url) != _place(address):
        problem, facts = "webhook_other", {"url": _place(webhook.url)}
    elif webhook.by_events:
        problem, facts = "webhook_split", {}
    elif webhook.misses:
        problem, facts = "webhook_misses", {"events": ", ".join(sorted(webhook.misses))}
    else:
        return Examined(True, f"{TEXT}.webhook", facts={"instance": instance})
    return Examined(False, f"{TEXT}.{problem}", f"{TEXT}.webhook_step", {"instance": instance, **facts})


def _badly(what: str, **facts: object) -> Examined:
    return Examined(False, f"{TEXT}.{what}", f"{TEXT}.{what}_step", facts)


def _place(url: str) -> str:
    """Return a webhook's address without the query, which may contain the secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"
