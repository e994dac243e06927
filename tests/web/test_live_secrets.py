"""Live captures of a tenant that stores no secrets: none is accepted, however the appends are cut."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from overspill import Client, wire
from overspill.errors import SecretsFound
from overspill.redaction.redactor import Redactor
from overspill.wire import Code, State
from overspill_service.live.flusher import SEGMENT_BYTES

from tests.redaction.corpus import pem
from tests.web.live_producer import CAPTURE, Producer
from tests.web.test_masked_contents import masked
from tests.web.test_secrets import LINES, SECRET

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.web.conftest import Api

KEY = pem(random.Random(7), lines=120).encode()
"""Longer than the longest append. It is sent again with each append, so shorter appends get another."""
KEYS = {1: pem(random.Random(7), lines=8).encode(), 7: pem(random.Random(7), lines=40).encode()}
LAST = {"Upload-Complete": "?1"}


@pytest.fixture(params=["mask", "tag", "refuse"])
async def api(start_api: Callable[..., Any], tmp_path: Path, request: pytest.FixtureRequest) -> Api:
    tenants = tmp_path / "tenants.toml"
    tenants.write_text(f'[[tenants]]\nname = "default"\nredaction = "{request.param}"\n')
    started: Api = await start_api(tenants=tenants)
    return started


async def sent(producer: Producer, content: bytes, size: int) -> str:
    """Append a content in pieces, the last one as the last. Return the code of the refusal, if any."""
    for stop in [*range(size, len(content), size), len(content)]:
        is_last = stop == len(content)
        _, answer = await producer.try_append(content[producer.offset : stop], **LAST if is_last else {})
        if "code" in answer:
            return str(answer["code"])
    return ""


async def content_of(producer: Producer) -> bytes:
    return await (await producer.api.get(f"{producer.path}/content")).read()


@pytest.mark.parametrize("size", [1, 7, 5_000])
@pytest.mark.parametrize("secret", [SECRET, KEY, b'"SecretAccessKey": "' + b"aB3/" * 10 + b'"'])
async def test_no_part_of_a_secret_is_accepted_wherever_the_appends_are_cut(
    producer: Producer, secret: bytes, size: int
) -> None:
    if secret == KEY:
        secret = KEYS.get(size, KEY)
    before = b"one\ntwo three "
    refusal = await sent(producer, before + secret + b"\nmore\n", size)

    assert refusal == Code.SECRETS_FOUND
    assert (before + secret).startswith(await content_of(producer))
    assert masked(await content_of(producer) + b"\n") == await content_of(producer) + b"\n"
    assert b"aB3" not in await content_of(producer)


@pytest.mark.parametrize("size", [3, 4_096])
async def test_what_has_no_secret_is_accepted_whole(producer: Producer, size: int) -> None:
    content = LINES[: 300 * size] + b"\xff\xfe not UTF-8, and a last word"
    refusal = await sent(producer, content, size)
    ended = await producer.complete()

    assert (refusal, ended["size"]) == ("", len(content))
    assert await content_of(producer) == content


async def test_the_last_word_waits_for_what_follows_or_for_the_end(producer: Producer) -> None:
    waiting = await producer.append(b"Continue? yes")
    unfinished = await producer.complete(expected=409, offset=13)
    _, ended = await producer.try_append(b"yes", **LAST)

    assert (waiting["accepted"], ended["accepted"]) == (10, 13)
    assert (unfinished["code"], unfinished["offset"]) == (Code.WRONG_OFFSET, 10)
    assert (await producer.complete())["state"] == State.COMPLETE


async def test_a_secret_is_known_by_what_is_before_it_in_the_object_store(
    api: Api, producer: Producer
) -> None:
    lines = LINES * (SEGMENT_BYTES // len(LINES) + 1)
    await producer.append(lines[: SEGMENT_BYTES - 23] + b'\n"SecretAccessKey":    ')
    await api.service.flusher.start("default", CAPTURE)
    durable = (await producer.append(b""))["durable"]
    refused = await producer.append(b'"' + b"aB3/" * 10 + b'" ', expected=422)

    assert durable == producer.offset == SEGMENT_BYTES
    assert refused["code"] == Code.SECRETS_FOUND


async def test_an_append_elsewhere_is_told_where_the_content_ends(producer: Producer) -> None:
    await producer.append(b"one\n")
    producer.offset = 2
    refused = await producer.append(b"e\ntwo\n", expected=409)

    assert (refused["code"], refused["offset"]) == (Code.WRONG_OFFSET, 4)


@pytest.mark.parametrize("kept", ["Overspill_Session", "Overspill_Call_Id"])
async def test_a_live_capture_is_not_found_by_a_secret(api: Api, kept: str) -> None:
    assert (await Producer(api).begin(422, **{kept: SECRET.decode()}))["code"] == Code.SECRETS_FOUND


async def test_what_is_said_at_the_end_has_no_secrets(api: Api, producer: Producer) -> None:
    is_refusing = api.service.directory.tenant("default").limits.redaction == "refuse"
    told = {"status": f"failed with {SECRET.decode()}", "labels": {"token": SECRET.decode()}}
    ended = await producer.complete(expected=422 if is_refusing else 200, **told)

    assert SECRET.decode() not in str(ended)
    if not is_refusing:
        assert ended["labels"][wire.REDACTED_LABEL] == "github-token=2"


async def test_a_live_capture_of_the_sdk_that_masks_is_accepted_to_its_last_word(api: Api) -> None:
    async with Client(f"http://127.0.0.1:{api.port}") as client:
        async with client.live(redactor=Redactor()) as out:
            await out.write(LINES.decode() + "token " + SECRET.decode() + " and then")
            await out.flush()
            await out.write("\nDone")
        content = await client.content(out.id)

    assert out.entry is not None
    assert content == LINES + b"token [REDACTED github-token] and then\nDone"


async def test_a_live_capture_of_the_sdk_that_masks_nothing_ends_with_its_first_secret(api: Api) -> None:
    async with Client(f"http://127.0.0.1:{api.port}") as client:
        out = client.live()

        async def produce() -> None:
            async with out:
                await out.write("one\n")
                await out.flush()
                await out.write("token " + SECRET.decode() + "\n")
                await out.flush()

        with pytest.raises(SecretsFound, match="mask"):
            await produce()
        content = await client.content(out.id)

    assert content == b"one\n"
