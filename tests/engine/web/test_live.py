"""Live pages: each view is rendered once for all its readers, and only the parts of the page that changed are sent."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, MutableMapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from jinja2 import Environment

from batuta.config import EngineSettings, load_settings
from batuta.engine.batuta import Batuta
from batuta.errors import StoreTimeout
from batuta.extension import Extension, Screen, Visit
from batuta.stores.sql.queries import query_of
from batuta.testing.clock import FakeClock
from batuta.web import create_api
from batuta.web.live import RESTS, LiveViews, Rendered, ViewKey, live_parts
from batuta.web.panel import stream
from batuta.web.panel.stream import EVENTS
from tests.engine.web.browser.panel import MINUTE, Panel, open_panel

END = query_of(
    "end", "UPDATE job_executions SET status = 'success', finished_at = started_at WHERE id = :id", writes=True
)
TEMPLATE = """{% extends "panel/base.html.j2" %}
{% block main %}<p id="act" data-live>{{ act.form("pause", alvo="all:") }}</p>{% endblock %}
"""
ROOT = Path(__file__).parents[3]
TEMPLATES = (ROOT / "src", ROOT / "app")
LIVE_PART = re.compile(r"<[a-z]+[^<>]*\sdata-live\b")
SECRETS = {"API_TOKEN": "t" * 40, "SECRET_KEY": "s" * 40, "APP_ENV": "production", "BATUTA_HTTPS": "false"}


class Follower:
    """A browser that follows a live page. It reads the ASGI application's stream while the stream is open."""

    def __init__(self, api: FastAPI, path: str, query: str = "", cookie: str = "", authorization: str = "") -> None:
        own = {"accept": EVENTS, "host": "127.0.0.1:8000", "cookie": cookie, "authorization": authorization}
        self._scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "scheme": "http",
            "http_version": "1.1",
            "headers": [(name.encode(), value.encode()) for name, value in own.items() if value],
            "client": ("127.0.0.1", 5000),
            "server": ("127.0.0.1", 8000),
        }
        self._closed = asyncio.Event()
        self._asked = False
        self._messages: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self.task = asyncio.create_task(api(self._scope, self._receive, self._messages.put))

    async def _receive(self) -> dict[str, object]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._closed.wait()
        return {"type": "http.disconnect"}

    async def status(self) -> object:
        return (await asyncio.wait_for(self._messages.get(), 30))["status"]

    async def parts(self) -> dict[str, str]:
        """Wait for the next changed parts of the page and return them."""
        found: dict[str, str] = json.loads((await self.sent()).removeprefix(b"data: "))
        return found

    async def sent(self) -> bytes:
        """Wait for the next message with changed parts and return its bytes."""
        while not (body := (await asyncio.wait_for(self._messages.get(), 30)).get("body", b"")).startswith(b"data: "):
            pass
        return bytes(body)

    def rest(self) -> bytes:
        """Return the bytes that the server has sent but that have not been read yet."""
        return b"".join(self._messages.get_nowait().get("body", b"") for _ in range(self._messages.qsize()))

    async def close(self) -> None:
        self._closed.set()
        await asyncio.wait_for(self.task, 30)


@pytest.fixture
async def panel(tmp_path: Path, work_url: str) -> AsyncIterator[Panel]:
    opened = await open_panel(tmp_path, work_url)
    yield opened
    await opened.work.close()


def views_of(panel: Panel) -> LiveViews:
    return panel.api.state.batuta.live  # type: ignore[no-any-return]


