"""Ranges and preconditions as nginx answers them for a file of the same bytes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.servers import nginx
from tests.web.conftest import Api

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from aiohttp import ClientResponse

CONTENT = b"".join(b"%d\n" % number for number in range(2000))
SIZE = len(CONTENT)
TAG = "TAG"
"""Stands for the server's own entity tag."""
RANGES = [
    None,
    "bytes=0-0",
    "bytes=0-99",
    "bytes=100-",
    "bytes=-1",
    "bytes=-99999",
    f"bytes={SIZE - 1}-",
    f"bytes={SIZE - 1}-{SIZE + 5}",
    f"bytes={SIZE}-",
    f"bytes=0-{SIZE}",
    "bytes=-0",
    "bytes=7-007",
    "lines=1-2",
    "bytes",
]
MATCHES = [None, "*", TAG, '"other"', f'"other", {TAG}', f"W/{TAG}"]
IF_RANGES = [None, TAG, '"other"', "Thu, 01 Jan 1970 00:00:00 GMT"]


class Seen(NamedTuple):
    status: int
    content_range: str | None
    body: bytes | None


async def seen(response: ClientResponse) -> Seen:
    """What both must agree on; the bodies of errors are each server's own."""
    body = await response.read() if response.status in (200, 206, 304) else None
    return Seen(response.status, response.headers.get("Content-Range"), body)


def conditions() -> Iterator[dict[str, str]]:
    """Every range with every If-Range; every If-Match with every If-None-Match, also beside two ranges."""
    for span, if_range in itertools.product(RANGES, IF_RANGES):
        yield named({"Range": span, "If-Range": if_range})
    for span, match, none_match in itertools.product(("bytes=5-9", f"bytes={SIZE}-", None), MATCHES, MATCHES):
        yield named({"Range": span, "If-Match": match, "If-None-Match": none_match})


def named(fields: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value is not None}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_nginx_answers_ranges_and_preconditions_alike(api: Api, tmp_path: Path, method: str) -> None:
    entry = await api.put(CONTENT)
    ours = api.url(f"/v1/captures/{entry.id}/content")
    differing = []
    with nginx.serving(tmp_path / "nginx", content=CONTENT) as port:
        theirs = ours.with_port(port).with_path("/content")
        tags = {url: await tag_of(api, str(url)) for url in (ours, theirs)}
        for fields in conditions():
            if method == "HEAD" and "Range" in fields:
                continue  # nginx answers it, against section 14.2
            answers = []
            for url in (ours, theirs):
                sent = {name: value.replace(TAG, tags[url]) for name, value in fields.items()}
                answers.append(await seen(await api.request(method, url, headers=sent)))
            if answers[0] != answers[1]:
                differing.append((fields, *answers))

    assert differing == []


async def tag_of(api: Api, url: str) -> str:
    response = await api.request("GET", url)
    return response.headers["ETag"]
