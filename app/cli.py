"""Julia's own words for ``batuta``."""

from typing import Annotated, cast

import typer

from app.contexts.mensagens.whatsapp import Unavailable
from app.demo import Demo
from app.settings import Settings
from batuta.cli.desk import FAILED, REFUSED, Desk, JsonFlag, desk_of, wait_for


def seed_demo(
    context: typer.Context,
    medicos: Annotated[int, typer.Option("--medicos", min=1, max=10_000)] = 20,
    as_json: JsonFlag = False,
) -> None:
    desk = desk_of(context)
    added = wait_for(_seed(desk, medicos))
    desk.show(added, as_json, lambda: desk.say(desk.texts()("cli.seed-demo.done", **added)))


def set_webhook(context: typer.Context, instance: str, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    settings = cast("Settings", desk.settings())
    refused = wait_for(_set_webhook(desk, settings, instance))
    url = settings.webhook_address
    if isinstance(refused, str):
        desk.say_wrong(refused)
        raise typer.Exit(REFUSED)
    document = {"instance": instance, "url": url, "set": refused is None, "why": refused and refused.why}
    key = "done" if refused is None else "refused"
    desk.show(document, as_json, lambda: desk.say(desk.texts()(f"cli.set-webhook.{key}", **document)))
    if refused is not None:
        raise typer.Exit(FAILED)


async def _seed(desk: Desk, medicos: int) -> dict[str, int]:
    async with desk.work() as work:
        return await Demo(work.database, work.zone).fill(medicos, now=work.clock.now())


async def _set_webhook(desk: Desk, settings: Settings, instance: str) -> Unavailable | str | None:
    """None: it is set; a text: it was not even tried."""
    from app.wiring import whatsapp

    line = whatsapp(settings, desk.work().clock)
    if line is None:
        return desk.texts()("cli.set-webhook.nowhere")
    secret = None if settings.webhook_secret is None else settings.webhook_secret.get_secret_value()
    try:
        return await line.set_webhook(instance, settings.webhook_address, secret)
    finally:
        await line.close()
