"""Damaged objects: a read says so or breaks off, and never gives a wrong byte."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from aiohttp import ClientError
from overspill import wire
from overspill.wire import Code
from overspill_service.archive.archive import CACHED_MAPS, CONCURRENT_TAILS
from overspill_service.archive.frame_map_cache import FrameMapCache
from overspill_service.catalog.records import Entry
from overspill_service.errors import CaptureDamaged
from overspill_service.store_format.frames import FRAME_SIZE
from overspill_service.store_format.index import parse

from tests.faults.traffic import MIB, code_of, content_of, noise, until, usage_of
from tests.web.conftest import Api, named, path_of

LOG = noise(9_000 * 32).hex("\n", 32).encode() + noise(5 * MIB // 8, 1)
"""Frames of both kinds: compressed ones, and stored ones, where a flipped bit is a flipped bit of content."""
BYSTANDER = b"not affected\n"
READS = ("content", "head?lines=5", "tail?lines=5", "lines?start=6000&end=6009", "grep?pattern=beef")

Damage = Callable[[Path], None]


def flip(share: float) -> Damage:
    """Change one bit at this share of a file."""

    def damage(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[round(share * (len(data) - 1))] ^= 0x10
        path.write_bytes(data)

    return damage


def truncate(share: float) -> Damage:
    def damage(path: Path) -> None:
        data = path.read_bytes()
        path.write_bytes(data[: int(share * len(data))])

    return damage


DAMAGES = [
    *(pytest.param(flip(share), id=f"bit flipped at {share}") for share in (0, 0.02, 0.2, 0.4, 0.6, 0.95, 1)),
    *(pytest.param(truncate(share), id=f"cut at {share}") for share in (0, 0.01, 0.5, 0.999)),
    pytest.param(Path.unlink, id="deleted"),
]
KINDS = {"flipped": flip(0.5), "cut": truncate(0.5), "deleted": Path.unlink}


@pytest.fixture
async def api(start_api: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Api:
    """A service with two captures: `LOG` in several segments, and `BYSTANDER`."""
    monkeypatch.setattr("overspill_service.archive.uploading.SEGMENT_SIZE", 300_000)
    started: Api = await start_api(store=f"file://{tmp_path}/objects")
    await until(started.service.archive.catalog.is_complete)
    await started.put(BYSTANDER)
    await started.put(LOG)
    return started


def segments(tmp_path: Path) -> list[Path]:
    capture = path_of(LOG).rpartition("/")[2]
    return sorted(path for path in (tmp_path / "objects").rglob(f"{capture}*") if path.is_file())


async def forget_frame_maps(api: Api) -> None:
    """Have them read from the objects again: neither cached nor in the catalog."""
    archive = api.service.archive
    archive.maps = FrameMapCache(CACHED_MAPS)
    get = archive.catalog.get

    async def without_index(tenant: str, capture: str) -> Any:
        entry: Any = await get(tenant, capture)
        return msgspec.structs.replace(entry, index=None)

    archive.catalog.get = without_index  # type: ignore[method-assign]


@pytest.mark.parametrize("is_cached", [True, False], ids=["map known", "map read"])
@pytest.mark.parametrize("damage", DAMAGES)
async def test_no_read_of_a_damaged_capture_gives_a_wrong_byte(
    api: Api, tmp_path: Path, damage: Damage, is_cached: bool
) -> None:
    right = {read: await (await api.get(f"{path_of(LOG)}/{read}")).read() for read in READS}
    assert len(segments(tmp_path)) > 2
    if not is_cached:
        await forget_frame_maps(api)
    damage(segments(tmp_path)[1])

    for read in READS:
        assert await body_or_none(api, f"{path_of(LOG)}/{read}") in (None, right[read])
    for start, stop in ranges():
        headers = {"Range": f"bytes={start}-{stop - 1}"}
        assert await body_or_none(api, f"{path_of(LOG)}/content", headers) in (None, LOG[start:stop])
    assert await content_of(api, path_of(BYSTANDER)) == BYSTANDER


async def test_a_read_whose_first_segment_is_gone_asks_for_no_more_of_many(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, asked = api.service.archive, []
    entry = await archive.catalog.get("default", path_of(LOG).rpartition("/")[2])
    assert isinstance(entry, Entry)
    many = msgspec.structs.replace(entry, index=None, segments=[*entry.segments] * 40)

    async def gone(key: str, *_: int) -> bytes:
        asked.append(key)
        await asyncio.sleep(0)
        raise KeyError(key)

    monkeypatch.setattr(archive.store, "read", gone)
    with pytest.raises(CaptureDamaged):
        await archive.reader(many)
    for _ in many.segments:
        await asyncio.sleep(0)

    assert len(asked) <= CONCURRENT_TAILS < len(many.segments)


def ranges(size: int = len(LOG)) -> Iterator[tuple[int, int]]:
    for start in range(0, size, FRAME_SIZE // 2):
        yield start, min(start + 100, size)


async def body_or_none(api: Api, path: str, headers: dict[str, str] | None = None) -> bytes | None:
    """The body of a good answer; None for a problem of the right code, or an answer that broke off."""
    try:
        response = await api.get(path, headers=headers)
        if response.status == 500:
            assert await code_of(response) == Code.CAPTURE_DAMAGED
            return None
        assert response.status in (200, 206)
        return await response.read()
    except ClientError:
        return None


@pytest.mark.parametrize("damage", DAMAGES)
async def test_stored_frames_that_are_damaged_do_not_decode(api: Api, tmp_path: Path, damage: Damage) -> None:
    damage(segments(tmp_path)[1])

    stored = await body_or_none(api, f"{path_of(LOG)}/content", {"Accept-Encoding": "zstd"})
    assert stored is None or decoded(stored) in (None, LOG)


def decoded(stored: bytes) -> bytes | None:
    try:
        return zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(stored)
    except zstandard.ZstdError:
        return None


@pytest.mark.parametrize("damage", KINDS.values(), ids=KINDS)
async def test_damage_in_the_first_frames_is_answered_with_a_problem(
    api: Api, tmp_path: Path, damage: Damage
) -> None:
    damage(segments(tmp_path)[0])
    response = await api.get(f"{path_of(LOG)}/content")

    assert (response.status, await code_of(response)) == (500, Code.CAPTURE_DAMAGED)


@pytest.mark.parametrize("place", [0, 1, -1])
@pytest.mark.parametrize(
    ("method", "damage"),
    [
        *(pytest.param("PUT", *each.values, id=f"PUT-{each.id}") for each in DAMAGES),
        # It has its id at the end only. What finds the damage then is the same.
        *(pytest.param("POST", damage, id=f"POST-{name}") for name, damage in KINDS.items()),
    ],
)
async def test_a_damaged_capture_is_mended_by_sending_it_again(
    api: Api, tmp_path: Path, damage: Damage, place: int, method: str
) -> None:
    damaged = segments(tmp_path)
    await api.send("PATCH", path_of(LOG), json={"ttl": 80 * 24 * 3600})
    promised = (await (await api.get(path_of(LOG))).json())["expires"]
    damage(damaged[place])
    path, headers = (path_of(LOG), {}) if method == "PUT" else (wire.Path.CAPTURES, named("call_0", {}))
    again = [await api.send(method, path, data=LOG, headers=headers) for _ in range(2)]

    assert [answer.status for answer in again] == [201, 200]
    assert await content_of(api, path_of(LOG)) == LOG
    assert not any(path.exists() for path in damaged)
    assert (await (await api.get(path_of(LOG))).json())["expires"] >= promised
    assert (await usage_of(api)).stored_size == await stored_in(api)


async def stored_in(api: Api) -> int:
    """The bytes of all segments in the store."""
    listed = [each async for each in api.service.archive.store.list("v1/")]
    return sum(each.size for each in listed if "-expires-" not in each.key)


async def test_a_whole_capture_is_not_stored_again(api: Api, tmp_path: Path) -> None:
    stored = segments(tmp_path)

    assert (await api.send("PUT", path_of(LOG), data=LOG)).status == 200
    assert segments(tmp_path) == stored


# --- whole frames in the wrong place --------------------------------------------------------------


def even(seed: int) -> bytes:
    """Content of three frames that have the same size, stored too, and the same number of newlines."""
    return b"".join(
        noise(FRAME_SIZE - 4, 10 * seed + part).replace(b"\n", b"?") + b"even" for part in range(3)
    )


EVEN, OTHER = even(1), even(2)
EVEN_READS = (*READS, "summary", "grep?pattern=even&from_end=true")


def exchange_objects(first: Path, second: Path) -> None:
    here, there = first.read_bytes(), second.read_bytes()
    first.write_bytes(there)
    second.write_bytes(here)


def exchange_frames(path: Path) -> None:
    """Swap the first two frames of an object."""
    data = path.read_bytes()
    index = parse(data)
    size, following = (frame.stored_size for frame in index.frames[:2])
    assert size == following
    path.write_bytes(data[size : 2 * size] + data[:size] + data[2 * size :])


def objects_of(tmp_path: Path, content: bytes) -> Path:
    capture = path_of(content).rpartition("/")[2]
    [found] = [path for path in (tmp_path / "objects").rglob(f"{capture}*") if path.is_file()]
    return found


@pytest.fixture
async def even_api(start_api: Callable[..., Any], tmp_path: Path) -> Api:
    """A service with two captures of one segment each that nothing but their bytes tells apart."""
    started: Api = await start_api(store=f"file://{tmp_path}/objects")
    await until(started.service.archive.catalog.is_complete)
    await started.put(EVEN)
    await started.put(OTHER)
    return started


@pytest.mark.parametrize("is_cached", [True, False], ids=["map known", "map read"])
@pytest.mark.parametrize("what", ["objects", "frames"])
async def test_frames_in_the_wrong_place_are_never_served(
    even_api: Api, tmp_path: Path, what: str, is_cached: bool
) -> None:
    right = {read: await (await even_api.get(f"{path_of(EVEN)}/{read}")).read() for read in EVEN_READS}
    if not is_cached:
        await forget_frame_maps(even_api)
    if what == "objects":
        exchange_objects(objects_of(tmp_path, EVEN), objects_of(tmp_path, OTHER))
    else:
        exchange_frames(objects_of(tmp_path, EVEN))

    for read in EVEN_READS:
        assert await body_or_none(even_api, f"{path_of(EVEN)}/{read}") in (None, right[read])
    for start, stop in ranges(len(EVEN)):
        headers = {"Range": f"bytes={start}-{stop - 1}"}
        assert await body_or_none(even_api, f"{path_of(EVEN)}/content", headers) in (None, EVEN[start:stop])
    assert await body_or_none(even_api, f"{path_of(EVEN)}/content", {"Accept-Encoding": "zstd"}) is None
    assert await body_or_none(even_api, f"{path_of(EVEN)}/content") is None


async def test_damage_that_is_found_while_the_body_comes_is_mended_by_the_next_one(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.archive.verification.VERIFY_SECONDS", 0)
    flip(0.5)(segments(tmp_path)[1])
    answers = [await api.send("PUT", path_of(LOG), data=LOG) for _ in range(3)]

    assert [answer.status for answer in answers] == [503, 201, 200]
    assert "Retry-After" in answers[0].headers
    assert await content_of(api, path_of(LOG)) == LOG
