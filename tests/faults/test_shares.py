"""A quiet tenant beside an abusive one, on a real service: it is served first, and refused nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from overspill_service.tenants.keys import hash_key, new_key

from tests.bench import texts
from tests.bench.hostile import WAYS
from tests.bench.shares import Caller, abusing
from tests.servers.overspill import ForkedService, ServiceProcess, running
from tests.waiting import until

HOSTILE, QUIET = new_key(), new_key()
REQUESTS = 5
SCAN_SECONDS = 600
"""More than a test may take."""


class Stored(NamedTuple):
    """The settings of a service of two tenants, what it has stored, and the captures of both."""

    settings: dict[str, Any]
    data: Path
    large: str
    small: str
    own: str


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """A hostile search goes on there for as long as a test may take."""
    folder = tmp_path_factory.mktemp("shares")
    file = folder / "tenants.toml"
    file.write_text(
        "".join(
            f'[[tenants]]\nname = "{name}"\n[[tenants.keys]]\nhash = "{hash_key(key)}"\n'
            'scopes = ["read", "write", "observe"]\n'
            for name, key in (("hostile", HOSTILE), ("quiet", QUIET))
        )
    )
    settings = {
        "tenants": file,
        "anonymous": False,
        "scan_seconds": SCAN_SECONDS,
        "max_scan_cpu": 600,
        "metrics_from": "127.0.0.1",
    }
    with (
        running(ForkedService(folder / "overspill", **settings)) as service,
        closing(Caller(service.url, HOSTILE)) as hostile,
        closing(Caller(service.url, QUIET)) as quiet,
    ):
        large, small = hostile.post(texts.text(texts.LOG, 1_000_000) * 50), hostile.post(b"small\n")
        own = quiet.post(b"one line\nerror: another\n")
    return Stored(settings, service.data, large, small, own)


@pytest.fixture
def shared_service(stored: Stored, tmp_path: Path) -> Iterator[ServiceProcess]:
    """A service of the test's own, with a copy of what is stored."""
    copied = ForkedService(tmp_path / "overspill", **stored.settings)
    shutil.copytree(stored.data, copied.data)
    with running(copied) as service:
        yield service


@pytest.mark.parametrize("way", [*WAYS, "all together"])
def test_a_quiet_tenant_is_served_while_an_abusive_one_is_at_work(
    shared_service: ServiceProcess, stored: Stored, way: str
) -> None:
    with (
        closing(Caller(shared_service.url, QUIET)) as quiet,
        abusing(shared_service.url, HOSTILE, way, stored.large, stored.small),
    ):
        times = quiet.times(stored.own, REQUESTS)  # raises for any refusal
        if way in ("64 trickling uploads", "all together"):
            assert until(lambda: "overspill_uploads_in_progress 32.0" in quiet.metrics())
        answered = [line for line in shared_service.logged().splitlines() if "grep" in line]

    assert {what: len(found) for what, found in times.items()} == dict.fromkeys(times, REQUESTS)
    assert [line for line in answered if stored.own in line]
    assert not [line for line in answered if stored.large in line and "status=200" in line]