def test_only_changed_parts_are_sent_and_a_list_as_a_whole_if_its_rows_moved() -> None:
    def page(*rows: str, clock: str = "09:00") -> str:
        inside = "".join(f'<tr id="{row[0]}" data-live><td><table><tr></tr></table>{row}</td></tr>' for row in rows)
        return f'<p id="clock" data-live>{clock}</p><table><tbody id="list" data-live-rows>{inside}</tbody></table>'

    first = live_parts(page("a1", "b1"))
    assert set(first.whole()) == {"clock", "list"}
    assert first.whole()["list"].endswith("</tbody>")
    assert set(live_parts(page("a1", "b2")).since(first)) == {"b"}
    assert set(live_parts(page("b1", "a1")).since(first)) == {"list"}
    assert live_parts(page("a1", "b1")).since(first) == {}
    assert live_parts(page("a1", "b1", clock="09:01")).since(first) == {"clock": '<p id="clock" data-live>09:01</p>'}


@pytest.mark.parametrize(
    "file", sorted(str(file.relative_to(ROOT)) for folder in TEMPLATES for file in folder.rglob("*.j2"))
)
def test_a_part_that_may_be_empty_keeps_its_place_on_the_page(file: str) -> None:
    """No part of a live page is inside an ``if`` in its template. A live page only replaces parts that are already in
    the browser, so such a part would appear only after a reload.
    """
    opened: list[str] = []
    begins, found = False, []
    for line, kind, text in Environment(autoescape=True).lex((ROOT / file).read_text()):
        if kind == "name" and begins:
            opened += [text] if text in ("if", "for") else []
            del opened[len(opened) - (text in ("endif", "endfor")) :]
        begins = kind == "block_begin" or (begins and kind == "whitespace")
        found += [line] if opened and kind == "data" and LIVE_PART.search(text) else []
    assert not found


async def test_rendering_rests_between_two_views() -> None:
    clock, began = FakeClock(), []
    views = LiveViews(clock)
    await views.tick()

    async def render() -> Rendered:
        began.append(clock.monotonic())
        await clock.sleep(0.1)
        return Rendered("<p></p>", is_live=True)

    for path in ("/a", "/b"):
        views.join(ViewKey(path, "", frozenset(), "en", has_session=False), render)
    ticking = asyncio.create_task(views.tick())
    while not ticking.done():
        await clock.advance(timedelta(milliseconds=50))
    assert began[1] - began[0] >= 0.1 * (1 + RESTS)


async def test_readers_of_a_view_share_one_rendering_and_get_its_changes(panel: Panel) -> None:
    views = views_of(panel)
    await views.tick()  # no view is open
    first, second = Follower(panel.api, "/painel/tarefas"), Follower(panel.api, "/painel/tarefas", "lang=pt-BR")
    other = Follower(panel.api, "/painel/tarefas", "lang=en")
    assert [await each.status() for each in (first, second, other)] == [200, 200, 200]
    rendered = []
    for view in views._views.values():
        inner = view.render

        async def counting(inner=inner):  # type: ignore[no-untyped-def]
            rendered.append(1)
            return await inner()

        view.render = counting
    await views.tick()
    assert len(rendered) == 2  # one for each language
    assert "falhando" in (await first.parts())["linhas"]
    assert "falhando" in (await second.parts())["linhas"]
    assert "failing" in (await other.parts())["linhas"]
    await views.tick()
    assert len(rendered) == 2  # nothing is due yet
    await panel.keep("broken", MINUTE)
    views.refresh()
    await views.tick()
    changed = await first.parts()
    assert "falhando" not in changed["linhas"]  # the job has another place in the list
    assert await second.parts() == changed
    for each in (first, second, other):
        await each.close()
    assert views.readers == 0
    assert (await views.tick()).until is None  # type: ignore[union-attr]


async def test_a_stream_ends_when_the_server_stops(panel: Panel) -> None:
    views = views_of(panel)
    await views.tick()
    follower = Follower(panel.api, "/painel")
    await follower.status()
    panel.api.state.batuta.draining.set()
    await asyncio.wait_for(follower.task, 30)
    assert views.readers == 0
    later = Follower(panel.api, "/painel")
    assert await later.status() == 204
    await later.close()


