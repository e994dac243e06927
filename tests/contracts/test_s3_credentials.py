"""Credentials of the object store that change while the service runs."""

from __future__ import annotations

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from overspill_service.errors import StoreUnavailable
from overspill_service.objects.s3 import Location, S3Store, credentials

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.servers.swift import S3Server

KEY = "v1/tenant/cap_aaaaaaaaaaaaaaaaaaaa/upload-00000"


class Chain:
    """The file of the AWS chain that has the credentials."""

    def __init__(self, file: Path, server: S3Server) -> None:
        self.file, self._server = file, server

    def give(self, secret: str | None = None) -> None:
        """Write the server's credentials, or the same with another secret."""
        self.file.write_text(
            f"[default]\naws_access_key_id = {self._server.access_key}\n"
            f"aws_secret_access_key = {secret or self._server.secret_key}\n"
        )


@pytest.fixture
def chain(s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Chain:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return Chain(tmp_path / "credentials", s3_server)


@pytest.fixture
async def store(chain: Chain, s3_url: str) -> AsyncIterator[S3Store]:
    """A store that was opened with credentials that are not valid any more."""
    chain.give("former")
    made = S3Store(Location.from_url(s3_url))
    yield made
    await made.close()


async def test_requests_use_what_the_chain_has_once_the_former_credentials_are_refused(
    chain: Chain, store: S3Store
) -> None:
    chain.give()

    assert await store.put(KEY, [b"content"])


async def test_listings_use_what_the_chain_has_once_the_former_credentials_are_refused(
    chain: Chain, store: S3Store
) -> None:
    chain.give()

    assert [stored async for stored in store.list("")] == []


async def test_a_probe_uses_what_the_chain_has_although_its_refusal_has_no_code(
    chain: Chain, store: S3Store
) -> None:
    chain.give()

    await store.ping()


class TokenService:
    """Gives credentials of a role until it `refuses`. It answers once it `may_answer`."""

    def __init__(self, server: S3Server) -> None:
        self._server = server
        self.signed: list[str] = []
        self.refuses = False
        self.lasts = timedelta(hours=1)
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def answer(self, request: web.Request) -> web.Response:
        self.signed.append(request.headers["Authorization"])
        await self.may_answer.wait()
        if self.refuses:
            return web.Response(status=403, text="<Response><Error><Code>No</Code></Error></Response>")
        facts = {
            "AccessKeyId": self._server.access_key,
            "SecretAccessKey": self._server.secret_key,
            "SessionToken": "x",
            "Expiration": (datetime.now(UTC) + self.lasts).isoformat(),
        }
        parts = "".join(f"<{name}>{value}</{name}>" for name, value in facts.items())
        result = f"<AssumeRoleResult><Credentials>{parts}</Credentials></AssumeRoleResult>"
        return web.Response(text=f"<AssumeRoleResponse>{result}</AssumeRoleResponse>")


@pytest.fixture
async def tokens(
    chain: Chain, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[TokenService]:
    """What gives the role of the profile `role`."""
    chain.give()
    config = chain.file.with_name("config")
    config.write_text("[profile role]\nrole_arn = arn:aws:iam::1:role/overspill\nsource_profile = default\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    service, app = TokenService(s3_server), web.Application()
    app.router.add_post("/", service.answer)
    async with TestServer(app) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", str(server.make_url("")))
        yield service
        service.may_answer.set()


async def test_a_role_is_asked_for_in_the_region_of_the_store_url(tokens: TokenService) -> None:
    tokens.refuses = True
    store = S3Store(Location.from_url("s3://bucket?profile=role&region=eu-central-1"))
    with pytest.raises(StoreUnavailable, match="credentials could not be renewed"):
        await store.put(KEY, [b"content"])
    await store.close()

    assert "/eu-central-1/sts/" in tokens.signed[0]


async def test_a_role_that_nobody_gives_now_leaves_its_former_credentials(tokens: TokenService) -> None:
    chain = credentials.ChainCredentials("role", "eu-central-1")
    former = await chain.current()
    tokens.refuses = True

    assert not await chain.have_changed(former)
    assert await chain.current() == former


@pytest.fixture
async def role_store(tokens: TokenService, s3_url: str) -> AsyncIterator[S3Store]:
    """A store that is reached in the role, whose credentials it does not have yet."""
    made = S3Store(Location.from_url(f"{s3_url}&profile=role"))
    yield made
    await made.close()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("lasts", [timedelta(minutes=5), timedelta(minutes=12)])
async def test_credentials_serve_until_their_end_while_their_renewal_hangs(
    tokens: TokenService, role_store: S3Store, lasts: timedelta
) -> None:
    tokens.lasts = lasts
    await role_store.put(KEY, [b"content"])
    tokens.may_answer.clear()

    assert await role_store.read(KEY, 0, 7) == b"content"
    assert [stored.key async for stored in role_store.list("")] == [KEY]


@pytest.mark.timeout(60)
async def test_a_renewal_that_hangs_fails_the_requests_that_need_it_and_holds_up_no_other_work(
    tokens: TokenService, role_store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "ANSWER_SECONDS", 0.01)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    tokens.may_answer.clear()

    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="credentials could not be renewed"):
            await role_store.ping()
        with pytest.raises(StoreUnavailable, match="credentials could not be renewed"):
            await role_store.list("").__anext__()
    assert await asyncio.to_thread(lambda: "other work") == "other work"


async def test_credentials_that_are_renewed_late_are_used(
    tokens: TokenService, role_store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "ANSWER_SECONDS", 0.01)
    tokens.may_answer.clear()
    with pytest.raises(StoreUnavailable, match="credentials could not be renewed"):
        await role_store.ping()
    monkeypatch.setattr(credentials, "ANSWER_SECONDS", 30)
    tokens.may_answer.set()

    await role_store.ping()


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"AWS_CONFIG_FILE": "{folder}/process"}, "/no/program"),
        ({"AWS_PROFILE": "nobody"}, "nobody"),
        ({"AWS_CONFIG_FILE": "{folder}/broken"}, "broken"),
        ({"AWS_ACCESS_KEY_ID": "alone"}, "AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_told_at_the_start(
    variables: dict[str, str], named: str, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    (chain.file.parent / "broken").write_text("[default")
    (chain.file.parent / "process").write_text("[default]\ncredential_process = /no/program\n")
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(folder=chain.file.parent))

    with pytest.raises(ValueError, match=f"the AWS configuration cannot be used: .*{named}"):
        S3Store(Location.from_url("s3://bucket?endpoint=http://127.0.0.1:9"))


