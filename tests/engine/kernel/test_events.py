from datetime import timedelta

from batuta.kernel.events import Event, Fanout, LoopRecovered, SubscriberFailed
from batuta.testing import EventRecorder

FACT = LoopRecovered("rescuer", 3, timedelta(seconds=9))


def test_every_subscriber_receives_every_event_in_order(events: EventRecorder) -> None:
    second = EventRecorder()
    fanout = Fanout(events)
    fanout.subscribe(second)
    fanout.emit(FACT)
    assert events.all == second.all == [FACT]


def test_failing_subscriber_harms_neither_the_caller_nor_the_others(events: EventRecorder) -> None:
    def broken(event: Event) -> None:
        raise ZeroDivisionError

    Fanout(broken, events).emit(FACT)
    failure = events.of(SubscriberFailed)[0]
    assert FACT in events.all
    assert (failure.event, type(failure.error)) == ("LoopRecovered", ZeroDivisionError)
    assert "broken" in failure.subscriber


def test_failing_subscriber_is_reported_once_per_event(events: EventRecorder) -> None:
    def broken(event: Event) -> None:
        raise ZeroDivisionError

    Fanout(broken, broken, events).emit(FACT)
    assert len(events.of(SubscriberFailed)) == 2
