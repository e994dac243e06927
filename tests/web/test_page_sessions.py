"""Signing in at the web page: a cookie in the place of a key, with its scopes, while the key lives."""

from __future__ import annotations

import asyncio
import gzip
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from overspill import wire
from overspill.wire import Code, Path, Scope
from overspill_service.tenants.keys import hash_key, new_key
from overspill_service.web.page_sessions import CODE_SECONDS, COOKIE, SIGN_INS_BURST

from tests.web.conftest import Api, id_of, path_of, problem
from tests.web.test_bound_keys import Keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import ClientResponse

LOG = b"one line\n"


class Browser:
    """What a browser keeps between requests: the cookie, and in the page the token."""

    def __init__(self, api: Api) -> None:
        self.api, self.cookie, self.signed_in = api, "", wire.SignedIn(tenant="", scopes=[])

    async def sign_in(self, **given: str) -> ClientResponse:
        response = await self.api.send("POST", Path.PAGE_SESSION, json=given)
        if response.status == 200:
            self.signed_in = msgspec.json.decode(await response.read(), type=wire.SignedIn)
            self.cookie = response.headers["Set-Cookie"].split(";")[0]
        return response

    async def send(
        self, method: str, path: str, *, token: str | None = None, **kwargs: Any
    ) -> ClientResponse:
        headers = {"Cookie": self.cookie} if self.cookie else {}
        if token != "":
            headers[wire.Header.PAGE_TOKEN] = self.signed_in.token if token is None else token
        return await self.api.send(method, path, headers=headers, **kwargs)


async def key_of(api: Api, *scopes: Scope, **bound: Any) -> str:
    return (await Keys(api).key(*scopes, **bound))["Authorization"].removeprefix("Bearer ")


@pytest.fixture
async def browser(api: Api) -> Browser:
    """One that is signed in with a key that may read and delete."""
    writer = await key_of(api, Scope.WRITE)  # before any request, so that none finds the service open
    await api.put(LOG, Authorization=f"Bearer {writer}")
    made = Browser(api)
    assert (await made.sign_in(key=await key_of(api, Scope.READ, Scope.DELETE))).status == 200
    return made


async def test_a_session_has_the_scopes_of_its_key(browser: Browser) -> None:
    shown = await (await browser.send("GET", Path.PAGE_SESSION)).json()
    read = await browser.send("GET", path_of(LOG) + "/content")
    forbidden = await browser.send("PATCH", path_of(LOG), json={"ttl": 60})
    deleted = await browser.send("DELETE", path_of(LOG))

    assert (shown["tenant"], shown["scopes"]) == ("default", ["delete", "read"])
    assert (read.status, forbidden.status, deleted.status) == (200, 403, 200)


async def test_the_cookie_is_for_this_host_and_no_script(browser: Browser, api: Api) -> None:
    response = await browser.sign_in(key=await key_of(api, Scope.READ))
    attributes = response.headers["Set-Cookie"].split("; ")[1:]

    assert sorted(each.lower() for each in attributes) == [
        "httponly", "max-age=43200", "path=/", "samesite=strict",
    ]  # fmt: skip
    assert "ovs_" not in str(response.headers) + await response.text()


async def test_a_tab_reads_nothing_with_the_session_of_another_tab(browser: Browser, api: Api) -> None:
    """They share the cookie. The token says whose tab it is: no tenant's name stands over another's data."""
    other = Browser(api)
    await other.sign_in(key=await key_of(api, Scope.READ))
    mine = await browser.send("GET", path_of(LOG))
    foreign = await browser.send("GET", path_of(LOG), token=other.signed_in.token)

    assert (mine.status, foreign.status) == (200, 401)


async def test_nothing_is_changed_without_the_sessions_token(browser: Browser, api: Api) -> None:
    other = Browser(api)
    await other.sign_in(key=await key_of(api, Scope.READ, Scope.DELETE))
    for token in ("", "x", other.signed_in.token, "\xff"):
        refused = await browser.send("DELETE", path_of(LOG), token=token)
        assert (refused.status, (await problem(refused)).code) == (403, Code.FORBIDDEN)

    assert (await browser.send("GET", path_of(LOG), token="")).status == 200


