"""Signing in with a browser in production: a page for entering the token, a session that pages of other sites cannot
use, and signing out.
"""

import re
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx2
import pytest

from batuta import access
from batuta.access import SESSION_LENGTH, Scope, Sessions, Token, mint
from batuta.kernel.clock import SystemClock
from batuta.testing import FakeClock
from tests.julia.web.test_api import TOKEN, Julia, is_problem, open_julia

BROWSER = {"Accept": "text/html,application/xhtml+xml"}
OURS = {**BROWSER, "Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8000"}
THEIRS = {**BROWSER, "Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}


@pytest.fixture
async def julia(julia_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(julia_url, APP_ENV="production", SECRET_KEY="s" * 32, BATUTA_HTTPS="false")
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
    assert f"max-age={int(SESSION_LENGTH.total_seconds())}" in cookie
    assert TOKEN.lower() not in cookie
    assert "secure" not in cookie


async def test_https_is_decided_by_a_setting_and_not_by_a_header(julia: Julia, julia_url: str) -> None:
    async with julia.client() as client:
        forged = await client.post(
            "/painel/entrar", data={"token": TOKEN}, headers={**OURS, "X-Forwarded-Proto": "https"}
        )
    assert "secure" not in forged.headers["set-cookie"].lower()
    assert "strict-transport-security" not in forged.headers
    closed = await open_julia(julia_url, APP_ENV="production", SECRET_KEY="s" * 32)
    async with closed.client() as client:
        answer = await client.post("/painel/entrar", data={"token": TOKEN}, headers=OURS)
    assert answer.headers["set-cookie"].startswith("__Host-batuta_session=")
    assert "secure" in answer.headers["set-cookie"].lower()
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    await closed.work.close()


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


async def test_page_of_another_origin_may_link_but_not_read(julia: Julia) -> None:
    async with julia.client() as client:
        await sign_in(client, TOKEN)
        script = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}
        assert is_problem(await client.get("/jobs", headers=script), 403, "foreign_page")
        link = {**BROWSER, "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}
        assert (await client.get("/painel", headers=link)).status_code == 200
        own = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
        assert (await client.get("/jobs", headers=own)).status_code == 200


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


async def test_every_session_may_sign_out_and_stays_ended_in_every_process(julia: Julia, julia_url: str) -> None:
    _, text = await narrow(julia)
    async with julia.client() as client:
        await sign_in(client, text)
        kept = client.cookies["batuta_session"]
        page = await client.get("/painel", headers=BROWSER)
        out = await client.post("/painel/sair", headers=OURS, data={"csrf": csrf_token_in(page.text)})
        assert out.status_code == 303
    other = await open_julia(julia_url, APP_ENV="production", SECRET_KEY="s" * 32, BATUTA_HTTPS="false")
    answer = await other.ask("GET", "/jobs", headers={"Cookie": f"batuta_session={kept}"})
    assert answer.status_code == 401
    await other.work.close()


async def test_cookie_of_a_narrow_token_says_nothing_about_api_token(julia: Julia, julia_url: str) -> None:
    """If SECRET_KEY is missing, which only development permits, session cookies are signed with a random key and not
    with a token. A cookie that was signed with the API token is refused.
    """
    note = Sessions(TOKEN).begin("API_TOKEN", now=julia.work.clock.now(), chance="ab" * 16)
    open_one = await open_julia(julia_url, APP_ENV="development")
    async with open_one.client("192.0.2.7") as client:
        assert (await client.get("/jobs", headers={"Cookie": f"batuta_session={note}"})).status_code == 401
    await open_one.work.close()


def test_session_cannot_outlive_its_length(clock: FakeClock) -> None:
    sessions = Sessions("key")
    late = sessions.begin("API_TOKEN", now=clock.now() + timedelta(days=3650), chance="ab" * 16)
    assert sessions.find(late, now=clock.now()) is None


async def test_expired_token_and_foreign_network_are_refused(julia: Julia) -> None:
    now = julia.work.clock.now()
    old, expired = mint(
        "old", [Scope.READ], by="ana", now=now, chance=lambda n: "cd" * n, expires_at=now - timedelta(seconds=1)
    )
    near, bound = mint("near", [Scope.READ], by="ana", now=now, chance=lambda n: "ef" * n, networks=["192.0.2.0/24"])
    await julia.work.tokens.keep(old)
    await julia.work.tokens.keep(near)
    assert is_problem(
        await julia.ask("GET", "/jobs", headers={"Authorization": f"Bearer {expired}"}), 401, "wrong_token"
    )
    asked = {"Authorization": f"Bearer {bound}"}
    assert is_problem(await julia.ask("GET", "/jobs", headers=asked), 403, "foreign_network")
    # A header of the client has no effect, because no proxy is trusted.
    forged = {**asked, "X-Forwarded-For": "192.0.2.9"}
    assert is_problem(await julia.ask("GET", "/jobs", headers=forged), 403, "foreign_network")
    async with julia.client("192.0.2.7") as client:
        assert (await client.get("/jobs", headers=asked)).status_code == 200
    found = await julia.work.tokens.find(near.id)
    assert found is not None
    assert found.last_used_at is not None


async def test_only_a_trusted_proxy_names_the_client(julia_url: str) -> None:
    opened = await open_julia(
        julia_url, APP_ENV="production", SECRET_KEY="s" * 32, BATUTA_TRUSTED_PROXIES="127.0.0.1, 10.0.0.0/8"
    )
    address = opened.api.state.batuta.clients.address
    headers = [(b"x-forwarded-for", b"203.0.113.9, 198.51.100.4, 10.1.2.3")]
    assert address({"client": ("127.0.0.1", 1), "headers": headers, "type": "http"}) == "198.51.100.4"
    assert address({"client": ("192.0.2.1", 1), "headers": headers, "type": "http"}) == "192.0.2.1"
    wrong = [(b"x-forwarded-for", b"<script>")]
    assert address({"client": ("127.0.0.1", 1), "headers": wrong, "type": "http"}) == "127.0.0.1"
    await opened.work.close()


async def test_client_that_guesses_is_limited_and_known_credentials_continue(julia_url: str) -> None:
    opened = await open_julia(
        julia_url,
        APP_ENV="production",
        SECRET_KEY="s" * 32,
        BATUTA_HTTPS="false",
        BATUTA_REFUSALS_PER_MINUTE="20",
    )
    opened.api.state.batuta.clients._clock = clock = FakeClock()
    good = {"Authorization": f"Bearer {TOKEN}"}
    async with opened.client() as client, opened.client("192.0.2.7") as other:
        assert (await client.get("/jobs", headers=good)).status_code == 200
        guesses = [(await client.get("/jobs", headers={"Authorization": f"Bearer {n}"})).status_code for n in range(40)]
        assert guesses == [401] * 20 + [429] * 20
        assert (await client.get("/jobs", headers=good)).status_code == 200
        assert (await other.get("/jobs", headers={"Authorization": "Bearer x"})).status_code == 401
        limited = await client.get("/jobs", headers={"Authorization": "Bearer x"})
        assert 1 <= int(limited.headers["retry-after"]) <= 60
        await clock.advance(timedelta(minutes=1))
        signs = [(await sign_in(client, f"guess {n}")).status_code for n in range(6)]
        assert signs == [401] * 4 + [429] * 2  # a failed sign-in counts six times
    await opened.work.close()


async def test_clients_with_many_addresses_share_one_limit(julia_url: str) -> None:
    opened = await open_julia(julia_url, APP_ENV="production", SECRET_KEY="s" * 32, BATUTA_REFUSALS_PER_MINUTE="20")
    clients = opened.api.state.batuta.clients
    clients._clock = clock = FakeClock()
    for number in range(20):
        clients.refuse(f"2001:db8::{number:x}", 401, cost=1)
    assert clients.wait("2001:db8::ffff", "guess") > 0  # the same network of one owner
    assert clients.wait("2001:db8:0:1::1", "guess") == 0
    await clock.advance(timedelta(minutes=1))
    for number in range(1_100):  # more addresses than are counted separately; the others are counted together
        clients.refuse(f"10.0.{number // 250}.{number % 250}", 401, cost=1)
    assert clients.wait("192.0.2.9", "guess") > 0
    clients.accept("known")
    assert clients.wait("192.0.2.9", "known") == 0
    await opened.work.close()


async def test_sign_in_takes_the_same_steps_for_known_and_unknown_tokens(
    julia: Julia, monkeypatch: pytest.MonkeyPatch
) -> None:
    id, _ = await narrow(julia)
    steps: list[str] = []
    find, digest = julia.work.tokens.find, access.hash_secret

    async def record_find(id: str) -> Token | None:
        steps.append("find")
        return await find(id)

    def record_digest(secret: str) -> str:
        steps.append("digest")
        return digest(secret)

    monkeypatch.setattr(julia.work.tokens, "find", record_find)
    monkeypatch.setattr(access, "hash_secret", record_digest)
    taken = []
    async with julia.client() as client:
        for given in (f"bat_{id}_{'0' * 48}", f"bat_{'0' * 12}_{'0' * 48}"):
            assert (await sign_in(client, given)).status_code == 401
            taken.append(tuple(steps))
            steps.clear()
    assert taken == [("find", "digest")] * 2


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
    assert sessions.find(note, now=clock.now() + SESSION_LENGTH - timedelta(seconds=2)) is not None
    assert sessions.find(note, now=clock.now() + SESSION_LENGTH) is None


async def test_new_secret_key_ends_every_session(julia: Julia, julia_url: str) -> None:
    async with julia.client() as client:
        await sign_in(client, TOKEN)
        note = client.cookies["batuta_session"]
    other = await open_julia(julia_url, APP_ENV="production", SECRET_KEY="t" * 32, BATUTA_HTTPS="false")
    assert (await other.ask("GET", "/jobs", headers={"Cookie": f"batuta_session={note}"})).status_code == 401
    await other.work.close()
