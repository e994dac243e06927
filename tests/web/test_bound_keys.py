"""Sessions keep apart what is in them: for keys that are bound to one, and for references to tool calls."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from overspill.wire import Code, Header, Scope
from overspill_service.archive.lookup_limits import BURST, LookupLimits
from overspill_service.errors import KeyRefused
from overspill_service.web.registry import PUBLIC, SCRAPER, Route
from overspill_service.web.routes import ROUTES

from tests.web.conftest import Api, id_of, path_of, problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import ClientResponse

OWN, FOREIGN = b"output of mine\n", b"output of another user\n"
ALL = [Scope.WRITE, Scope.READ, Scope.DELETE, Scope.OBSERVE]


class Keys:
    """A service with a capture in each of two sessions, both of `call_0`, and keys for it."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def key(
        self, *scopes: Scope, session: str | None = None, is_prefix: bool = False
    ) -> dict[str, str]:
        issuer, now = self.api.service.issuer, self.api.service.archive.clock()
        issued = await issuer.issue("default", scopes, now=now, session=session, is_prefix=is_prefix)
        return {"Authorization": f"Bearer {issued.key}"}

    async def send(self, method: str, path: str, key: dict[str, str], **kwargs: Any) -> ClientResponse:
        headers = key | kwargs.pop("headers", {})
        return await self.api.send(method, path, headers=headers, **kwargs)


@pytest.fixture
async def keys(start_api: Callable[..., Any]) -> Keys:
    api: Api = await start_api()
    await api.put(OWN, Overspill_Session="mine")
    await api.put(FOREIGN, Overspill_Session="theirs")
    return Keys(api)


def concrete(route: Route, content: bytes, session: str) -> str:
    path = route.path.replace("{ref}", id_of(content)).replace("{session}", session)
    return path + ("?pattern=output" if path.endswith("grep") else "")


BOUND: dict[str, dict[str, Any]] = {
    "one session": {"session": "mine"},
    "sessions that begin so": {"session": "mi", "is_prefix": True},
}


@pytest.mark.parametrize("bound", BOUND.values(), ids=BOUND)
@pytest.mark.parametrize(
    "route",
    [each for each in ROUTES if "{ref}" in each.path and each.method != "PUT" and each.is_of_session],
    ids=lambda r: r.name,
)
async def test_a_bound_key_finds_its_own_and_others_are_as_if_they_never_were(
    keys: Keys, route: Route, bound: dict[str, Any]
) -> None:
    key = await keys.key(*ALL, **bound)
    bodies = {"PATCH": {"ttl": 10**6}, "POST": {"offset": 0}}
    body: dict[str, Any] = {"json": bodies[route.method]} if route.method in bodies else {}
    key |= {Header.PRODUCER: "me", Header.UPLOAD_OFFSET: "0"}
    never = concrete(route, b"never", "never")
    foreign = await keys.send(route.method, concrete(route, FOREIGN, "theirs"), key, **body)
    absent = await keys.send(route.method, never, key, **body)
    own = await keys.send(route.method, concrete(route, OWN, "mine"), key, **body)

    assert (foreign.status, absent.status) == (404, 404)
    assert own.status == (409 if route.method == "POST" else 200)  # what was stored whole takes no appends
    details = [(await problem(each)).detail for each in (foreign, absent)]
    assert details[0].replace(id_of(FOREIGN), "") == details[1].replace(id_of(b"never"), "")
    unbound = await keys.key(Scope.DELETE)
    await keys.send("DELETE", path_of(FOREIGN), unbound)
    gone = await keys.send(route.method, concrete(route, FOREIGN, "theirs"), key, **body)
    assert gone.status == 404


