"""Roles that an application defines: each has its own queues and loops, supervised in the same way as a worker."""

from dataclasses import replace
from datetime import timedelta

import pytest

from batuta import Batuta, Idle
from batuta.config import EngineSettings
from batuta.errors import UnknownWord
from batuta.loops import LoopPolicy, Pace, Wakeup
from batuta.queues import QueueTable
from batuta.testing import FakeClock

TABLE = QueueTable(name="cartas", queue="fila")
GROUPED = replace(TABLE, group="conta", ready_index="cartas_por_conta")
POLICY = LoopPolicy(every=timedelta(seconds=1), stuck_after=timedelta(minutes=1))


class Sync:
    name = "sync"
    wakeup = Wakeup()

    async def tick(self) -> Pace:
        return Idle()


def loops(work: Batuta, role: str) -> set[str]:
    return {each.loop.name for each in work.supervisor(role).running}


def build() -> Batuta:
    work = Batuta("sqlite:///roles.db", clock=FakeClock())
    work.add_queue(TABLE, lambda lease: None)
    work.add_queue(GROUPED, lambda lease: None, queue="expressas", role="carteiro", loop="outbound")
    work.add_loop(Sync(), POLICY, role="carteiro")
    return work


def test_queue_and_loop_of_a_role_run_only_in_its_processes() -> None:
    work = build()
    assert {"outbound", "sync"} <= loops(work, "carteiro")
    assert "worker:cartas" not in loops(work, "carteiro")
    assert "worker:cartas" in loops(work, "worker")
    assert loops(work, "worker").isdisjoint({"outbound", "sync"})
    assert loops(work, "api").isdisjoint({"outbound", "sync", "worker:cartas"})


def test_two_queues_share_one_table() -> None:
    work = build()
    assert {"cartas", "expressas"} <= set(work.queues)
    assert work.queues["expressas"].table.name == work.queues["cartas"].table.name == "cartas"


def test_worker_is_limited_to_queues_by_its_flag_or_the_setting() -> None:
    def program(**settings: object) -> Batuta:
        work = Batuta("sqlite:///roles.db", clock=FakeClock(), settings=EngineSettings.model_validate(settings))
        for queue in ("default", "mail"):
            work.task(name=f"of_{queue}", queue=queue)(print)
        work.add_loop(Sync(), POLICY)
        return work

    assert {"worker:default", "worker:mail", "sync"} <= loops(program(), "worker")
    work = program(batuta_queues="mail", batuta_concurrency=7)
    assert "worker:mail" in loops(work, "worker")
    assert loops(work, "worker").isdisjoint({"worker:default", "sync"})
    assert work.worker_policy.limit == 7
    work.only = ("default",)
    assert loops(work, "worker").isdisjoint({"worker:mail", "sync"})
    work.only = ("mial",)
    with pytest.raises(UnknownWord, match="did you mean mail"):
        loops(work, "worker")
