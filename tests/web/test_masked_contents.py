"""A tenant whose secrets the service masks: what is stored has none, however it comes."""

from __future__ import annotations

import base64
import hashlib
import random
import tracemalloc
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from overspill import Client, Guard, Policy, wire
from overspill.redaction.masking import Redaction
from overspill.redaction.redactor import Redactor
from overspill.wire import Code, Header, Outcome, Path
from overspill_service.archive.recovery.entries import recover
from overspill_service.catalog.records import Entry
from overspill_service.store_format.screening import Screen

from tests.redaction.corpus import pem
from tests.web.conftest import id_of, path_of, problem
from tests.web.test_secrets import CODINGS, LINES, SECRET, headers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path as FilePath

    from tests.web.conftest import Api

OTHER_SECRET = b"ghp_" + b"Xy9z" * 9
KEY = pem(random.Random(7), lines=40).encode()
CONTENTS = {
    "a secret alone": SECRET,
    "at the end": LINES + b"token " + SECRET + b"\n",
    "at the beginning": SECRET + b"\n" + LINES,
    "a key of many lines": LINES + KEY + b"\n" + LINES,
    "bytes that are not UTF-8": b"\xff\xfe\x00" + SECRET + b"\x00\n" + bytes(range(256)) * 200,
    "UTF-16": f"\ufeff{LINES.decode()}{SECRET.decode()}\n".encode("utf-16-le"),
    "none": LINES,
}
KIND = Redaction.TAG


@pytest.fixture
async def start_tagging(start_api: Callable[..., Any], tmp_path: FilePath) -> Callable[..., Any]:
    async def start(redaction: str = "tag", **settings: Any) -> Api:
        tenants = tmp_path / "tenants.toml"
        tenants.write_text(f'[[tenants]]\nname = "default"\nredaction = "{redaction}"\n')
        api: Api = await start_api(tenants=tenants, **settings)
        return api

    return start


