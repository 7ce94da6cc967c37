"""Rate limits on SQLite: no window exceeds its limit, whatever senders do between reservation and confirmation."""

import asyncio
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from batuta.guard.base import Hold
from batuta.guard.rate import Limit, Reserved
from batuta.kernel.ids import Ids
from batuta.stores import connect
from batuta.stores.sql.tables.rates import SqlRates
from batuta.testing import FakeClock
from tests.engine.queue.test_machine import MEMORY, migrated
from tests.faults.figures import LONG

SECOND = timedelta(seconds=1)
USE_WITHIN = 10 * SECOND
FEW = Limit(name="few", key="all", most=3, per=20 * SECOND)
MANY = Limit(name="many", key="all", most=5, per=60 * SECOND)
EACH = Limit(name="each", key="one", most=1, per=15 * SECOND, each=True)
spans = st.sampled_from([1, 9, 10, 14, 15, 20, 61]).map(lambda seconds: seconds * SECOND)
whom = st.sampled_from(["a", "b"])


class RateMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY)
        self.runner = asyncio.Runner()
        self.clock = FakeClock()
        self.held: list[tuple[Reserved, str]] = []  # reservations whose effect has not happened yet
        self.done: list[Reserved] = []  # reservations whose effect happened but is not confirmed yet
        self.effects: list[tuple[datetime, str]] = []
        self.idle_after = self.clock.now()

    @initialize()
    def open(self) -> None:
        file = Path(self.folder.name) / "rates.db"
        file.write_bytes(migrated())
        self.database = connect(f"sqlite:///{file}", self.clock)
        self.runner.run(self.database.open())
        self.rates = SqlRates(self.database, Ids(self.clock), self.clock, own_time=True)

    def teardown(self) -> None:
        self.runner.run(self.database.close())
        self.runner.close()
        self.folder.cleanup()

    @rule(who=whom)
    def reserve(self, who: str) -> None:
        answer = self.runner.run(self.rates.reserve([FEW, MANY, EACH.of(who)], use_within=USE_WITHIN))
        if isinstance(answer, Hold):
            assert answer.until > self.clock.now()
        else:
            self._keep(answer, who)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), dies=st.booleans())
    def act(self, data: st.DataObject, dies: bool) -> None:
        reserved, who = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        if self.clock.now() < reserved.act_by:
            self.effects.append((self.clock.now(), who))
            if not dies:
                self.done.append(reserved)

    @precondition(lambda self: self.done)
    @rule(data=st.data())
    def confirm(self, data: st.DataObject) -> None:
        reserved = self.done.pop(data.draw(st.integers(0, len(self.done) - 1)))
        self.runner.run(self.rates.confirm(reserved.id))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        reserved, _ = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.runner.run(self.rates.release(reserved.id))

    @rule(span=spans)
    def wait(self, span: timedelta) -> None:
        self.clock.step(span)

    @rule(who=whom, delay=st.sampled_from([0, 1, 9]), dies=st.booleans())
    def send(self, who: str, delay: int, dies: bool) -> None:
        """Send as soon as the limit permits it. If the limit delays the sender, the sender retries at the time that the
        limit returned. The retry must succeed if no other sender is active.
        """
        limits = [FEW, MANY, EACH.of(who)]
        is_alone = self.clock.now() >= self.idle_after
        answer = self.runner.run(self.rates.reserve(limits, use_within=USE_WITHIN))
        if isinstance(answer, Hold):
            self.clock.step(answer.until - self.clock.now())
            answer = self.runner.run(self.rates.reserve(limits, use_within=USE_WITHIN))
        assert isinstance(answer, Reserved) or not is_alone
        if isinstance(answer, Reserved):
            self._keep(answer, who)
            self.clock.step(delay * SECOND)
            self.held.pop()
            self.effects.append((self.clock.now(), who))
            if not dies:
                self.runner.run(self.rates.confirm(answer.id))

    def _keep(self, reserved: Reserved, who: str) -> None:
        self.held.append((reserved, who))
        self.idle_after = reserved.act_by

    @rule()
    def prune(self) -> None:
        self.runner.run(self.rates.prune(limit=100))

    @invariant()
    def no_window_holds_more_than_allowed(self) -> None:
        every = [at for at, _ in self.effects]
        assert not is_over(every, FEW)
        assert not is_over(every, MANY)
        for who in ("a", "b"):
            assert not is_over([at for at, of in self.effects if of == who], EACH)


def is_over(instants: Sequence[datetime], limit: Limit) -> bool:
    ordered = sorted(instants)
    return any(ordered[n + limit.most] - ordered[n] < limit.per for n in range(len(ordered) - limit.most))


TestRates = RateMachine.TestCase
TestRates.settings = settings(
    max_examples=60 if LONG else 20,
    stateful_step_count=40,
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
