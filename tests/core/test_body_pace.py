"""A tenant's uploads come at a bounded rate while others ask, and as fast as they can while none does."""

from __future__ import annotations

import pytest
from overspill_service.resources.body_pace import RATE, BodyPace
from overspill_service.resources.tenant_mix import TOGETHER_SECONDS, TenantMix

CHUNK = 256 * 1024


class Clock:
    """The time of one process, which each pause moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def mix(clock: Clock) -> TenantMix:
    mix = TenantMix(clock)
    for tenant in ("bulk", "quiet"):
        mix.note(tenant)
    return mix


def seconds_of(pace: BodyPace, clock: Clock, tenant: str, size: int) -> float:
    """How long an upload takes that is as fast as it may be."""
    began = clock.now
    for _ in range(0, size, CHUNK):
        clock.now += pace.pause(tenant, CHUNK)
    return clock.now - began


def test_a_large_upload_comes_at_the_rate_while_others_ask(clock: Clock, mix: TenantMix) -> None:
    assert seconds_of(BodyPace(mix, clock), clock, "bulk", RATE // 2) == pytest.approx(0.5, rel=0.05)


def test_many_uploads_of_a_tenant_share_its_rate(clock: Clock, mix: TenantMix) -> None:
    pace = BodyPace(mix, clock)
    pauses = [pace.pause("bulk", CHUNK) for _ in range(RATE // 4 // CHUNK)]

    assert max(pauses) == pytest.approx(0.25, rel=0.1)


def test_a_short_upload_never_waits(clock: Clock, mix: TenantMix) -> None:
    pace = BodyPace(mix, clock)
    seconds_of(pace, clock, "bulk", RATE // 8)

    assert pace.pause("quiet", CHUNK) == 0


def test_nothing_waits_while_one_tenant_asks(clock: Clock, mix: TenantMix) -> None:
    clock.now += TOGETHER_SECONDS

    assert seconds_of(BodyPace(mix, clock), clock, "bulk", 10 * RATE) == 0
