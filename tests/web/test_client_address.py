"""The client's address of a request behind proxies. The logs and the rate of unknown keys use it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from overspill_service.settings.errors import SettingError
from overspill_service.settings.sources import load
from overspill_service.telemetry import logs
from overspill_service.tenants.keys import new_key
from overspill_service.web.request_rates import UNKNOWN_KEYS_BURST

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CLIENT = "203.0.113.9"
FORGED = "198.51.100.1"
HERE = "127.0.0.1"
PROXIES = "127.0.0.0/8, 10.1.0.0/16, 2001:db8::5"


async def logged_address(
    start_api: Callable[..., Any], caplog: pytest.LogCaptureFixture, headers: Any, **settings: Any
) -> str:
    api = await start_api(**settings)
    seen: list[str] = []

    class Seen(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            seen.append(logs.current_fields()["address"])
            return True

    log = logging.getLogger("overspill_service.access")
    watching = Seen()
    log.addFilter(watching)
    with caplog.at_level(logging.INFO, log.name):
        await api.get("/v1/captures", headers=headers)
    log.removeFilter(watching)
    return seen[-1]


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("", HERE),
        (CLIENT, CLIENT),
        (f"{CLIENT}:4711", CLIENT),
        (f"{FORGED}, {CLIENT}", CLIENT),
        (f"{FORGED},{CLIENT}, 10.1.2.3,10.1.2.4", CLIENT),
        ("10.1.2.3", "10.1.2.3"),  # a request of a proxy itself
        (f"{FORGED}, 2001:db8::6", "2001:db8::6"),
        (f"{FORGED}, [2001:db8::6]:80, 2001:DB8:0::5", "2001:db8::6"),
        (f"{FORGED}, ::ffff:{CLIENT}", CLIENT),
        (f"{FORGED}, unknown, 10.1.2.3", "10.1.2.3"),
        (f"{FORGED}, <script>, 10.1.2.3", "10.1.2.3"),
        (f"{FORGED}, 999.1.1.1", HERE),
        (f"{FORGED}, ", HERE),
    ],
)
async def test_the_last_hop_that_is_no_trusted_proxy_is_the_client(
    start_api: Callable[..., Any], caplog: pytest.LogCaptureFixture, given: str, address: str
) -> None:
    headers = {"X-Forwarded-For": given, "Forwarded": f"for={FORGED}"}

    assert await logged_address(start_api, caplog, headers, trusted_proxies=PROXIES) == address


@pytest.mark.parametrize(
    ("given", "address"),
    [
        (f"for={CLIENT}", CLIENT),
        (f'for={FORGED};proto=http, for="{CLIENT}:4711";by=10.1.2.3', CLIENT),
        (f'for={FORGED}, for="[2001:db8::6]:80", for=10.1.2.3', "2001:db8::6"),
        (f"for={FORGED}, for=_hidden", HERE),
        (f'for={FORGED}, for="x, for={CLIENT}', CLIENT),
        (f"for={FORGED}, by=10.1.2.3", HERE),
        (f"for={FORGED}, For={CLIENT} ;proto=https;;", CLIENT),
        (f'for={FORGED};by=", for="[2001:db8::6]:80"', "2001:db8::6"),
        (f'for={FORGED};by=", by="10.1.2.3:80";for="{CLIENT}"', CLIENT),
        (f'by="a, for={FORGED}", for="[2001:db8::6]";host="a,for={FORGED};x="', "2001:db8::6"),
        (f"for={FORGED}, for={CLIENT};for={FORGED}", HERE),
        (f"for={FORGED}, for = {CLIENT}", HERE),
        (f"for={FORGED}, for={CLIENT};host={'x' * 2000}", HERE),
        ("for=" + f"{FORGED},".join('by="' for _ in range(1500)), HERE),
    ],
)
async def test_the_standard_header_is_read_if_the_proxies_write_that_one(
    start_api: Callable[..., Any], caplog: pytest.LogCaptureFixture, given: str, address: str
) -> None:
    headers = {"Forwarded": given, "X-Forwarded-For": FORGED}
    settings = {"trusted_proxies": PROXIES, "client_address_header": "forwarded"}

    assert await logged_address(start_api, caplog, headers, **settings) == address


async def test_several_fields_are_one_list(
    start_api: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    headers = [("X-Forwarded-For", FORGED), ("X-Forwarded-For", CLIENT)]

    assert await logged_address(start_api, caplog, headers, trusted_proxies=PROXIES) == CLIENT


@pytest.mark.parametrize("proxies", ["", "10.1.0.0/16"])
async def test_whoever_is_no_trusted_proxy_has_its_own_address_whatever_it_writes(
    start_api: Callable[..., Any], caplog: pytest.LogCaptureFixture, proxies: str
) -> None:
    headers = {"X-Forwarded-For": FORGED, "Forwarded": f"for={FORGED}", "X-Real-IP": FORGED}

    assert await logged_address(start_api, caplog, headers, trusted_proxies=proxies) == HERE


async def unknown_keys(api: Any, count: int, address: str) -> list[int]:
    statuses = []
    for _ in range(count):
        headers = {"Authorization": f"Bearer {new_key()}", "X-Forwarded-For": f"{FORGED}, {address}"}
        statuses.append((await api.get("/v1/captures", headers=headers)).status)
    return statuses


async def test_unknown_keys_count_for_the_client_behind_the_proxy(start_api: Callable[..., Any]) -> None:
    api = await start_api(trusted_proxies=PROXIES, anonymous=False)

    assert set(await unknown_keys(api, UNKNOWN_KEYS_BURST, CLIENT)) == {401}
    assert 429 in await unknown_keys(api, 5, CLIENT)
    assert await unknown_keys(api, 1, "203.0.113.10") == [401]


@pytest.mark.parametrize("text", ["localhost", "10.0.0.0/33", "10.0.0.1/8", "10.0.0.1 10.0.0.2"])
def test_a_proxy_is_named_by_address_or_network(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingError, match=r"trusted_proxies: .*write addresses and networks"):
        load({"trusted_proxies": text, "data": str(tmp_path)}, {})
