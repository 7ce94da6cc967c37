"""The Telegram worker: its loops, its time limits and its health."""

import pytest

from app.composition.telegram.role import TELEGRAM_ROLE
from app.composition.telegram.services import STUCK_AFTER
from app.main import build
from app.settings import Settings
from batuta.errors import ConfigError
from tests.julia.telegram.escritorio import open_office


def loops(role: str) -> set[str]:
    work = build(Settings(database_url="sqlite:///loops.db")).work
    return {each.loop.name for each in work.supervisor(role).running}


def test_heartbeat_of_the_worker_lists_four_loops() -> None:
    assert (TELEGRAM_ROLE.worker_name, TELEGRAM_ROLE.shows) == (
        "telegram-main",
        ("sync", "outbound", "history", "jobs"),
    )
    assert set(TELEGRAM_ROLE.shows or ()) <= loops("telegram")
    assert loops("worker").isdisjoint({"sync", "outbound", "history", "jobs"})


def test_limits_of_a_send_must_fit_in_a_cycle() -> None:
    Settings(telegram_timeout_send=30, telegram_timeout_media=60, telegram_timeout_cycle=120)
    with pytest.raises(ConfigError, match="TELEGRAM_TIMEOUT_CYCLE"):
        Settings(telegram_timeout_media=100)


def test_limits_end_before_the_supervisor_restarts_the_loop() -> None:
    with pytest.raises(ValueError, match="120"):
        Settings(telegram_timeout_cycle=121)
    with pytest.raises(ValueError, match="60"):
        Settings(telegram_timeout_db=int(STUCK_AFTER.total_seconds()))
    short = {f"telegram_timeout_{name}": 1 for name in ("send", "entity", "media")}
    with pytest.raises(ConfigError, match="TELEGRAM_TIMEOUT_CYCLE"):
        Settings(**short, telegram_timeout_db=50, telegram_timeout_cycle=50)


async def test_position_of_the_updates_belongs_to_one_telegram_user(database_url: str) -> None:
    async with open_office(database_url) as office:
        contas = office.telegram.contas
        id = await contas.adicionar("conta-1", usuario_id=1001, by="teste")
        async with office.database.transaction() as transaction:
            await contas.avancar(transaction, id, "17", is_news=False)
        await contas.adicionar("conta-1", usuario_id=1001, by="teste")
        assert [each.marca for each in await contas.ativas()] == ["17"]
        await contas.adicionar("conta-1", usuario_id=1002, by="teste")
        assert [each.marca for each in await contas.ativas()] == [None]


async def test_health_lists_the_accounts_and_the_loops(database_url: str) -> None:
    async with open_office(database_url) as office:
        assert (await office.telegram.health.documento())["status"] == "not_configured"
        await office.account()
        await office.connect()
        document = await office.telegram.health.documento()
        assert document["worker"]["loops"] == dict.fromkeys(("sync", "outbound", "history", "jobs"), False)
        assert [(each["nome"], each["conectada"]) for each in document["contas"]] == [("conta-1", True)]
