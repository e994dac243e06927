"""Access to the metrics, which name all tenants: for keys of the scope `fleet`, and named addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from overspill.wire import Code, Scope
from overspill_service.settings.errors import SettingError
from overspill_service.settings.sources import load

from tests.web.conftest import problem
from tests.web.test_access import KEYS, bearer, guarded  # noqa: F401  (a fixture)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.web.conftest import Api

PROXIES = "127.0.0.1, 10.1.0.0/16"


async def status(api: Api, **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return (await api.get("/metrics", headers=named)).status


@pytest.fixture
def start(start_api: Callable[..., Any]) -> Callable[..., Any]:
    """Start a service that needs keys."""

    async def started(**settings: Any) -> Api:
        api: Api = await start_api(anonymous=False, **settings)
        return api

    return started


@pytest.mark.parametrize("networks", ["127.0.0.1", "127.0.0.0/8, ::1", "0.0.0.0/0"])
async def test_named_addresses_need_no_key(start: Callable[..., Any], networks: str) -> None:
    assert await status(await start(metrics_from=networks)) == 200


async def test_unless_an_address_is_named_all_need_a_key(guarded: Api) -> None:  # noqa: F811
    assert await status(guarded) == 401


@pytest.mark.parametrize("networks", ["", "192.0.2.0/24, 2001:db8::/32"])
async def test_other_addresses_need_a_key_of_the_scope_fleet(
    start_api: Callable[..., Any],
    guarded: Api,  # noqa: F811
    networks: str,
) -> None:
    settings = guarded.service.settings
    api: Api = await start_api(tenants=settings.tenants, metrics_from=networks)
    refused = await api.get("/metrics")

    assert (refused.status, (await problem(refused)).code) == (401, Code.UNAUTHORIZED)
    for scope in Scope:
        answer = await api.get("/metrics", headers=bearer(KEYS["acme", scope]))
        assert answer.status == (200 if scope is Scope.FLEET else 403), scope


@pytest.mark.parametrize(
    "header", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP", "X-Forwarded-Host", "x-forwarded-FOR"]
)
async def test_what_a_proxy_on_this_machine_passes_on_is_not_of_this_machine(
    start: Callable[..., Any], header: str
) -> None:
    api = await start(metrics_from="127.0.0.1")

    assert await status(api, **{header: "127.0.0.1"}) == 401


@pytest.mark.parametrize(
    ("passed_on", "expected"),
    [
        ("203.0.113.9", 401),
        ("127.0.0.1, 203.0.113.9", 401),  # what the client itself wrote counts for nothing
        ("192.0.2.7", 200),
        ("203.0.113.9, 192.0.2.7", 200),
        ("unknown", 401),
        ("", 401),
        ("10.1.2.3", 401),
    ],
)
async def test_behind_a_trusted_proxy_the_clients_address_counts(
    start: Callable[..., Any], passed_on: str, expected: int
) -> None:
    api = await start(trusted_proxies=PROXIES, metrics_from="127.0.0.1, 10.1.0.0/16, 192.0.2.0/24")

    assert await status(api, X_Forwarded_For=passed_on) == expected
    assert await status(api) == 200


async def test_an_open_service_has_open_metrics(start_api: Callable[..., Any]) -> None:
    assert await status(await start_api(metrics_from="")) == 200


@pytest.mark.parametrize("text", ["localhost", "10.0.0.0/33", "all"])
def test_who_may_scrape_is_named_by_address_or_network(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingError, match=r"metrics_from: .*write addresses and networks"):
        load({"metrics_from": text, "data": str(tmp_path)}, {})