@pytest.fixture
async def tagging(start_tagging: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Api:
    monkeypatch.setattr("overspill_service.archive.uploading.SEGMENT_SIZE", 64 * 1024)
    api: Api = await start_tagging()
    return api


def masked(content: bytes, redaction: Redaction = Redaction.TAG) -> bytes:
    return Redactor(redaction).redact(content).text


async def content_of(api: Api, entry: wire.Entry) -> bytes:
    return await (await api.get(f"/v1/captures/{entry.id}/content")).read()


async def stored(api: Api, method: str, path: str, **request: Any) -> wire.Entry:
    answer = await api.send(method, path, **request)
    assert answer.status in (200, 201), await answer.text()
    return msgspec.json.decode(await answer.read(), type=wire.Entry)


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
async def test_what_is_stored_is_the_masked_content(
    tagging: Api, method: str, coding: str, content: bytes
) -> None:
    expected = masked(content)
    path = Path.CAPTURES if method == "POST" else path_of(content, "")
    entry = await stored(tagging, method, path, data=CODINGS[coding](content), headers=headers(coding))

    assert await content_of(tagging, entry) == expected
    assert (entry.size, entry.sha256) == (len(expected), hashlib.sha256(expected).hexdigest())
    assert entry.lines == expected.count(b"\n") + (not expected.endswith(b"\n"))
    assert entry.id == (id_of(expected, "") if method == "POST" else id_of(content, ""))
    assert (wire.REDACTED_LABEL in entry.labels) is (expected != content)


@pytest.mark.parametrize("size", [1, 7, 4096])
async def test_a_secret_is_masked_wherever_the_body_is_cut(tagging: Api, size: int) -> None:
    content = b"x" * 5_000 + b" " + SECRET + b"\n" + KEY

    async def body() -> AsyncIterator[bytes]:
        for at in range(0, len(content), size):
            yield content[at : at + size]

    entry = await stored(tagging, "POST", Path.CAPTURES, data=body())

    assert await content_of(tagging, entry) == masked(content)


async def test_the_entry_says_what_was_masked_by_the_client_and_by_the_service(tagging: Api) -> None:
    told = {Header.LABEL + wire.REDACTED_LABEL: "acme=1, github-token=2, lies"}
    entry = await tagging.put(SECRET + b"\n" + KEY + b"\n", **told)
    plain = await tagging.put(LINES)

    assert entry.labels == {wire.REDACTED_LABEL: "acme=1, github-token=3, private-key=1"}
    assert plain.labels == {}


@pytest.mark.parametrize("coding", ["", "gzip"])
async def test_an_announced_digest_is_that_of_what_was_sent(tagging: Api, coding: str) -> None:
    sent = hashlib.sha256(SECRET)
    announced = {Header.REPR_DIGEST: wire.encode_digest(sent.digest())} | headers(coding)
    entry = await stored(tagging, "PUT", path_of(SECRET), data=CODINGS[coding](SECRET), headers=announced)
    wrong = {Header.REPR_DIGEST: wire.encode_digest(hashlib.sha256(masked(SECRET)).digest())}
    refused = await tagging.send("PUT", path_of(OTHER_SECRET), data=OTHER_SECRET, headers=wrong)

    assert entry.sent_sha256 == sent.hexdigest()
    assert entry.sha256 == hashlib.sha256(masked(SECRET)).hexdigest()
    assert (await problem(refused)).code == Code.DIGEST_MISMATCH


async def test_only_who_sent_a_secret_is_told_the_digest_of_it(tagging: Api) -> None:
    digest = base64.b64encode(hashlib.sha256(SECRET).digest()).decode()
    entry = await tagging.put(SECRET, Repr_Digest=f"sha-256=:{digest}:")
    texts = [
        await (await tagging.get(path)).text()
        for path in (Path.CAPTURES, f"/v1/captures/{entry.id}", f"/v1/captures/{entry.id}/summary")
    ]

    assert not any(hashlib.sha256(SECRET).hexdigest() in text for text in texts)


async def test_the_same_content_again_is_there_already_and_another_is_a_conflict(tagging: Api) -> None:
    path = path_of(SECRET)
    answers = [
        (await tagging.send("PUT", path, data=content)).status
        for content in (SECRET, SECRET, OTHER_SECRET, b"another", masked(SECRET))
    ]

    assert answers == [201, 200, 409, 409, 200]


async def test_contents_that_differ_in_a_secret_are_one_posted_capture(tagging: Api) -> None:
    entries = [
        await stored(tagging, "POST", Path.CAPTURES, data=content + b"\n" + LINES)
        for content in (SECRET, SECRET, OTHER_SECRET)
    ]

    assert len({entry.id for entry in entries}) == 1


async def test_a_retry_is_known_after_the_tenants_choice_has_changed(
    start_tagging: Callable[..., Any], tmp_path: FilePath
) -> None:
    folder = {"store": f"file://{tmp_path}/objects", "catalog": f"sqlite://{tmp_path}/catalog.db"}

    async def statuses(redaction: str) -> list[int]:
        api = await start_tagging(redaction, **folder)
        sent = [await api.send("PUT", path_of(each), data=each) for each in (SECRET, OTHER_SECRET)]
        sent.append(await api.send("PUT", path_of(SECRET), data=OTHER_SECRET))
        await api.stop()
        return [answer.status for answer in sent]

    assert await statuses("off") == [201, 201, 409]
    assert await statuses("tag") == [200, 200, 409]
    assert await statuses("off") == [200, 200, 409]


async def test_a_retry_is_known_after_the_masking_has_ended(
    start_tagging: Callable[..., Any], tmp_path: FilePath
) -> None:
    folder = {"store": f"file://{tmp_path}/objects", "catalog": f"sqlite://{tmp_path}/catalog.db"}
    for redaction in ("tag", "off", "mask"):
        api = await start_tagging(redaction, **folder)
        answer = await api.send("PUT", path_of(SECRET), data=SECRET)
        await api.stop()

        assert answer.status == (201 if redaction == "tag" else 200)


async def test_a_rebuilt_entry_knows_what_was_sent(tagging: Api) -> None:
    entry = await tagging.put(SECRET + b"\n" + LINES)
    archive = tagging.service.archive
    rebuilt = await recover(archive, "default", entry.id)
    known = await archive.catalog.get("default", entry.id)

    assert isinstance(rebuilt, Entry)
    assert rebuilt.sent == hashlib.sha256(SECRET + b"\n" + LINES).digest()
    assert rebuilt == known


async def test_stars_stand_for_secrets_where_a_tenant_wants_stars(start_tagging: Callable[..., Any]) -> None:
    api = await start_tagging("mask")
    entry = await api.put(SECRET + b" is the token\n")

    assert await content_of(api, entry) == b"******** is the token\n"


async def test_the_setting_holds_for_every_tenant_that_says_nothing_else(
    start_api: Callable[..., Any], tmp_path: FilePath
) -> None:
    api: Api = await start_api(redaction="tag")
    (tmp_path / "tenants.toml").write_text('[[tenants]]\nname = "default"\nredaction = "off"\n')
    other: Api = await start_api(redaction="tag", tenants=tmp_path / "tenants.toml")

    assert await content_of(api, await api.put(SECRET)) == masked(SECRET)
    assert await content_of(other, await other.put(SECRET)) == SECRET


async def test_a_masked_content_may_not_be_longer_than_a_capture(start_tagging: Callable[..., Any]) -> None:
    api = await start_tagging(max_capture_size=4_000)
    content = b"".join(b"a://b:Xy9z%d@h " % number for number in range(200))
    answer = await api.send("POST", Path.CAPTURES, data=content)

    assert len(content) < 4_000 < len(masked(content))
    assert (await problem(answer)).code == Code.CAPTURE_TOO_LARGE


@pytest.mark.parametrize("field", ["Overspill-Label-who", "Overspill-Status"])
async def test_secrets_in_what_describes_a_capture_are_masked_too(tagging: Api, field: str) -> None:
    entry = await stored(tagging, "PUT", path_of(b"x"), data=b"x", headers={field: f"by {SECRET.decode()}"})

    assert f"by {masked(SECRET).decode()}" in (entry.status, entry.labels.get("who"))
    assert entry.labels[wire.REDACTED_LABEL] == "github-token=1"


@pytest.mark.parametrize("field", ["Overspill-Session", "Overspill-Call-Id", "Overspill-Tool"])
async def test_a_secret_in_what_a_capture_is_found_by_is_refused(tagging: Api, field: str) -> None:
    answer = await tagging.send("PUT", path_of(b"x"), data=b"x", headers={field: SECRET.decode()})
    found = await problem(answer)

    assert (answer.status, found.code) == (422, Code.SECRETS_FOUND)
    assert SECRET.decode() not in str(found.detail)


@pytest.mark.parametrize("field", ["Overspill-Label-who", "Overspill-Status", "Overspill-Tool"])
async def test_a_tenant_that_refuses_secrets_refuses_them_in_metadata(
    start_tagging: Callable[..., Any], field: str
) -> None:
    api = await start_tagging("refuse")
    answer = await api.send("PUT", path_of(b"x"), data=b"x", headers={field: SECRET.decode()})

    assert (await problem(answer)).code == Code.SECRETS_FOUND


async def test_a_guard_that_masks_nothing_has_its_outputs_masked_and_stored(tagging: Api) -> None:
    output = (SECRET + b"\n" + LINES).decode()
    async with Client(f"http://127.0.0.1:{tagging.port}") as client:
        guarded = await Guard(client, Policy(redaction="off"), spool=False).process(output, tool="t")
        text = await client.content(str(guarded.capture))

    assert guarded.outcome is Outcome.CAPTURED
    assert text == masked(output.encode())


def test_masking_a_long_content_takes_little_memory() -> None:
    piece = (LINES + SECRET + b"\n")[-(1 << 20) :]
    screen = Screen("tag")
    tracemalloc.start()
    try:
        for _ in range(8):
            for _ in screen.feed(piece):
                pass
        screen.finish()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 2 * len(piece)
