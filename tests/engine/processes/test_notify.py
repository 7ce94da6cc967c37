"""Messages from a child to its parent, over real sockets."""

import os
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from batuta.processes.notify import Notifier


@pytest.fixture(params=["path", "abstract"])
def inbox(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    path = str(tmp_path / "notify")
    name = path if request.param == "path" else f"@{path}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(path if request.param == "path" else f"\0{path}")
        listening.settimeout(60)
        yield name, listening


def test_notifications_follow_the_protocol_of_systemd(inbox: tuple[str, socket.socket]) -> None:
    address, listening = inbox
    notifier = Notifier.from_environment({"NOTIFY_SOCKET": address})
    assert notifier.ready()
    assert notifier.alive()
    assert notifier.status("3 loops,\n1 late")
    assert notifier.stopping()
    assert notifier.stopping(within=timedelta(seconds=40))
    said = [listening.recv(4096).decode() for _ in range(5)]
    assert said[:3] == ["READY=1", "WATCHDOG=1", "STATUS=3 loops, 1 late"]
    assert said[3:] == ["STOPPING=1", "STOPPING=1\nEXTEND_TIMEOUT_USEC=40000000"]


@pytest.mark.parametrize("env", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1"}])
def test_notifier_without_a_socket_sends_nothing(env: dict[str, str]) -> None:
    notifier = Notifier.from_environment(env)
    assert not any([notifier.ready(), notifier.alive(), notifier.stopping(), notifier.status("well")])


@pytest.mark.parametrize("address", ["/nowhere/at/all", "/with\0null", "@nobody-has-this-name", "/" + "x" * 300])
def test_missing_socket_is_not_an_error(address: str) -> None:
    assert not Notifier.from_environment({"NOTIFY_SOCKET": address}).alive()


def test_parent_that_reads_nothing_does_not_block_the_child(inbox: tuple[str, socket.socket]) -> None:
    notifier = Notifier.from_environment({"NOTIFY_SOCKET": inbox[0]})
    # More datagrams than an inbox holds. A blocking send would never return.
    assert not all(notifier.alive() for _ in range(10_000))


def test_keep_alive_is_due_twice_within_the_limit() -> None:
    notifier = Notifier.from_environment({"NOTIFY_SOCKET": "/s", "WATCHDOG_USEC": "30000000"})
    assert notifier.watchdog_limit == timedelta(seconds=30)
    assert notifier.watchdog_every == timedelta(seconds=15)


@pytest.mark.parametrize("limit", ["", "0", "-5", "soon", "٣", "9" * 30, "9" * 5000])
def test_invalid_limit_requires_no_keep_alive(limit: str) -> None:
    notifier = Notifier.from_environment({"NOTIFY_SOCKET": "/s", "WATCHDOG_USEC": limit})
    assert (notifier.watchdog_limit, notifier.watchdog_every) == (None, None)


def test_limit_of_another_process_is_ignored() -> None:
    env = {"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": str(os.getpid())}
    assert Notifier.from_environment(env).watchdog_limit == timedelta(seconds=1)
    assert Notifier.from_environment(env, pid=os.getpid() + 1).watchdog_limit is None