@pytest.mark.parametrize("bound", BOUND.values(), ids=BOUND)
async def test_foreign_captures_take_as_much_work_as_those_that_never_were(
    keys: Keys, bound: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the time of an answer would tell which there are."""
    work: Counter[str] = Counter()

    def counted(port: object, name: str) -> None:
        original = getattr(port, name)

        def count(*args: Any, **how: Any) -> Any:
            work[name] += 1
            return original(*args, **how)

        monkeypatch.setattr(port, name, count)

    counted(keys.api.service.archive.store, "list")
    counted(keys.api.service.archive.store, "read")
    counted(keys.api.service.archive.catalog, "get")
    await keys.send("DELETE", path_of(OWN), await keys.key(Scope.DELETE))
    key = await keys.key(*ALL, **bound) | {Header.PRODUCER: "me", Header.UPLOAD_OFFSET: "0"}
    for route in [each for each in ROUTES if "{ref}" in each.path and each.is_of_session]:
        if route.method == "PUT":
            continue
        body: dict[str, Any] = {"PATCH": {"json": {"ttl": 60}}, "POST": {"json": {"offset": 0}}}
        done = []
        for content in (b"never", FOREIGN, OWN):  # the last one is removed
            work.clear()
            answer = await keys.send(
                route.method, concrete(route, content, "x"), key, **body.get(route.method, {})
            )
            done.append((answer.status, dict(work)))

        assert done == [(404, done[0][1])] * 3, route.name


async def test_who_looks_for_too_many_captures_cannot_tell_foreign_ones_by_that(keys: Keys) -> None:
    keys.api.service.archive.lookups = LookupLimits(clock=lambda: 0.0)
    key = await keys.key(*ALL, session="mine")
    paths = [path_of(OWN), path_of(FOREIGN), path_of(b"never")]
    for number in range(BURST):
        path = path_of(FOREIGN) if number % 2 else path_of(b"%d" % number)
        assert (await keys.send("GET", path, key)).status == 404

    for method in ("GET", "HEAD", "DELETE"):
        statuses = [(await keys.send(method, path, key)).status for path in paths[1:]]
        assert statuses == [429, 429]
    assert (await keys.send("GET", paths[0], key)).status == 200


@pytest.mark.parametrize(
    "route",
    [each for each in ROUTES if each.scope not in (PUBLIC, SCRAPER) and not each.is_of_session],
    ids=lambda r: r.name,
)
async def test_a_bound_key_is_told_nothing_about_all_sessions(keys: Keys, route: Route) -> None:
    if route.scope in (Scope.ADMIN, Scope.FLEET):
        with pytest.raises(KeyRefused):
            await keys.key(route.scope, session="mine")
        return
    answer = await keys.send(route.method, concrete(route, OWN, "mine"), await keys.key(*ALL, session="mine"))

    assert (answer.status, (await problem(answer)).code) == (403, Code.FORBIDDEN)


async def test_a_bound_key_lists_and_erases_its_own_session(keys: Keys) -> None:
    key = await keys.key(*ALL, session="mine")

    for query in ("", "?session=mine"):
        listed = await (await keys.send("GET", f"/v1/captures{query}", key)).json()
        assert [each["session"] for each in listed["captures"]] == ["mine"]
    listed = await (await keys.send("GET", "/v1/captures?session=theirs", key)).json()
    assert listed["captures"] == []
    for session, removed in (("theirs", 0), ("mine", 1)):
        answer = await keys.send("DELETE", f"/v1/sessions/{session}", key)
        assert (await answer.json())["captures"] == removed
    assert (await keys.send("GET", path_of(FOREIGN), await keys.key(Scope.READ))).status == 200


async def test_a_key_of_a_prefix_must_name_the_session_that_it_lists(keys: Keys) -> None:
    key = await keys.key(*ALL, session="mi", is_prefix=True)

    answer = await keys.send("GET", "/v1/captures", key)
    assert (answer.status, (await problem(answer)).code) == (403, Code.FORBIDDEN)
    listed = await (await keys.send("GET", "/v1/captures?session=mine", key)).json()
    assert len(listed["captures"]) == 1


async def test_a_bound_key_stores_in_its_own_session_alone(keys: Keys) -> None:
    key = await keys.key(*ALL, session="mine")

    async def stored(method: str, path: str, content: bytes, **headers: str) -> int:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return (await keys.send(method, path, key, data=content, headers=names)).status

    new = b"something new\n"
    for method, path in (("PUT", path_of(new)), ("POST", "/v1/captures")):
        assert await stored(method, path, new) == 403
        assert await stored(method, path, new, Overspill_Session="theirs") == 403
        assert await stored(method, path, new, Overspill_Session="mine") in (200, 201)
    assert await stored("PUT", path_of(FOREIGN), FOREIGN, Overspill_Session="mine") == 409


async def test_a_tool_call_is_found_in_the_named_session_and_not_in_another_users(keys: Keys) -> None:
    read = await keys.key(Scope.READ)
    path = "/v1/captures/call:call_0"

    async def found(query: str = "", key: dict[str, str] = read) -> tuple[int, str]:
        answer = await keys.send("GET", path + query, key)
        return answer.status, (await answer.json()).get("session", "")

    assert await found("?session=mine") == (200, "mine")
    assert await found("?session=theirs") == (200, "theirs")
    assert (await found())[0] == 404
    assert "any_session=true" in (await problem(await keys.send("GET", path, read))).detail
    assert await found("?any_session=true") == (200, "theirs")
    mine = await keys.key(Scope.READ, session="mine")
    assert await found(key=mine) == (200, "mine")
    assert await found("?any_session=true", key=mine) == (200, "mine")
    assert (await found("?session=theirs", key=mine))[0] == 404


async def test_a_tool_call_without_a_session_is_found_without_one(keys: Keys) -> None:
    await keys.api.put(b"of no session\n")
    answer = await keys.send("GET", "/v1/captures/call:call_0", await keys.key(Scope.READ))

    assert (await answer.json())["session"] == ""


# --- scopes mean what they say --------------------------------------------------------------------


async def test_a_shorter_life_needs_the_scope_to_delete(keys: Keys) -> None:
    write, both = await keys.key(Scope.WRITE), await keys.key(Scope.WRITE, Scope.DELETE)

    async def patched(key: dict[str, str], ttl: int) -> int:
        return (await keys.send("PATCH", path_of(OWN), key, json={"ttl": ttl})).status

    assert [await patched(write, ttl) for ttl in (10**6, 1, 10**6 - 100)] == [200, 403, 403]
    assert await patched(write, 2 * 10**6) == 200
    assert await patched(both, 60) == 200


async def test_without_read_no_answer_tells_of_what_others_have_stored(keys: Keys) -> None:
    write = await keys.key(Scope.WRITE)
    patched = await keys.send("PATCH", path_of(OWN), write, json={"ttl": 10**6})
    again = await keys.send("PUT", path_of(OWN), write, data=OWN)
    conflict = await keys.send("PUT", path_of(OWN), write, data=b"guess")

    assert (patched.status, again.status, conflict.status) == (200, 200, 409)
    for answer in (patched, again, conflict):
        shown = f"{await answer.text()} {dict(answer.headers)}"
        for secret in ("mine", "call_0", (await entry_of(keys, OWN))["sha256"]):
            assert secret not in shown, secret


async def entry_of(keys: Keys, content: bytes) -> dict[str, Any]:
    found: dict[str, Any] = await (
        await keys.send("GET", path_of(content), await keys.key(Scope.READ))
    ).json()
    return found