async def test_credentials_that_come_after_the_start_are_used(chain: Chain, s3_url: str) -> None:
    store = S3Store(Location.from_url(s3_url))
    chain.give()

    await store.ping()
    assert [stored async for stored in store.list("")] == []
    await store.close()


@pytest.mark.parametrize(
    "content",
    ["[default", *(f"[default]\ncredential_process = {each}" for each in ("/no/program", "echo x"))],
)
async def test_a_chain_that_is_broken_leaves_the_former_credentials(
    chain: Chain, store: S3Store, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    chain.file.write_text(content)

    with pytest.raises(StoreUnavailable, match="refuses the credentials"):
        await store.put(KEY, [b"content"])
    assert "the former ones stay in use" in caplog.text


async def test_a_program_of_the_chain_that_hangs_is_asked_once_and_keeps_nobody_waiting(
    chain: Chain, store: S3Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "ANSWER_SECONDS", 0.01)
    monkeypatch.setattr(credentials, "ASK_SECONDS", 0)
    begun, end = tmp_path / "begun", tmp_path / "end"
    os.mkfifo(end)
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho begun >> {begun}\nread line < {end}\n")
    program.chmod(0o755)
    chain.file.write_text(f"[default]\ncredential_process = {program}\n")

    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    try:
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="refuses the credentials"):
                await store.list("").__anext__()
        await asyncio.wait_for(asyncio.to_thread(time.monotonic), 30)  # others need the common threads
    finally:
        end.write_text("end\n")  # waits for the program
    assert begun.read_text() == "begun\n"


class Refused:
    """The credentials of a store that refuses them, whatever the chain has."""

    def __init__(self, store: S3Store, patch: pytest.MonkeyPatch) -> None:
        self.credentials = store._bucket.credentials
        self.asked = Mock(return_value=None)
        self.now = 0.0
        patch.setattr(self.credentials, "_fetched", self.asked)
        patch.setattr(credentials, "time", Mock(monotonic=lambda: self.now))

    async def questions(self, seconds: int) -> int:
        """Have a request refused in each of so many seconds. Return how often the chain was asked."""
        self.asked.reset_mock()
        for _ in range(seconds):
            self.now += 1
            await self.credentials.have_changed(self.credentials.get_frozen_credentials())
        return self.asked.call_count


@pytest.fixture
def refused(store: S3Store, monkeypatch: pytest.MonkeyPatch) -> Refused:
    return Refused(store, monkeypatch)


async def test_a_store_that_always_refuses_has_the_chain_asked_ever_more_rarely(refused: Refused) -> None:
    assert [await refused.questions(300) for _ in range(3)] == [7, 2, 3]


async def test_after_a_success_the_chain_is_asked_soon_again(
    chain: Chain, s3_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.give()
    store = S3Store(Location.from_url(s3_url))
    refused = Refused(store, monkeypatch)
    await refused.questions(300)
    await store.ping()

    assert await refused.questions(5) == 1
    await store.close()


async def test_while_there_are_no_credentials_the_chain_is_asked_again_within_seconds(
    s3_url: str, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = S3Store(Location.from_url(s3_url))
    waiting = Refused(store, monkeypatch)
    for _ in range(600):
        waiting.now += 1
        with pytest.raises(StoreUnavailable, match="there are no credentials"):
            await waiting.credentials.current()

    assert waiting.asked.call_count == 120
    await store.close()
