"""Access rights: the matrix of every route and every credential, made from the route registry."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from overspill import Client, Guard
from overspill.wire import Code, Header, Outcome, Scope
from overspill_service.catalog.key_records import KeyRecord
from overspill_service.settings.errors import SettingError
from overspill_service.tenants.keys import hash_key, new_key
from overspill_service.web.registry import ANY_KEY, PUBLIC, Route
from overspill_service.web.routes import ROUTES
from yarl import URL

from tests.web.conftest import Api, id_of, problem

CONTENT = b"the other tenant's secret\n"
KEYS = {(tenant, scope): new_key() for tenant in ("acme", "globex") for scope in Scope}


@pytest.fixture
async def guarded(start_api: Callable[..., Any], tmp_path: Path) -> Api:
    """A service with a key for each scope of two tenants; `acme` has stored one capture."""
    blocks = []
    for tenant in ("acme", "globex"):
        blocks.append(f'[[tenants]]\nname = "{tenant}"\n')
        for scope in Scope:
            key = KEYS[tenant, scope]
            blocks.append(f'[[tenants.keys]]\nhash = "{hash_key(key)}"\nscopes = ["{scope.value}"]\n')
    file = tmp_path / "tenants.toml"
    file.write_text("".join(blocks))
    api: Api = await start_api(tenants=file)
    response = await api.send(
        "PUT", f"/v1/captures/{id_of(CONTENT)}", data=CONTENT, headers=bearer(KEYS["acme", Scope.WRITE])
    )
    assert response.status == 201
    return api


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def concrete(route: Route) -> str:
    return re.sub(r"\{(session|id)\}", "s", route.path.replace("{ref}", id_of(CONTENT)))


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
async def test_a_key_opens_the_routes_of_its_scope_and_no_others(guarded: Api, route: Route) -> None:
    for scope in Scope:
        response = await guarded.send(route.method, concrete(route), headers=bearer(KEYS["globex", scope]))

        if route.scope in (PUBLIC, ANY_KEY) or route.needed is scope:
            assert response.status not in (401, 403), scope
        else:
            assert (response.status, (await problem(response)).code) == (403, Code.FORBIDDEN), scope


STRANGERS: dict[str, dict[str, str]] = {
    "none": {},
    "unknown": bearer(new_key()),
    "short": bearer("ovs_short"),
    "empty": bearer(""),
    "basic": {"Authorization": "Basic YTpi"},
    "no text": {"Authorization": "Bearer \xff\xfe"},
    "no scheme": {"Authorization": KEYS["acme", Scope.READ]},
    "a tenant's name": {"X-Tenant": "acme"},
}


async def ended_keys(api: Api) -> dict[str, dict[str, str]]:
    """Keys of all scopes that have opened everything, and do so no more."""
    catalog = api.service.archive.catalog
    expired, revoked = new_key(), new_key()
    for key, expires in ((expired, 1.0), (revoked, None)):
        await catalog.add_key(
            KeyRecord(hash=hash_key(key), tenant="acme", scopes=list(Scope), expires=expires)
        )
    assert await catalog.revoke_key(hash_key(revoked))
    return {"expired": bearer(expired), "revoked": bearer(revoked)}


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.scope is not PUBLIC], ids=lambda route: route.name
)
async def test_without_a_known_key_nothing_opens(guarded: Api, route: Route) -> None:
    for name, headers in (STRANGERS | await ended_keys(guarded)).items():
        response = await guarded.send(route.method, concrete(route), headers=headers)

        assert (response.status, (await problem(response)).code) == (401, Code.UNAUTHORIZED), name
        assert "Bearer" in response.headers["WWW-Authenticate"], name


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "X")
ODD_PATHS: tuple[Callable[[str], str], ...] = (
    lambda path: path + "/",
    lambda path: "/" + path,
    lambda path: path.replace("/v1/", "/v1//", 1),
    lambda path: path.replace("/v1/", "/healthz/../v1/", 1),
    lambda path: path.replace("/v1/", "/healthz/%2e%2e/v1/", 1),
    lambda path: path.replace("/v1/", "/v1%2F", 1),
    lambda path: path.replace("/v1/", "/V1/", 1),
    lambda path: path + "%00",
    lambda path: path + ";/healthz",
    lambda path: path + "?/healthz",
)


async def test_no_method_and_no_odd_path_opens_anything_without_a_key(guarded: Api) -> None:
    server = guarded.url("/").origin()
    private = [route for route in ROUTES if route.scope is not PUBLIC]
    public = {concrete(route) for route in ROUTES if route.scope is PUBLIC}
    paths = {concrete(route) for route in private} - public
    asked = [(method, path) for method in METHODS for path in sorted(paths)]
    asked += [(route.method, odd(concrete(route))) for route in private for odd in ODD_PATHS]
    for method, path in asked:
        response = await guarded.request(method, URL(f"{server}{path}", encoded=True))
        answer = await response.read()

        assert response.status in (400, 401, 404, 405), (method, path)
        assert CONTENT not in answer, (method, path)


@pytest.mark.parametrize(
    "route",
    [route for route in ROUTES if "{ref}" in route.path and route.method != "PUT"],
    ids=lambda r: r.name,
)
async def test_another_tenants_capture_answers_exactly_as_one_that_never_was(
    guarded: Api, route: Route
) -> None:
    assert isinstance(route.scope, Scope)
    headers = {**bearer(KEYS["globex", route.scope]), Header.PRODUCER: "me", Header.UPLOAD_OFFSET: "0"}
    query = "?pattern=x" if route.path.endswith("grep") else ""
    bodies = {"PATCH": {"ttl": 60}, "POST": {"offset": 0}}
    body: dict[str, Any] = {"json": bodies[route.method]} if route.method in bodies else {}
    never = id_of(b"never stored")
    path = concrete(route) + query
    foreign = await guarded.send(route.method, path, headers=headers, **body)
    absent = await guarded.send(route.method, path.replace(id_of(CONTENT), never), headers=headers, **body)

    assert foreign.status == absent.status == 404
    first, second = await problem(foreign), await problem(absent)
    assert first.detail == second.detail.replace(never, id_of(CONTENT))


async def test_a_browser_saves_captured_bytes_and_learns_no_version(guarded: Api) -> None:
    headers = bearer(KEYS["acme", Scope.READ])
    content = await guarded.get(f"/v1/captures/{id_of(CONTENT)}/content", headers=headers)
    others = [await guarded.get(path, headers=headers) for path in ("/v1/usage", "/v1/never")]

    assert content.headers["Content-Disposition"] == "attachment"
    assert {answer.headers["Server"] for answer in (content, *others)} == {"overspill"}


async def test_two_tenants_hold_the_same_id_apart(guarded: Api) -> None:
    path = f"/v1/captures/{id_of(CONTENT)}"
    await guarded.send("PUT", path, data=b"globex's own", headers=bearer(KEYS["globex", Scope.WRITE]))
    mine = await guarded.get(path + "/content", headers=bearer(KEYS["globex", Scope.READ]))
    theirs = await guarded.get(path + "/content", headers=bearer(KEYS["acme", Scope.READ]))

    assert (await mine.read(), await theirs.read()) == (b"globex's own", CONTENT)


async def test_listing_and_usage_show_the_own_tenant_alone(guarded: Api) -> None:
    headers = bearer(KEYS["globex", Scope.READ])

    assert (await (await guarded.get("/v1/captures", headers=headers)).json())["captures"] == []
    assert (await (await guarded.get("/v1/usage", headers=headers)).json())["captures"] == 0


async def test_a_key_of_the_catalog_works_until_it_expires(guarded: Api) -> None:
    catalog = guarded.service.archive.catalog
    key, old = new_key(), new_key()
    await catalog.add_key(KeyRecord(hash=hash_key(key), tenant="acme", scopes=[Scope.READ]))
    await catalog.add_key(KeyRecord(hash=hash_key(old), tenant="acme", scopes=[Scope.READ], expires=1.0))

    assert (await guarded.get("/v1/usage", headers=bearer(key))).status == 200
    assert (await guarded.get("/v1/usage", headers=bearer(old))).status == 401


async def test_without_keys_a_service_beyond_loopback_refuses_to_start(start_api: Callable[..., Any]) -> None:
    with pytest.raises(SettingError, match="keys create"):
        await start_api(listen="0.0.0.0:0", anonymous=None)


async def test_a_route_without_a_scope_stops_the_service() -> None:
    with pytest.raises(TypeError, match="needs a scope"):
        Route(method="GET", path="/x", scope=None, handler=None, summary="", answers={})  # type: ignore[arg-type]


async def test_limits_of_a_tenant_answer_413_and_507(start_api: Callable[..., Any], tmp_path: Path) -> None:
    key = new_key()
    file = tmp_path / "tenants.toml"
    file.write_text(
        '[[tenants]]\nname = "small"\nmax_capture_size = 1000\nmax_captures = 2\n'
        f'[[tenants.keys]]\nhash = "{hash_key(key)}"\nscopes = ["write", "read"]\n'
    )
    api: Api = await start_api(tenants=file)

    async def put(content: bytes, **kwargs: Any) -> Any:
        return await api.send(
            "PUT", f"/v1/captures/{id_of(content)}", data=content, headers=bearer(key), **kwargs
        )

    assert (await put(b"x" * 1000)).status == 201
    too_large = await put(b"x" * 1001)
    assert (too_large.status, (await problem(too_large)).limit) == (413, 1000)
    assert (await put(b"y")).status == 201
    full = await put(b"z")
    assert (full.status, (await problem(full)).code) == (507, Code.QUOTA_EXCEEDED)
    assert len([each async for each in api.service.archive.store.list("v1/")]) == 2


async def test_a_guard_with_a_key_that_only_writes_knows_its_output_again(guarded: Api) -> None:
    output = "".join(f"line {number} is the same in both runs\n" for number in range(9_000))
    key = KEYS["acme", Scope.WRITE]
    results = []
    async with Client(f"http://127.0.0.1:{guarded.port}", key) as client:
        for _ in range(2):
            guard = Guard(client, spool=False)
            results.append(await guard.process(output, tool="t", call_id="call_0"))

    assert [result.outcome for result in results] == [Outcome.CAPTURED, Outcome.CAPTURED]
    assert results[0].capture == results[1].capture


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.method == "GET" and route.needed], ids=lambda r: r.name
)
async def test_no_browser_keeps_an_answer_that_needed_a_key(guarded: Api, route: Route) -> None:
    assert route.needed is not None
    query = "?pattern=x&timeout=0" if route.path.endswith(("grep", "wait")) else ""
    for method in ("GET", "HEAD"):
        headers = bearer(KEYS["acme", route.needed])
        response = await guarded.send(method, concrete(route) + query, headers=headers)

        assert "no-store" in response.headers["Cache-Control"], (method, response.status)
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
        assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"
