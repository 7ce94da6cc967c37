"""The API routes for tasks: the status, which omits the task's content, and cancellation with an audit entry."""

import httpx2

from batuta import Batuta, Limits
from batuta.config import EngineSettings, load_settings
from batuta.web import create_api

DEVELOPMENT = {"APP_ENV": "development"}


async def test_task_is_shown_without_its_content_and_cancelled_once(work_url: str) -> None:
    work = Batuta(work_url, settings=load_settings(EngineSettings, DEVELOPMENT))

    @work.task()
    async def greet(name: str) -> None: ...

    api = create_api(work, work.settings)
    transport = httpx2.ASGITransport(app=api, client=("127.0.0.1", 1234))
    async with work, httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        handle = await greet.options(delay=3600, tags=["mail"]).enqueue("Ana")
        shown = (await client.get(f"/tasks/{handle.id}")).json()
        assert (shown["status"], shown["name"], shown["tags"]) == ("queued", "greet", ["mail"])
        assert "Ana" not in str(shown)
        cancelled = await client.post(f"/tasks/{handle.id}/cancel", params={"reason": "not needed"})
        assert (cancelled.status_code, cancelled.json()["cancelled"]) == (200, True)
        assert (await client.get(f"/tasks/{handle.id}")).json()["status"] == "cancelled"
        assert (await client.post(f"/tasks/{handle.id}/cancel")).status_code == 409
        for unknown in ("0196b0a8-0000-7000-8000-000000000000", "nothing"):
            assert (await client.get(f"/tasks/{unknown}")).status_code == 404
            assert (await client.post(f"/tasks/{unknown}/cancel")).status_code == 404


async def test_tasks_are_found_by_tag_and_key_and_say_which_limit_they_wait_for(work_url: str) -> None:
    work = Batuta(work_url, settings=load_settings(EngineSettings, DEVELOPMENT))

    @work.task(per_key=Limits(by="to", rate="1/hour"))
    async def greet(to: str) -> None: ...

    api = create_api(work, work.settings)
    transport = httpx2.ASGITransport(app=api, client=("127.0.0.1", 1234))
    async with work, httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        first = await greet.options(tags=["mail"]).enqueue("Ana")
        await work.work_once("default", 10)
        second = await greet.options(tags=["mail"], key="welcome-7").enqueue("Ana")
        await work.work_once("default", 10)
        found = (await client.get("/tasks", params={"tag": "mail"})).json()["tasks"]
        assert [(each["id"], each["status"]) for each in found] == [(second.id, "queued"), (first.id, "complete")]
        assert [each["waits_for"] is None for each in found] == [False, True]
        (keyed,) = (await client.get("/tasks", params={"key": "welcome-7", "tag": "mail"})).json()["tasks"]
        shown = (await client.get(f"/tasks/{second.id}")).json()
        assert keyed["waits_for_code"] == shown["waits_for_code"] is not None
        page = await client.get(f"/painel/filas/default/{second.id}", headers={"Accept-Language": "en"})
        assert "Why the item is waiting" in page.text
        assert (await client.get("/tasks")).status_code == 409
        assert (await client.get("/tasks", params={"tag": "mail", "queue": "mial"})).status_code == 404
