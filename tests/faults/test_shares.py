"""A quiet tenant beside an abusive one, on a real service: it is served first, and refused nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from overspill_service.tenants.keys import hash_key, new_key

from tests.bench import texts
from tests.bench.hostile import WAYS
from tests.bench.shares import Caller, abusing
from tests.servers.overspill import ForkedService, ServiceProcess, running

HOSTILE, QUIET = new_key(), new_key()
REQUESTS = 10
SCAN_SECONDS = 60


@pytest.fixture
def shared_service(tmp_path: Path) -> Iterator[ServiceProcess]:
    """A service of two tenants, where a hostile search goes on for as long as a test may take."""
    file = tmp_path / "tenants.toml"
    file.write_text(
        "".join(
            f'[[tenants]]\nname = "{name}"\n[[tenants.keys]]\nhash = "{hash_key(key)}"\n'
            'scopes = ["read", "write", "observe"]\n'
            for name, key in (("hostile", HOSTILE), ("quiet", QUIET))
        )
    )
    settings = {"tenants": file, "anonymous": False, "scan_seconds": SCAN_SECONDS, "max_scan_cpu": 600}
    with running(ForkedService(tmp_path / "overspill", **settings)) as service:
        yield service


@pytest.mark.parametrize("way", [*WAYS, "all together"])
def test_a_quiet_tenant_is_served_while_an_abusive_one_is_at_work(
    shared_service: ServiceProcess, way: str
) -> None:
    with closing(Caller(shared_service.url, HOSTILE)) as hostile:
        large = hostile.post(texts.text(texts.LOG, 50_000_000))
        small = hostile.post(b"small\n")
    with closing(Caller(shared_service.url, QUIET)) as quiet:
        own = quiet.post(b"one line\nerror: another\n")
        with abusing(shared_service.url, HOSTILE, way, large, small):
            times = quiet.times(own, REQUESTS)  # raises for any refusal
            metrics = quiet.metrics()
            answered = [line for line in shared_service.logged().splitlines() if "grep" in line]

    assert {what: len(found) for what, found in times.items()} == dict.fromkeys(times, REQUESTS)
    assert [line for line in answered if own in line]
    assert not [line for line in answered if large in line]
    if way in ("64 trickling uploads", "all together"):
        assert "overspill_uploads_in_progress 32.0" in metrics