async def test_a_page_with_personal_data_is_not_followed(panel: Panel) -> None:
    await views_of(panel).tick()
    follower = Follower(panel.api, "/painel", "mostrar=dados")
    assert await follower.status() == 204
    await follower.close()
    assert "data-refresh" not in (await panel.ask("/painel?mostrar=dados")).text


async def test_a_page_that_changes_no_more_sends_its_last_parts_and_ends(panel: Panel) -> None:
    id, views = await panel.keep("going", MINUTE, "running"), views_of(panel)
    await views.tick()
    follower = Follower(panel.api, f"/painel/execucoes/{id}")
    await follower.status()
    await views.tick()
    assert "#i-running" in (await follower.parts())["historia"]
    await panel.work.database.run(END, id=id)
    views.refresh()
    await views.tick()
    assert "#i-running" not in (await follower.parts())["historia"]
    await asyncio.wait_for(follower.task, 30)
    assert views.readers == 0


async def test_without_the_loop_pages_fetch_themselves(panel: Panel) -> None:
    follower = Follower(panel.api, "/painel")
    assert await follower.status() == 204
    await follower.close()
    html = (await panel.ask("/painel")).text
    assert 'data-refresh="20"' in html
    assert re.search(r"<noscript><meta http-equiv=.refresh.", html)


async def test_shared_parts_carry_the_csrf_token_of_each_session_and_end_with_it(
    tmp_path: Path, work_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.html.j2").write_text(TEMPLATE)

    async def read(visit: Visit) -> dict[str, object]:
        if "slow" in visit.query:
            raise StoreTimeout(where="file.db", why="the statement took too long")
        return {}

    screen = Screen(path="/own", title="panel.now", template="own.html.j2", read=read)
    settings = load_settings(EngineSettings, {"DATABASE_URL": work_url, **SECRETS})
    extension = Extension(templates=[tmp_path], screens=[screen])
    work = Batuta(work_url, settings=settings, extension=extension, migrate=True)
    api = create_api(work, settings)
    transport = httpx2.ASGITransport(app=api, client=("127.0.0.1", 5000))
    async with work, httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as browser:
        browser.headers["Accept"] = "text/html"
        proofs, followers, notes = [], [], []
        await api.state.batuta.live.tick()
        for _ in range(2):
            browser.cookies.clear()
            await browser.post("/painel/entrar", data={"token": "t" * 40})
            proofs.append(re.findall(r'name="csrf" value="(\w+)"', (await browser.get("/painel/own")).text)[0])
            cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
            notes.append(browser.cookies["batuta_session"])
            followers.append(Follower(api, "/painel/own", cookie=cookie))
        for follower in followers:
            assert await follower.status() == 200
        await api.state.batuta.live.tick()
        sent = [re.findall(r'name="csrf" value="(\w+)"', (await each.parts())["act"]) for each in followers]
        assert sent == [[proof] for proof in proofs]
        assert len(set(proofs)) == 2
        slow = await browser.get("/painel/own?slow=1")
        assert slow.status_code == 503
        assert "A página demorou demais" in slow.text
        await browser.post("/painel/sair", data={"csrf": proofs[-1]})
        await asyncio.wait([followers[-1].task], timeout=30)
        assert followers[-1].task.done()  # the stream ends with its session
        first = api.state.batuta.sessions.find(notes[0], now=work.clock.now())
        # another process would end the session in the same way
        await work.tokens.end_session(first.chance, until=first.expires_at)
        monkeypatch.setattr(stream, "CHECK_EVERY", 0.1)
        for _ in range(1500):  # the end is noticed at the next check, although the page keeps changing
            for reader in [each for view in api.state.batuta.live._views.values() for each in view.readers]:
                reader.put({"act": "changed"})
            await asyncio.wait([followers[0].task], timeout=0.02)
            if followers[0].task.done():
                break
        assert followers[0].task.done()
        assert (await Follower(api, "/painel/own").status()) == 401
