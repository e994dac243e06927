"""Storing without the SDK: POST computes the id from session, call id and content."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import random
import shutil
from contextlib import AsyncExitStack
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import zstandard
from overspill import Client, wire
from overspill.wire import Code, Header
from overspill_service.archive.reservations import Reservation
from overspill_service.archive.upload_memory import SMALL_SEGMENT_BYTES, upload_memory
from overspill_service.archive.uploading import SEGMENT_SIZE, Upload
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.sqlite.catalog import SqliteCatalog
from overspill_service.errors import StoreUnavailable
from overspill_service.objects.memory import MemoryStore
from overspill_service.resources.cpu import CpuThreads
from overspill_service.resources.memory_budget import MemoryBudget
from overspill_service.store_format.ingest import Ingest
from overspill_service.store_format.object_keys import provisional_id

from tests.faults.traffic import ample_memory
from tests.web.conftest import Api, path_of, problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

LOG = b"".join(b"line %d\n" % number for number in range(5000))


@cache
def large() -> bytes:
    """More than a segment, which nothing makes smaller."""
    return random.Random(1).randbytes(40 * 2**20)


"""Three segments."""


async def post(api: Api, content: bytes, **headers: str) -> Any:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return await api.send("POST", "/v1/captures", data=content, headers=fields)


async def keys(api: Api) -> list[str]:
    return [each.key async for each in api.service.archive.store.list("v1/")]


async def test_a_posted_capture_has_the_id_that_the_sdk_gives_it(api: Api) -> None:
    session, call_id = "séance 1", "call/ö?#% 漢\U0001f600"
    response = await post(
        api,
        LOG,
        Overspill_Session=wire.encode_header(session),
        Overspill_Call_Id=wire.encode_header(call_id),
        Overspill_Tool="grep",
    )
    entry = await response.json()
    async with Client(str(api.url("")), session=session) as client:
        again = await client.put(LOG, call_id=call_id)

    assert response.status == 201
    assert response.headers["Location"] == f"/v1/captures/{entry['id']}"
    assert (entry["session"], entry["call_id"], entry["tool"]) == (session, call_id, "grep")
    assert (again.id, again.created.isoformat()[:26]) == (entry["id"], entry["created"][:26])
    assert len(await keys(api)) == 1


async def test_a_post_without_session_and_call_id_is_named_by_its_content(api: Api) -> None:
    entry = await (await post(api, LOG)).json()

    assert entry["id"] == wire.capture_id("", "", hashlib.sha256(LOG).digest())
    assert await (await api.get(f"/v1/captures/{entry['id']}/content")).read() == LOG


async def test_a_second_post_of_the_same_answers_200_and_stores_nothing(api: Api) -> None:
    first, second = await post(api, LOG), await post(api, LOG)

    assert (first.status, second.status) == (201, 200)
    assert second.headers["Location"] == first.headers["Location"]
    assert (await second.json())["created"] == (await first.json())["created"]
    assert len(await keys(api)) == 1


async def test_put_and_post_of_the_same_are_one_capture(api: Api) -> None:
    put = await api.put(LOG)
    response = await post(api, LOG, **{Header.CALL_ID: "call_0"})

    assert (response.status, (await response.json())["id"]) == (200, put.id)


async def test_of_many_equal_posts_at_once_all_succeed_and_one_is_stored(api: Api) -> None:
    answers = await asyncio.gather(*(post(api, LOG) for _ in range(20)))

    assert sorted(answer.status for answer in answers) == [200] * 19 + [201]
    assert len(await keys(api)) == 1


async def test_a_capture_of_several_segments_is_moved_to_its_id(api: Api) -> None:
    response = await post(api, large())
    entry = await response.json()
    content = await api.get(f"/v1/captures/{entry['id']}/content")

    assert response.status == 201
    assert hashlib.sha256(await content.read()).digest() == hashlib.sha256(large()).digest()
    assert {key.split("/")[2] for key in await keys(api)} == {entry["id"]}
    assert len(await keys(api)) == 3


async def test_several_segments_of_what_is_there_already_leave_nothing(api: Api) -> None:
    await post(api, large())
    before = await keys(api)

    assert (await post(api, large())).status == 200
    assert await keys(api) == before


@pytest.mark.parametrize(
    ("encoding", "encode"), [("gzip", gzip.compress), ("zstd", zstandard.ZstdCompressor().compress)]
)
async def test_the_id_is_that_of_the_decoded_content(api: Api, encoding: str, encode: Any) -> None:
    plain = await post(api, LOG)
    encoded = await post(api, encode(LOG), Content_Encoding=encoding)

    assert (encoded.status, encoded.headers["Location"]) == (200, plain.headers["Location"])


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (LOG, {Header.REPR_DIGEST: wire.encode_digest(bytes(32))}, 400, Code.DIGEST_MISMATCH),
        (LOG, {"Content-Encoding": "br"}, 415, Code.UNSUPPORTED_ENCODING),
        (LOG, {"Content-Encoding": "gzip"}, 422, Code.DAMAGED_ENCODING),
        (LOG, {"Content-Range": "bytes 0-4/5"}, 400, Code.INVALID_REQUEST),
        (LOG, {Header.TTL: "soon"}, 422, Code.INVALID_HEADER),
        (LOG, {Header.TTL: "99999999"}, 422, Code.INVALID_PARAMETER),
        (LOG, {"If-None-Match": "*"}, 412, Code.PRECONDITION_FAILED),
        (bytes(200_000), {}, 413, Code.CAPTURE_TOO_LARGE),
        (gzip.compress(bytes(200_000)), {"Content-Encoding": "gzip"}, 413, Code.CAPTURE_TOO_LARGE),
    ],
)
async def test_a_post_is_refused_as_a_put_is(
    start_api: Any, body: bytes, headers: dict[str, str], status: int, code: Code
) -> None:
    api: Api = await start_api(max_capture_size=100_000)
    for method, path in (("POST", "/v1/captures"), ("PUT", path_of(LOG))):
        if method == "PUT" and "If-None-Match" in headers:
            await api.put(LOG)
        response = await api.send(method, path, data=body, headers=headers)

        assert (response.status, (await problem(response)).code) == (status, code)
        if method == "POST":
            assert await keys(api) == []


async def test_a_post_over_the_quota_leaves_nothing(start_api: Any) -> None:
    api: Api = await start_api(max_captures=1)
    await api.put(b"first")
    response = await post(api, LOG)

    assert (response.status, (await problem(response)).code) == (507, Code.QUOTA_EXCEEDED)
    assert len(await keys(api)) == 1


async def test_a_client_that_hangs_up_during_a_post_leaves_nothing(api: Api) -> None:
    head = b"POST /v1/captures HTTP/1.1\r\nHost: localhost\r\nContent-Length: 41943040\r\n\r\n"
    _, writer = await asyncio.open_connection("127.0.0.1", api.port)
    writer.write(head + large()[: 36 * 2**20])
    await writer.drain()
    async with asyncio.timeout(30):
        while len(await keys(api)) < 1:  # noqa: ASYNC110  (the store sets no event)
            await asyncio.sleep(0.01)
    writer.close()
    await writer.wait_closed()
    async with asyncio.timeout(30):
        while api.service.places.uploads.free < api.service.settings.max_uploads:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    assert await keys(api) == []


class FailingStore(MemoryStore):
    """A store that fails every copy but the first, and no other operation."""

    def __init__(self, failure: Exception) -> None:
        super().__init__()
        self._failure, self._copies = failure, 0

    async def copy(self, key: str, new_key: str) -> None:
        self._copies += 1
        if self._copies > 1:
            raise self._failure
        await super().copy(key, new_key)


@pytest.mark.parametrize("failure", [StoreUnavailable("no"), KeyError("swept as an orphan")])
async def test_a_move_that_fails_half_way_leaves_nothing_under_either_id(failure: Exception) -> None:
    capture = "cap_" + "a" * 20
    store, cpu = FailingStore(failure), CpuThreads()
    upload = Upload(
        store,
        cpu,
        await ample_memory(),
        Reservation(SqliteCatalog(None), "acme", "a" * 16, Quota()),
        capture=provisional_id(),
    )

    async def body() -> AsyncIterator[bytes]:
        yield large()

    await upload.fill(Ingest(None, level=1, limit=2**30), body())
    with pytest.raises(StoreUnavailable):
        await upload.rekey(capture)
    assert len([each async for each in store.list("v1/")]) >= 2

    await upload.discard()
    assert [each async for each in store.list("v1/")] == []
    cpu.close()


async def test_an_upload_that_took_a_large_segment_goes_on_when_memory_gets_short() -> None:
    budget, store, cpu = MemoryBudget(256 * 2**20), MemoryStore(), CpuThreads()
    async with (
        upload_memory(budget, "acme", None, None) as memory,
        AsyncExitStack() as others,
    ):
        upload = Upload(
            store,
            cpu,
            memory,
            Reservation(SqliteCatalog(None), "acme", "a" * 16, Quota()),
            capture=provisional_id(),
        )

        async def body() -> AsyncIterator[bytes]:
            half = len(large()) // 2
            yield large()[:half]
            yield large()[half : half + 1]  # what came before it is stored by the time the next is asked for
            await others.enter_async_context(budget.reads.shares("other", budget.free - budget.missing))
            yield large()[half + 1 :]

        await upload.fill(Ingest(None, level=1, limit=2**30), body())
        await upload.rekey("cap_" + "a" * 20)

        assert upload.segments[0].stored_size > SEGMENT_SIZE
        assert SMALL_SEGMENT_BYTES < upload.segments[-1].stored_size < SEGMENT_SIZE
        await upload.discard()
    assert budget.free == budget.size
    cpu.close()


# --- curl -----------------------------------------------------------------------------------------


async def run(*command: str, data: bytes = b"") -> bytes:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate(data)
    assert process.returncode == 0
    return output


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not on the PATH")
async def test_one_line_of_curl_stores_a_file(api: Api, tmp_path: Path) -> None:
    file = tmp_path / "build.log"
    file.write_bytes(LOG)
    url = str(api.url("/v1/captures"))
    entry = json.loads(
        await run("curl", "-sS", "--fail", "--data-binary", f"@{file}", "-H", "Overspill-Call-Id: 7", url)
    )
    piped = json.loads(
        await run("curl", "-sS", "--fail", "--data-binary", "@-", url, data=b"\x89PNG\r\n\x1a\n\0")
    )

    assert entry["id"] == wire.capture_id("", "7", hashlib.sha256(LOG).digest())
    assert (entry["content_type"], entry["kind"]) == ("text/plain; charset=utf-8", "text")
    assert piped["content_type"] == "application/octet-stream"
    assert await run("curl", "-sS", "--fail", f"{url}/{entry['id']}/content") == LOG


SHELL = r"""
{ printf '%016x' ${#SESSION} | xxd -r -p; printf %s "$SESSION"
  printf '%016x' ${#CALL} | xxd -r -p; printf %s "$CALL"
  openssl dgst -sha256 -binary "$FILE"; } | openssl dgst -sha256 -binary | base32 | tr A-Z a-z | cut -c1-20
"""


@pytest.mark.skipif(
    not all(map(shutil.which, ("xxd", "openssl", "base32"))),
    reason="xxd, openssl or base32 is not on the PATH",
)
async def test_a_shell_computes_the_same_id(api: Api, tmp_path: Path) -> None:
    file = tmp_path / "build.log"
    file.write_bytes(LOG)
    script = f"SESSION=run-42 CALL=7 FILE={file}\n{SHELL}"
    output = await run("bash", "-c", script)
    response = await post(api, LOG, Overspill_Session="run-42", Overspill_Call_Id="7")

    assert (await response.json())["id"] == f"cap_{output.decode().strip()}"


async def test_the_recipe_of_the_page_gives_the_id() -> None:
    """Straight from FORMAT.md, with nothing of the package."""
    session, call = "séance".encode(), b"call_0"
    state = hashlib.sha256()
    for text in (session, call):
        state.update(len(text).to_bytes(8, "big") + text)
    state.update(hashlib.sha256(LOG).digest())
    name = "cap_" + base64.b32encode(state.digest()).decode()[:20].lower()

    assert name == wire.capture_id("séance", "call_0", hashlib.sha256(LOG).digest())
