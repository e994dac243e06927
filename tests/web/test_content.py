"""The bytes of a capture over HTTP: ranges, conditions, encodings (RFC 9110); curl is a second client."""

from __future__ import annotations

import asyncio
import hashlib
import random
import shutil
from typing import Any, cast

import httpx
import pytest
import zstandard
from overspill import wire
from overspill_service.archive import moved
from overspill_service.catalog.records import Entry
from overspill_service.store_format.frames import FRAME_SIZE
from overspill_service.web.content import across_frames

from tests.web.conftest import Api, problem

BIG = b"".join(b"%d: %s\n" % (number, b"x" * (number % 97)) for number in range(40_000))


async def test_the_whole_content_comes_with_its_length_and_digest(api: Api) -> None:
    entry = await api.put(BIG)
    response = await api.get(f"/v1/captures/{entry.id}/content")

    assert await response.read() == BIG
    assert response.content_length == len(BIG)
    assert wire.decode_digest(response.headers["Repr-Digest"]) == hashlib.sha256(BIG).digest()
    assert response.headers["Accept-Ranges"] == "bytes"


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("bytes=0-0", slice(0, 1)),
        ("bytes=0-99", slice(0, 100)),
        ("bytes=524280-524300", slice(524280, 524301)),
        ("bytes=1000000-", slice(1000000, None)),
        ("bytes=-10", slice(-10, None)),
        ("bytes=-99999999999", slice(0, None)),
        ("bytes=100-99999999999", slice(100, None)),
        ("Bytes = 5-6", slice(5, 7)),
    ],
)
async def test_a_range_is_answered_exactly(api: Api, field: Any, expected: Any) -> None:
    entry = await api.put(BIG)
    response = await api.get(f"/v1/captures/{entry.id}/content", headers={"Range": field})

    assert response.status == 206
    assert await response.read() == BIG[expected]
    start, stop, _ = expected.indices(len(BIG))
    assert response.headers["Content-Range"] == f"bytes {start}-{stop - 1}/{len(BIG)}"


async def test_random_ranges_are_answered_exactly(api: Api) -> None:
    entry = await api.put(BIG)
    dice = random.Random(7)
    for _ in range(60):
        start = dice.randrange(len(BIG))
        stop = min(len(BIG), start + dice.randrange(1, 200_000))
        response = await api.get(
            f"/v1/captures/{entry.id}/content", headers={"Range": f"bytes={start}-{stop - 1}"}
        )

        assert await response.read() == BIG[start:stop]


@pytest.mark.parametrize(
    "field", ["bytes=5-2", "bytes=-", "lines=1-2", "bytes=0-1,4-5", "bytes=a-b", "bytes=--5", ""]
)
async def test_a_malformed_or_foreign_range_is_ignored(api: Api, field: Any) -> None:
    entry = await api.put(BIG)
    response = await api.get(f"/v1/captures/{entry.id}/content", headers={"Range": field})

    assert (response.status, await response.read()) == (200, BIG)


@pytest.mark.parametrize("field", [f"bytes={len(BIG)}-", "bytes=99999999999999-", "bytes=-0"])
async def test_a_range_beyond_the_end_is_not_satisfiable(api: Api, field: Any) -> None:
    entry = await api.put(BIG)
    response = await api.get(f"/v1/captures/{entry.id}/content", headers={"Range": field})

    assert (response.status, (await problem(response)).code) == (416, wire.Code.RANGE_NOT_SATISFIABLE)
    assert response.headers["Content-Range"] == f"bytes */{len(BIG)}"


async def test_every_range_of_an_empty_capture_is_not_satisfiable(api: Api) -> None:
    entry = await api.put(b"")
    response = await api.get(f"/v1/captures/{entry.id}/content", headers={"Range": "bytes=0-"})

    assert response.status == 416


async def test_a_client_that_accepts_zstd_gets_the_stored_frames(api: Api) -> None:
    entry = await api.put(BIG)
    response = await api.get(
        f"/v1/captures/{entry.id}/content", headers={"Accept-Encoding": "gzip, zstd;q=0.8"}
    )

    assert response.headers["Content-Encoding"] == "zstd"
    body = await response.read()
    assert len(body) < entry.stored_size
    assert zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(body) == BIG


