"""Web pages of other sites reach nothing, whatever the browser of this machine's user sends for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from multidict import CIMultiDict
from overspill.wire import Code

from tests.web.conftest import Api, path_of, problem

if TYPE_CHECKING:
    from collections.abc import Callable

STATS = "/v1/usage"
FOREIGN: dict[str, dict[str, str]] = {
    "a rebound name": {"Host": "attacker.example"},
    "a rebound name with our port": {"Host": "attacker.example:8750"},
    "a name that ends like ours": {"Host": "127.0.0.1.attacker.example"},
    "a name that begins with ours": {"Host": "localhost.attacker.example"},
    "the address of every interface": {"Host": "0.0.0.0:8750"},
    "another machine": {"Host": "192.0.2.7"},
    "a broken name": {"Host": "[::1"},
    "an empty name": {"Host": ""},
    "ours behind another as a user": {"Host": "attacker.example@127.0.0.1"},
    "ours before a path": {"Host": "127.0.0.1/attacker.example"},
    "ours before a fragment": {"Host": "localhost#attacker.example"},
    "ours with a tab": {"Host": "local\thost"},
    "ours, and a user, as the origin": {"Host": "localhost", "Origin": "http://a@localhost"},
    "another origin": {"Origin": "https://attacker.example"},
    "another port of this machine": {"Origin": "http://127.0.0.1:1"},
    "no origin that says its name": {"Origin": "null"},
    "an extension": {"Origin": "chrome-extension://abcdefghijklmnop"},
    "a file": {"Origin": "file://"},
    "another site": {"Sec-Fetch-Site": "cross-site"},
    "a neighbour's site": {"Sec-Fetch-Site": "same-site"},
    "in capitals": {"Sec-Fetch-Site": "CROSS-SITE"},
    "a form or a link": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
}
OWN: dict[str, dict[str, str]] = {
    "a program": {},
    "the name": {"Host": "localhost:8750"},
    "the name in capitals, with its dot": {"Host": "LocalHost.:8750"},
    "another address of this machine": {"Host": "127.9.9.9"},
    "IPv6": {"Host": "[::1]:8750"},
    "its own page": {"Host": "localhost:8750", "Origin": "http://localhost:8750"},
    "a page that was typed in": {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
    "its own script": {"Sec-Fetch-Site": "same-origin"},
}


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
async def test_a_page_of_another_site_is_refused_everywhere(api: Api, headers: dict[str, str]) -> None:
    await api.put(b"secret\n")

    for method, path in (
        ("GET", path_of(b"secret\n") + "/content"),
        ("DELETE", path_of(b"secret\n")),
        ("POST", "/v1/admin/sweep"),
        ("GET", "/metrics"),
        ("OPTIONS", "/v1/captures"),
    ):
        response = await api.send(method, path, headers=headers)
        assert (response.status, (await problem(response)).code) == (403, Code.FOREIGN_ORIGIN), path
        assert "Access-Control-Allow-Origin" not in response.headers
    assert (await api.get(path_of(b"secret\n"))).status == 200


@pytest.mark.parametrize("headers", OWN.values(), ids=OWN)
async def test_programs_and_the_own_page_are_served(api: Api, headers: dict[str, str]) -> None:
    assert (await api.get("/v1/usage", headers=headers)).status == 200


@pytest.mark.parametrize("name", ["Origin", "Sec-Fetch-Site"])
async def test_two_words_on_where_a_request_comes_from_are_refused(api: Api, name: str) -> None:
    own, foreign = {"Origin": ("http://localhost", "null"), "Sec-Fetch-Site": ("none", "cross-site")}[name]
    headers = CIMultiDict([("Host", "localhost"), (name, own), (name, foreign)])

    assert (await api.get("/v1/usage", headers=headers)).status == 422


async def test_a_link_from_another_site_may_lead_to_the_page_and_nowhere_else(api: Api) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}

    assert (await api.get("/", headers=link)).status == 200
    assert (await api.get("/v1/usage", headers=link)).status == 403
    assert (await api.get("/", headers=link | {"Sec-Fetch-Mode": "no-cors"})).status == 403


async def test_a_balancer_asks_for_health_by_any_name(api: Api) -> None:
    for path in ("/healthz", "/readyz"):
        assert (await api.get(path, headers={"Host": "overspill"})).status == 200


async def test_an_operator_names_the_hosts_of_a_proxy(start_api: Callable[..., Any]) -> None:
    api: Api = await start_api(hosts="captures.example, Other.example")

    async def status(**headers: str) -> int:
        return (await api.get("/v1/usage", headers=headers)).status

    assert await status(Host="captures.example") == 200
    assert await status(Host="other.example:443", Origin="https://other.example") == 200
    assert await status(Host="127.0.0.1:8750", Origin="https://captures.example") == 200
    assert await status(Host="third.example") == 403
    assert await status(Host="captures.example", Origin="https://third.example") == 403


async def test_beyond_loopback_any_host_is_answered_unless_some_are_named(
    start_api: Callable[..., Any],
) -> None:
    any_host: Api = await start_api(listen="0.0.0.0:0", anonymous=True)
    one_host: Api = await start_api(listen="0.0.0.0:0", anonymous=True, hosts="captures.example")
    other = {"Host": "overspill.default.svc.cluster.local:8750"}

    assert (await any_host.get("/v1/usage", headers=other)).status == 200
    assert (await any_host.get("/v1/usage", headers=other | {"Origin": "https://x.example"})).status == 403
    assert (await one_host.get("/v1/usage", headers=other)).status == 403
    assert (await one_host.get("/readyz")).status == 200


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
async def test_json_must_say_that_it_is_json(api: Api, media_type: str) -> None:
    await api.put(b"secret\n")

    for method, path in (("POST", "/v1/observations"), ("PATCH", path_of(b"secret\n"))):
        response = await api.send(method, path, data=b'{"ttl": 1}', headers={"Content-Type": media_type})
        found = await problem(response)
        assert (found.status, found.code) == (415, Code.UNSUPPORTED_MEDIA_TYPE)
        assert "application/json" in found.detail
