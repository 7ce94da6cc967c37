"""Sign-in of a browser in production: a page for the token, a session that foreign pages cannot use, and sign-out."""

import re
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx2
import pytest

from batuta.access import LASTS, Scope, Sessions, mint
from batuta.kernel.clock import SystemClock
from batuta.testing import FakeClock
from tests.julia.web.test_api import TOKEN, Julia, is_problem, open_julia

BROWSER = {"Accept": "text/html,application/xhtml+xml"}
OURS = {**BROWSER, "Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8000"}
THEIRS = {**BROWSER, "Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}


@pytest.fixture
async def julia(julia_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(julia_url, APP_ENV="production", SECRET_KEY="s" * 32)
    yield opened
    await opened.work.close()


async def narrow(julia: Julia) -> tuple[str, str]:
    token, text = mint("painel", [Scope.READ], by="ana", now=julia.work.clock.now(), chance=lambda n: "ab" * n)
    await julia.work.tokens.keep(token)
    return token.id, text


async def sign_in(client: httpx2.AsyncClient, token: str, **more: str) -> httpx2.Response:
    return await client.post("/painel/entrar", data={"token": token, **more}, headers=OURS)


def csrf_token_in(page: str) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', page)
    assert found is not None
    return found[1]


async def test_browser_without_a_session_is_redirected_to_sign_in_and_back(julia: Julia) -> None:
    async with julia.client() as client:
        led = await client.get("/painel/execucoes?situacao=error", headers=BROWSER)
        assert (led.status_code, led.headers["location"]) == (
            303,
            "/painel/entrar?para=%2Fpainel%2Fexecucoes%3Fsituacao%3Derror",
        )
        door = await client.get(led.headers["location"], headers=BROWSER)
        assert door.status_code == 200
        assert 'type="password"' in door.text
        entered = await sign_in(client, TOKEN, para="/painel/execucoes?situacao=error")
        assert (entered.status_code, entered.headers["location"]) == (303, "/painel/execucoes?situacao=error")
        page = await client.get(entered.headers["location"], headers=BROWSER)
        assert page.status_code == 200
        assert "Sair" in page.text


async def test_program_gets_a_problem_instead_of_a_redirect(julia: Julia) -> None:
    assert is_problem(await julia.ask("GET", "/painel"), 401, "unauthorised")


async def test_cookie_is_http_only_and_same_site(julia: Julia) -> None:
    async with julia.client() as client:
        cookie = (await sign_in(client, TOKEN)).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/" in cookie
    assert f"max-age={int(LASTS.total_seconds())}" in cookie
    assert TOKEN.lower() not in cookie
    async with julia.client(base="https://127.0.0.1:8000") as client:
        assert "secure" in (await sign_in(client, TOKEN)).headers["set-cookie"].lower()
    async with julia.client() as client:
        behind = await client.post(
            "/painel/entrar", data={"token": TOKEN}, headers={**OURS, "X-Forwarded-Proto": "https"}
        )
        assert "secure" in behind.headers["set-cookie"].lower()


@pytest.mark.parametrize("given", ["", "wrong", TOKEN + "x", "bat_" + "0" * 12 + "_" + "0" * 48, "\x00", "é" * 600])
async def test_wrong_token_opens_nothing_and_is_not_repeated(julia: Julia, given: str) -> None:
    async with julia.client() as client:
        refused = await sign_in(client, given)
        assert refused.status_code == 401
        assert "set-cookie" not in refused.headers
        assert "não existe" in refused.text
        assert not given.strip("\x00") or given not in refused.text
        english = await client.post("/painel/entrar?lang=en", data={"token": given}, headers=OURS)
        assert "does not exist" in english.text


async def test_session_has_the_scopes_of_its_token_and_ends_with_it(julia: Julia) -> None:
    id, text = await narrow(julia)
    async with julia.client() as client:
        await sign_in(client, text)
        page = await client.get("/painel", headers=BROWSER)
        proof = {"X-CSRF-Token": csrf_token_in(page.text), **OURS}
        assert is_problem(await client.post("/jobs/conta", headers={**proof, "Accept": "*/*"}), 403, "forbidden")
        await julia.work.tokens.revoke(id, by="ana", now=julia.work.clock.now())
        assert (await client.get("/painel", headers=BROWSER)).status_code == 303


async def test_request_with_effects_needs_the_csrf_token(julia: Julia) -> None:
    async with julia.client() as client:
        await sign_in(client, TOKEN)
        proof = csrf_token_in((await client.get("/painel", headers=BROWSER)).text)
        bare = await client.post("/jobs/conta", headers={"Sec-Fetch-Site": "same-origin"})
        assert is_problem(bare, 403, "foreign_page")
        wrong = await client.post("/jobs/conta", headers={"X-CSRF-Token": "0" * 64})
        assert is_problem(wrong, 403, "foreign_page")
        theirs = await client.post("/jobs/conta", headers={"X-CSRF-Token": proof, **THEIRS, "Accept": "*/*"})
        assert is_problem(theirs, 403, "foreign_page")
        old = await client.post("/jobs/conta", headers={"X-CSRF-Token": proof, "Origin": "https://evil.example"})
        assert is_problem(old, 403, "foreign_page")
        ours = await client.post("/jobs/conta", headers={"X-CSRF-Token": proof, "Sec-Fetch-Site": "same-origin"})
        assert ours.status_code == 200
        as_form = await client.post("/jobs/conta", data={"csrf": proof}, headers={"Origin": "http://127.0.0.1:8000"})
        assert as_form.status_code == 200


async def test_csrf_token_of_one_session_is_invalid_in_another(julia: Julia) -> None:
    async with julia.client() as mine, julia.client() as other:
        await sign_in(mine, TOKEN)
        await sign_in(other, TOKEN)
        proof = csrf_token_in((await other.get("/painel", headers=BROWSER)).text)
        assert is_problem(await mine.post("/jobs/conta", headers={"X-CSRF-Token": proof}), 403, "foreign_page")


async def test_signed_out_session_stays_ended_even_with_its_old_cookie(julia: Julia) -> None:
    async with julia.client() as client:
        await sign_in(client, TOKEN)
        kept = client.cookies["batuta_session"]
        page = await client.get("/painel", headers=BROWSER)
        assert (await client.post("/painel/sair", headers=THEIRS, data={"csrf": "x"})).status_code == 403
        out = await client.post("/painel/sair", headers=OURS, data={"csrf": csrf_token_in(page.text)})
        assert (out.status_code, out.headers["location"]) == (303, "/painel/entrar")
        assert "batuta_session" not in client.cookies
        again = await client.get("/painel", headers={**BROWSER, "Cookie": f"batuta_session={kept}"})
        assert again.status_code == 303
        late = await client.post("/painel/sair", headers=OURS)  # the session was already over
        assert (late.status_code, late.headers["location"]) == (303, "/painel/entrar?para=%2Fpainel")


async def test_foreign_page_cannot_sign_a_browser_in(julia: Julia) -> None:
    async with julia.client() as client:
        refused = await client.post("/painel/entrar", data={"token": TOKEN}, headers=THEIRS)
    assert refused.status_code == 403
    assert "set-cookie" not in refused.headers


@pytest.mark.parametrize(
    "to",
    ["//evil.example", "https://evil.example", "/painel//evil.example", "/painel/../x", "/jobs", "\\evil", "/painel\r\nX: y",
     "/painel?x=//evil.example", "javascript:alert(1)"],
)  # fmt: skip
async def test_sign_in_redirects_only_to_own_pages(julia: Julia, to: str) -> None:
    async with julia.client() as client:
        assert (await sign_in(client, TOKEN, para=to)).headers["location"] == "/painel"


async def test_forged_cookie_is_refused(julia: Julia) -> None:
    async with julia.client() as client:
        await sign_in(client, TOKEN)
        note = client.cookies["batuta_session"]
    holder, expires, chance, seal = note.split(".")
    for forged in (
        f"{holder}.{int(expires) + 1}.{chance}.{seal}",
        f"{'ab' * 6}.{expires}.{chance}.{seal}",
        f"{holder}.{expires}.{chance}.{'0' * 64}",
        Sessions("another key").begin("API_TOKEN", now=SystemClock().now(), chance="ab" * 16),
        "x" * 5000,
        "...",
    ):
        answer = await julia.ask("GET", "/jobs", headers={"Cookie": f"batuta_session={forged}"})
        assert answer.status_code == 401, forged


def test_session_expires(clock: FakeClock) -> None:
    sessions = Sessions("key")
    note = sessions.begin("API_TOKEN", now=clock.now(), chance="ab" * 16)
    assert sessions.find(note, now=clock.now() + LASTS - timedelta(seconds=2)) is not None
    assert sessions.find(note, now=clock.now() + LASTS) is None


async def test_new_secret_key_ends_every_session(julia: Julia, julia_url: str) -> None:
    async with julia.client() as client:
        await sign_in(client, TOKEN)
        note = client.cookies["batuta_session"]
    other = await open_julia(julia_url, APP_ENV="production", SECRET_KEY="t" * 32)
    assert (await other.ask("GET", "/jobs", headers={"Cookie": f"batuta_session={note}"})).status_code == 401
    await other.work.close()
