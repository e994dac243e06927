"""The client through an nginx: as it is by default, and as the deployment's nginx.conf has it."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientSession
from overspill.transfer.client import Client
from overspill.wire import MAX_VALUE

from tests.servers import nginx
from tests.web.conftest import start_api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

__all__ = ["start_api"]

LABELS = {"overspill.preview": "ends", "git_sha": "4003c52", "plain": "100 % = a, b; ü"}
DEFAULT_LIMIT = 1024 * 1024
"""Bytes of a body that nginx lets pass by default."""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as entered:
        yield entered


@pytest.fixture
async def deployed(stack: ExitStack, tmp_path: Path, start_api: Callable[..., Any]) -> AsyncIterator[str]:
    """The address of an nginx with the deployment's configuration."""
    api = await start_api(hosts="localhost")
    port = await asyncio.to_thread(stack.enter_context, nginx.deployed(tmp_path, [api.port]))
    yield f"http://127.0.0.1:{port}"
    await asyncio.to_thread(stack.close)


async def test_labels_pass_a_proxy_that_drops_fields_with_dots_and_underscores(
    stack: ExitStack, tmp_path: Path, start_api: Callable[..., Any]
) -> None:
    api = await start_api(hosts="localhost")
    port = await asyncio.to_thread(stack.enter_context, nginx.passing_on(tmp_path, api.port))

    async with Client(f"http://127.0.0.1:{port}") as client:
        stored = await client.put("an output", labels=LABELS)
        async with client.live(labels=LABELS) as live:
            await live.write("a live output")
        grown = await client.get(live.id)

    assert (stored.labels, grown.labels) == (LABELS, LABELS)


async def test_a_capture_passes_that_nginx_refuses_by_default(deployed: str) -> None:
    content = b"x" * (DEFAULT_LIMIT + 1)

    async with Client(deployed, compress=False) as client:
        assert (await client.put(content)).size == len(content)


async def test_the_longest_metadata_and_the_longest_pattern_pass(deployed: str) -> None:
    longest = "é" * (MAX_VALUE // 2 - 8)
    labels = dict.fromkeys("abc", longest)

    async with Client(deployed) as client:
        stored = await client.put("an output", labels=labels, call_id=longest)
        found = await client.grep(stored.id, "é" * 2048, fixed=True)

    assert (stored.labels, stored.call_id, found.match_count) == (labels, longest, 0)


async def test_the_replicas_metrics_stay_inside(deployed: str) -> None:
    async with ClientSession() as session:
        statuses = [
            (await session.get(deployed + path)).status for path in ("/metrics", "/%6detrics", "//metrics")
        ]

    assert statuses == [404, 404, 404]
