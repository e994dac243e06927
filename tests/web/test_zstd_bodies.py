"""Bodies that come as one zstd frame: what is acknowledged decodes everywhere, and is acknowledged again."""

from __future__ import annotations

import random
import shutil
import subprocess

import pytest
import zstandard
from overspill.wire import Code
from overspill_service.store_format.frames import compress

from tests.core.contents import log, windowed
from tests.web.conftest import Api, path_of, problem

SMALL = log(5_000)
FAR = random.Random(3).randbytes(300_000) * 2
"""Half of it refers 300,000 bytes back."""


def unsized(content: bytes, *, window_log: int) -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=window_log, write_checksum=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return compressor.compress(content) + compressor.flush()


def with_dictionary(content: bytes) -> bytes:
    dictionary = zstandard.train_dictionary(4096, [b"line %d of some text\n" % n * 9 for n in range(2000)])
    return zstandard.ZstdCompressor(write_checksum=True, dict_data=dictionary).compress(content)


async def put(api: Api, content: bytes, body: bytes) -> tuple[int, str]:
    response = await api.send("PUT", path_of(content), data=body, headers={"Content-Encoding": "zstd"})
    return response.status, "" if response.ok else (await problem(response)).code


ACCEPTED = {
    "as the client makes it": (SMALL, compress(SMALL)),
    "a window of 1 MiB": (SMALL, windowed(compress(SMALL), len(SMALL), 20)),
    "a window of 2 MiB": (SMALL, windowed(compress(SMALL), len(SMALL), 21)),
    "a window of 8 MiB": (SMALL, windowed(compress(SMALL), len(SMALL), 23)),
    "no checksum": (SMALL, zstandard.ZstdCompressor(write_checksum=False).compress(SMALL)),
    "no content size": (SMALL, unsized(SMALL, window_log=23)),
    "a window smaller than the content": (FAR, unsized(FAR, window_log=17)),
    "two frames": (SMALL * 2, compress(SMALL) * 2),
}
REFUSED = {
    "a window of 16 MiB": (SMALL, windowed(compress(SMALL), len(SMALL), 24), 415, Code.UNSUPPORTED_ENCODING),
    "a window of 128 MiB": (SMALL, windowed(compress(SMALL), len(SMALL), 27), 415, Code.UNSUPPORTED_ENCODING),
    "a window of 256 MiB": (SMALL, windowed(compress(SMALL), len(SMALL), 28), 415, Code.UNSUPPORTED_ENCODING),
    "a window of 2 GiB": (SMALL, windowed(compress(SMALL), len(SMALL), 31), 415, Code.UNSUPPORTED_ENCODING),
    "no content size": (SMALL, unsized(SMALL, window_log=27), 415, Code.UNSUPPORTED_ENCODING),
    "a dictionary": (SMALL, with_dictionary(SMALL), 422, Code.DAMAGED_ENCODING),
    "offsets beyond the window": (
        FAR,
        windowed(compress(FAR[:590_000]), 590_000, 10),
        422,
        Code.DAMAGED_ENCODING,
    ),
}


@pytest.mark.skipif(shutil.which("zstd") is None, reason="the zstd program is not on the PATH")
@pytest.mark.parametrize(("content", "body"), ACCEPTED.values(), ids=ACCEPTED)
async def test_an_accepted_frame_is_served_so_that_zstd_decodes_it(
    api: Api, content: bytes, body: bytes
) -> None:
    assert [await put(api, content, body) for _ in range(2)] == [(201, ""), (200, "")]

    response = await api.get(f"{path_of(content)}/content", headers={"Accept-Encoding": "zstd"})
    stored = await response.read()
    decoded = subprocess.run(["zstd", "-dc"], input=stored, capture_output=True, check=True).stdout
    assert decoded == content
    assert await (await api.get(f"{path_of(content)}/content")).read() == content


@pytest.mark.parametrize(("content", "body", "status", "code"), REFUSED.values(), ids=REFUSED)
async def test_a_refused_frame_is_refused_alike_where_its_content_is_known(
    api: Api, content: bytes, body: bytes, status: int, code: Code
) -> None:
    first = await put(api, content, body)
    await api.put(content)
    again = await put(api, content, body)

    assert first == again == (status, code)


async def test_a_body_that_is_no_single_frame_needs_memory_also_where_its_content_is_known(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.resources.memory_budget.QUEUE_SECONDS", 0.05)
    await api.put(SMALL)
    large = api.service.archive.memory.large
    async with large.shares("another", large.largest_grant):
        assert await put(api, SMALL, unsized(SMALL, window_log=23)) == (503, Code.OVERLOADED)
        assert await put(api, SMALL, compress(SMALL)) == (200, "")