async def test_httpx_decodes_all_stored_frames_if_each_piece_comes_by_itself(api: Api) -> None:
    """Its decoder fails at a piece that follows the end of a frame. The system may also send two as one."""
    content, archive = random.Random(7).randbytes(20 * FRAME_SIZE), api.service.archive
    entry = await api.put(content)
    reader = await archive.reader(cast("Entry", await archive.catalog.get("default", entry.id)))
    pieces = [bytes(each) async for each in across_frames(moved.stored_frames(archive, reader))]
    answer = httpx.Response(200, headers={"Content-Encoding": "zstd"}, content=iter(pieces))

    assert answer.read() == content
    assert len(pieces) > 5


@pytest.mark.parametrize("field", ["zstd;q=0", "gzip", "identity, zstd;q=0.5", "*"])
async def test_a_client_that_does_not_want_zstd_gets_the_content(api: Api, field: Any) -> None:
    entry = await api.put(BIG)
    response = await api.get(f"/v1/captures/{entry.id}/content", headers={"Accept-Encoding": field})

    assert "Content-Encoding" not in response.headers
    assert await response.read() == BIG


async def test_a_range_is_one_of_the_content_even_for_a_client_that_accepts_zstd(api: Api) -> None:
    entry = await api.put(BIG)
    response = await api.get(
        f"/v1/captures/{entry.id}/content", headers={"Accept-Encoding": "zstd", "Range": "bytes=10-19"}
    )

    assert await response.read() == BIG[10:20]


async def test_validators_differ_by_encoding_and_spare_the_transfer(api: Api) -> None:
    entry = await api.put(BIG)
    path = f"/v1/captures/{entry.id}/content"
    plain = (await api.get(path)).headers["ETag"]
    zstd = (await api.get(path, headers={"Accept-Encoding": "zstd"})).headers["ETag"]
    known = await api.get(path, headers={"If-None-Match": f'"other", W/{plain}'})

    assert plain != zstd
    assert (known.status, await known.read()) == (304, b"")
    assert (await api.get(path, headers={"If-None-Match": zstd})).status == 200


async def test_if_range_with_another_validator_answers_with_everything(api: Api) -> None:
    entry = await api.put(BIG)
    path = f"/v1/captures/{entry.id}/content"
    same = await api.get(path, headers={"Range": "bytes=0-4", "If-Range": f'"{entry.sha256}"'})
    other = await api.get(path, headers={"Range": "bytes=0-4", "If-Range": '"other"'})

    assert (same.status, other.status) == (206, 200)
    assert await other.read() == BIG


async def test_head_of_the_content_tells_its_length_and_sends_nothing(api: Api) -> None:
    entry = await api.put(BIG)
    response = await api.send("HEAD", f"/v1/captures/{entry.id}/content")

    assert (response.status, response.headers["Content-Length"]) == (200, str(len(BIG)))


async def test_captured_html_is_never_a_page_of_this_service(api: Api) -> None:
    entry = await api.put(b"<script>alert(1)</script>", Content_Type="text/html")
    response = await api.get(f"/v1/captures/{entry.id}/content")

    assert "sandbox" in response.headers["Content-Security-Policy"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not on the PATH")
async def test_curl_reads_the_same_ranges(api: Api) -> None:
    entry = await api.put(BIG)
    url = str(api.url(f"/v1/captures/{entry.id}/content"))
    for flags, expected in ((("-r", "100-199"), BIG[100:200]), (("-r", "-50"), BIG[-50:]), ((), BIG)):
        process = await asyncio.create_subprocess_exec(
            "curl", "-sS", "--fail", *flags, url, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()

        assert output == expected


async def test_the_frame_map_of_a_removed_capture_is_forgotten(api: Api) -> None:
    entries = [await api.put(BIG, call_id) for call_id in ("one", "two")]
    for entry in entries:
        await asyncio.gather(*(api.get(f"/v1/captures/{entry.id}/content") for _ in range(3)))
    assert len(api.service.archive.maps) == 2
    await api.send("DELETE", f"/v1/captures/{entries[0].id}")

    assert len(api.service.archive.maps) == 1