async def test_a_session_ends_with_its_key(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overspill_service.web.authentication.KEY_CACHE_SECONDS", 0.0)
    browser = Browser(api)
    await browser.sign_in(key=await key_of(api, Scope.READ))
    assert (await browser.send("GET", Path.PAGE_SESSION)).status == 200
    for record in await api.service.archive.keyring.keys():
        await api.service.archive.keyring.revoke(record.hash)
    ended = await browser.send("GET", path_of(LOG))

    assert (ended.status, (await problem(ended)).code) == (401, Code.UNAUTHORIZED)


async def test_a_request_of_a_session_counts_as_a_use_of_its_key(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.web.key_uses.USE_SECONDS", 0.0)
    browser, archive = Browser(api), api.service.archive
    key = hash_key(given := await key_of(api, Scope.READ))
    await browser.sign_in(key=given)
    await api.service.authenticator.uses.report()
    signed_in = (await archive.catalog.uses())[key]
    await browser.send("GET", path_of(LOG))
    await api.service.authenticator.uses.report()

    assert (await archive.catalog.uses())[key] > signed_in


async def test_a_session_reads_its_own_sessions_only_as_its_key_does(api: Api) -> None:
    await api.put(LOG, Overspill_Session="mine")
    await api.put(b"other\n", Overspill_Session="theirs")
    browser = Browser(api)
    await browser.sign_in(key=await key_of(api, Scope.READ, session="mine"))

    assert (await browser.send("GET", path_of(LOG))).status == 200
    assert (await browser.send("GET", path_of(b"other\n"))).status == 404


FORGED = [
    lambda cookie: cookie[:-2],
    lambda cookie: cookie.swapcase(),
    lambda cookie: cookie.replace(".", ".a"),
    lambda cookie: COOKIE + "=" + cookie.split(".")[1],
    lambda cookie: COOKIE + "=eyJ9." + cookie.split(".")[1],
    lambda _: COOKIE + "=.",
    lambda _: COOKIE + "=" + "a" * 5000,
    lambda _: COOKIE + "=" + new_key(),
]


@pytest.mark.parametrize("forge", FORGED)
async def test_a_forged_session_is_none(browser: Browser, forge: Callable[[str], str]) -> None:
    browser.cookie = forge(browser.cookie)
    refused = await browser.send("GET", path_of(LOG))

    assert (refused.status, (await problem(refused)).code) == (401, Code.UNAUTHORIZED)


async def test_a_session_ends_after_its_time(start_api: Callable[..., Any]) -> None:
    now = [1_800_000_000.0]
    api: Api = await start_api(clock=lambda: now[0])
    browser = Browser(api)
    await browser.sign_in(key=await key_of(api, Scope.READ))
    until = browser.signed_in.until
    assert until is not None
    now[0] = until.timestamp() - 1
    alive = await browser.send("GET", Path.PAGE_SESSION)
    now[0] += 2
    ended = await browser.send("GET", Path.PAGE_SESSION)

    assert (alive.status, ended.status) == (200, 401)


async def test_a_code_signs_in_once(api: Api) -> None:
    headers = {"Authorization": f"Bearer {await key_of(api, Scope.READ)}"}
    made = await (await api.send("POST", Path.PAGE_CODE, headers=headers)).json()
    first, second = [Browser(api) for _ in range(2)]

    assert (await first.sign_in(code=made["code"])).status == 200
    assert (await second.sign_in(code=made["code"])).status == 401
    assert first.signed_in.scopes == [Scope.READ]
    first.cookie = f"{COOKIE}={made['code']}"
    assert (await first.send("GET", Path.PAGE_SESSION)).status == 401


async def test_a_code_ends_after_two_minutes(start_api: Callable[..., Any]) -> None:
    now = [1_800_000_000.0]
    api: Api = await start_api(clock=lambda: now[0])
    headers = {"Authorization": f"Bearer {await key_of(api, Scope.READ)}"}
    made = await (await api.send("POST", Path.PAGE_CODE, headers=headers)).json()
    now[0] += CODE_SECONDS + 1

    assert (await Browser(api).sign_in(code=made["code"])).status == 401


@pytest.mark.parametrize("given", [{}, {"key": "x"}, {"key": new_key()}, {"code": "x"}, {"key": "\ud800"}])
async def test_what_is_no_key_signs_nobody_in(api: Api, given: dict[str, str]) -> None:
    await key_of(api, Scope.READ)
    response = await Browser(api).sign_in(**given)

    assert response.status in (401, 422)
    assert "Set-Cookie" not in response.headers


async def test_signing_out_takes_the_cookie_back(browser: Browser) -> None:
    response = await browser.send("DELETE", Path.PAGE_SESSION)

    assert response.status == 204
    assert re.match(rf'{COOKIE}=(""|);.*Max-Age=0', response.headers["Set-Cookie"])


async def test_a_cookie_that_was_copied_is_worth_nothing_once_its_session_is_signed_out(
    start_api: Callable[..., Any], tmp_path: Any
) -> None:
    settings = {"store": f"file://{tmp_path}/objects", "catalog": "sqlite:", "data": tmp_path}
    first, second = [await start_api(**settings) for _ in range(2)]
    browser, other = Browser(first), Browser(first)
    key = await key_of(first, Scope.READ)
    for each in (browser, other):
        await each.sign_in(key=key)
    assert (await browser.send("GET", "/v1/captures")).status == 200
    await browser.send("DELETE", Path.PAGE_SESSION)

    assert [(await each.send("GET", "/v1/captures")).status for each in (browser, other)] == [401, 200]
    browser.api = second
    assert (await browser.send("GET", "/v1/captures")).status == 401
    assert (await browser.send("POST", Path.PAGE_CODE)).status == 401


async def test_a_session_is_signed_out_everywhere_within_seconds(
    start_api: Callable[..., Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"store": f"file://{tmp_path}/objects", "catalog": "sqlite:", "data": tmp_path}
    first, second = [await start_api(**settings) for _ in range(2)]
    browser = Browser(first)
    await browser.sign_in(key=await key_of(first, Scope.READ))
    monkeypatch.setattr("overspill_service.web.page_sessions.TRUST_SECONDS", 0.0)
    browser.api = second
    assert (await browser.send("GET", "/v1/captures")).status == 200
    browser.api = first
    await browser.send("DELETE", Path.PAGE_SESSION)
    browser.api = second

    assert (await browser.send("GET", "/v1/captures")).status == 401


async def test_a_tenant_signs_in_so_often_and_no_more(api: Api) -> None:
    key, other = await key_of(api, Scope.READ), Browser(api)
    headers, signed_in = {"Authorization": f"Bearer {key}"}, 0
    async with asyncio.timeout(60):
        while (refused := await other.sign_in(key=key)).status == 200:
            signed_in += 1  # on a busy machine more than the burst: each second allows one more
        while (code := await api.send("POST", Path.PAGE_CODE, headers=headers)).status == 201:
            pass

    assert signed_in >= SIGN_INS_BURST
    assert (refused.status, refused.headers["Retry-After"], code.status) == (429, "1", 429)
    assert (await other.send("GET", "/v1/captures")).status == 200


async def test_where_nobody_needs_a_key_nobody_signs_in(api: Api) -> None:
    shown = await (await api.get(Path.PAGE_SESSION)).json()

    assert (shown["tenant"], shown["key"], shown["token"], shown["until"]) == ("default", "", "", None)
    assert len(shown["scopes"]) == len(Scope)


async def test_replicas_and_restarts_keep_sessions(start_api: Callable[..., Any], tmp_path: Any) -> None:
    settings = {"store": f"file://{tmp_path}/objects", "catalog": "sqlite:", "data": tmp_path}
    first, second = [await start_api(**settings) for _ in range(2)]
    browser = Browser(first)
    await browser.sign_in(key=await key_of(first, Scope.READ))
    browser.api = second

    assert (await browser.send("GET", Path.PAGE_SESSION)).status == 200


async def test_the_page_comes_with_a_strict_policy_and_only_its_own_files(api: Api) -> None:
    page = await api.get("/")
    text = await page.text()
    policy = page.headers["Content-Security-Policy"]

    assert page.content_type == "text/html"
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", text)
    for name in ("nothing.js", "index.html", "..%2fpage.py", "%2e%2e", ".", "__init__.py"):
        assert (await api.get(f"/page/{name}")).status == 404
    for name in re.findall(r'(?:src|href)="page/([^"]+)"', text):
        found = await api.get(f"/page/{name}")
        assert found.status == 200
        assert "immutable" in found.headers["Cache-Control"]


async def test_the_page_is_small_before_it_shows_anything_and_as_a_whole(api: Api) -> None:
    """As it goes over the network: the chart library comes later."""

    async def weight(path: str) -> tuple[int, str]:
        found = await api.get(path, headers={"Accept-Encoding": "gzip"})
        return int(found.headers["Content-Length"]), gzip.decompress(await found.read()).decode()

    size, text = await weight("/")
    first = re.findall(r'(?:src|href)="page/([^"]+)"', text)
    sizes, pending = {}, set(first)
    while pending:
        name = pending.pop()
        sizes[name], script = await weight(f"/page/{name}")
        pending |= set(re.findall(r'"\./([\w.-]+\.js)"', script)) - sizes.keys()
    later = {name for name in sizes if name.startswith("plot-")}
    plain = await api.get(f"/page/{first[0]}", headers={"Accept-Encoding": "identity"})

    assert len(later) == 1
    assert size + sum(sizes[name] for name in sizes.keys() - later) <= 60_000
    assert size + sum(sizes.values()) <= 200_000
    assert "Content-Encoding" not in plain.headers


async def test_the_key_of_the_tenants_file_signs_in_too(start_api: Callable[..., Any], tmp_path: Any) -> None:
    key, file = new_key(), tmp_path / "tenants.toml"
    file.write_text(f'[[tenants]]\nname = "acme"\nkeys = [{{hash = "{hash_key(key)}", scopes = ["read"]}}]\n')
    browser = Browser(await start_api(tenants=file))

    assert (await browser.sign_in(key=key)).status == 200
    assert browser.signed_in.tenant == "acme"
    assert (await browser.send("GET", f"/v1/captures/{id_of(LOG)}")).status == 404
