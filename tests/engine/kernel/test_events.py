from datetime import timedelta

from batuta.kernel.events import Event, Fanout, LoopRecovered, SubscriberFailed
from batuta.testing import EventRecorder

FACT = LoopRecovered("rescuer", 3, timedelta(seconds=9))


def test_every_subscriber_hears_every_fact_in_order(events: EventRecorder) -> None:
    second = EventRecorder()
    fanout = Fanout(events)
    fanout.subscribe(second)
    fanout.emit(FACT)
    assert events.all == second.all == [FACT]


def test_a_subscriber_that_fails_harms_neither_the_caller_nor_the_others(events: EventRecorder) -> None:
    def broken(event: Event) -> None:
        raise ZeroDivisionError

    Fanout(broken, events).emit(FACT)
    failure = events.of(SubscriberFailed)[0]
    assert FACT in events.all
    assert (failure.event, type(failure.error)) == ("LoopRecovered", ZeroDivisionError)
    assert "broken" in failure.subscriber


def test_a_subscriber_that_always_fails_does_not_make_the_news_go_round_for_ever(events: EventRecorder) -> None:
    def broken(event: Event) -> None:
        raise ZeroDivisionError

    Fanout(broken, broken, events).emit(FACT)
    assert len(events.of(SubscriberFailed)) == 2
