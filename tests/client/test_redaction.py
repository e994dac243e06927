"""Secrets in outputs: what a guard stores, shows and says of them."""

from __future__ import annotations

import asyncio
import json
import pickle
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from overspill import Client, Guard, Policy, SyncClient, clamp_messages, spill_messages
from overspill.guard.holdout import Holdout
from overspill.redaction.environment import secret_values
from overspill.redaction.masking import Redaction
from overspill.spools.spool import Spool
from overspill.wire import REDACTED_LABEL, Outcome

from tests.redaction.corpus import pem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from tests.servers.overspill import ServiceProcess

SECRET = "ghp_" + "aB3x" * 9
TAG = "[REDACTED github-token]"
LOG = "".join(f"step {number} is done\n" for number in range(9_000))
OUTPUT = f"using {SECRET}\n{LOG}"


def stored(client: SyncClient, capture: str | None) -> bytes:
    assert capture is not None
    return client.content(capture)


@pytest.fixture
def client(service: ServiceProcess) -> Iterator[SyncClient]:
    with SyncClient(service.url) as client:
        yield client


def test_a_secret_is_in_neither_the_notice_nor_the_capture_nor_its_id(client: SyncClient) -> None:
    guard = Guard(client, session="secret")
    guarded = guard.process_sync(OUTPUT, tool="build", call_id="call_1")
    same = guard.process_sync(OUTPUT.replace(SECRET, "ghp_" + "zZ9y" * 9), tool="build", call_id="call_1")

    assert stored(client, guarded.capture) == OUTPUT.replace(SECRET, TAG).encode()
    assert SECRET not in guarded.value
    assert f"using {TAG}" in guarded.value
    assert "1 secret masked: github-token=1." in guarded.value
    assert same.capture == guarded.capture


def test_the_entry_and_the_outcome_say_kinds_and_counts(client: SyncClient) -> None:
    guarded = Guard(client).process_sync(OUTPUT + OUTPUT + "SK" + "0a1b2c3d" * 4, tool="build")

    assert guarded.masked == {"github-token": 2, "twilio-key": 1}
    assert guarded.metadata["masked"] == guarded.masked
    assert client.get(str(guarded.capture)).labels[REDACTED_LABEL] == "github-token=2, twilio-key=1"


def test_stars_take_the_place_of_a_secret_under_mask(client: SyncClient) -> None:
    guarded = Guard(client, Policy(redaction="mask")).process_sync(OUTPUT, tool="build")

    assert stored(client, guarded.capture) == OUTPUT.replace(SECRET, "********").encode()


def test_off_keeps_the_exact_bytes(client: SyncClient) -> None:
    guarded = Guard(client, Policy(redaction="off")).process_sync(OUTPUT, tool="build")

    assert stored(client, guarded.capture) == OUTPUT.encode()
    assert SECRET in guarded.value
    assert guarded.masked is None
    assert REDACTED_LABEL not in client.get(str(guarded.capture)).labels


def test_an_output_that_stays_is_the_same_object() -> None:
    text = f"the key is {SECRET}"

    assert Guard().process_sync(text, tool="t").value is text


@pytest.mark.parametrize(
    "value",
    [
        f"the key is {SECRET}",
        f"the key is {SECRET}".encode(),
        {"key": SECRET, "n": 1},
        [{"type": "text", "text": f"x {SECRET}"}],
        {SECRET: [SECRET, (SECRET,)]},
        ("a", SECRET),
    ],
)
def test_with_redact_inline_what_stays_is_masked_too(value: Any) -> None:
    guarded = Guard(policy=Policy(redact_inline=True)).process_sync(value, tool="t")

    assert guarded.outcome is Outcome.INLINE
    assert SECRET not in repr(guarded.value)
    assert TAG in repr(guarded.value)
    assert type(guarded.value) is type(value)
    assert guarded.masked is not None


def test_with_redact_inline_wrapped_tools_and_generators_are_masked() -> None:
    guard = Guard(policy=Policy(redact_inline=True))

    def chunks() -> Iterator[Any]:
        yield "the key is " + SECRET[:9]
        yield SECRET[9:]
        yield b"or " + SECRET.encode()

    def records() -> Iterator[Any]:
        yield {"key": SECRET}

    assert guard.wrap(lambda: f"x {SECRET}", name="t")() == f"x {TAG}"
    assert list(guard.wrap(chunks)()) == [f"the key is {TAG}", f"or {TAG}".encode()]
    assert list(guard.wrap(records)()) == [{"key": TAG}]


@pytest.mark.parametrize(
    "text",
    ["", "short", "\udc80 \ud800", "é" * 500, "line\n" * 200, "x" * 100_000, f"{'x' * 70_000} {SECRET}"],
)
@pytest.mark.parametrize("max_bytes", [1_000, 200_000])
def test_with_redact_inline_what_has_no_secret_is_the_same_object(text: str, max_bytes: int) -> None:
    usual, masking = (
        Guard(policy=Policy(max_bytes=max_bytes, redact_inline=each), spool=False) for each in (False, True)
    )
    expected, guarded = (each.process_sync(text, tool="t") for each in (usual, masking))

    assert guarded.outcome is expected.outcome
    assert masking.stats == usual.stats
    if guarded.outcome is Outcome.INLINE:
        assert (guarded.value is text) == (SECRET not in text)


def test_bypass_hands_over_everything() -> None:
    guard = Guard(policy=Policy(redact_inline=True))

    with guard.bypass():
        assert guard.process_sync(f"x {SECRET}", tool="t").value == f"x {SECRET}"


def test_a_notice_without_a_store_shows_no_secret() -> None:
    guarded = Guard(spool=False).process_sync(OUTPUT, tool="t")

    assert guarded.outcome is Outcome.TRUNCATED
    assert SECRET not in guarded.value
    assert TAG in guarded.value


def test_the_spool_has_no_secret(tmp_path: Path) -> None:
    guarded = Guard(spool=Spool(tmp_path)).process_sync(OUTPUT, tool="t")
    files = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())

    assert guarded.outcome is Outcome.SPOOLED
    assert SECRET.encode() not in files
    assert TAG.encode() in files


@pytest.mark.parametrize("as_bytes", [False, True])
def test_a_secret_across_chunks_is_masked(client: SyncClient, as_bytes: bool) -> None:
    key = pem(random.Random(3))
    text = f"{LOG}{key}\n{OUTPUT}"

    def chunks() -> Iterator[Any]:
        for at in range(0, len(text), 37):
            part = text[at : at + 37]
            yield part.encode() if as_bytes else part

    guarded = Guard(client).process_sync(chunks(), tool="t")

    expected = text.replace(SECRET, TAG).replace(key, "[REDACTED private-key]")
    assert stored(client, guarded.capture) == expected.encode()
    assert guarded.masked == {"github-token": 1, "private-key": 1}


async def test_an_asynchronous_stream_is_masked_too(service: ServiceProcess) -> None:
    async def chunks() -> AsyncIterator[str]:
        for at in range(0, len(OUTPUT), 501):
            await asyncio.sleep(0)
            yield OUTPUT[at : at + 501]

    async with Client(service.url) as client:
        guarded = await Guard(client).process(chunks(), tool="t")

        assert await client.content(str(guarded.capture)) == OUTPUT.replace(SECRET, TAG).encode()


def test_a_stream_of_records_is_masked_where_it_is_captured(client: SyncClient) -> None:
    records = ({"id": number, "key": SECRET if number == 6_000 else "-"} for number in range(8_000))
    guarded = Guard(client).process_sync(records, tool="t")
    shown = repr(list(guarded.value))
    (entry,) = client.list(limit=1).captures

    assert SECRET not in shown
    assert SECRET.encode() not in client.content(entry.id)
    assert entry.labels[REDACTED_LABEL] == "github-token=1"


def test_data_is_masked_in_the_capture_and_in_the_copy_that_stays(client: SyncClient) -> None:
    value = "aB3/" * 10
    rows = {"SecretAccessKey": value, "rows": [{"n": number, "key": SECRET} for number in range(3_000)]}
    guarded = Guard(client).process_sync(rows, tool="t")
    content = stored(client, guarded.capture).decode()

    assert value not in content
    assert SECRET not in content
    assert json.loads(content)["rows"][0] == {"n": 0, "key": TAG}
    assert guarded.value["SecretAccessKey"] == "[REDACTED aws-secret-key]"
    assert guarded.value["rows"][0] == {"n": 0, "key": TAG}


@dataclass
class Answer:
    token: str
    text: str


def test_the_fields_beside_a_long_text_are_masked() -> None:
    guarded = Guard().process_sync(Answer(SECRET, LOG), tool="t")

    assert type(guarded.value) is Answer
    assert guarded.value.token == TAG


def test_the_other_blocks_of_a_captured_result_are_masked() -> None:
    blocks = [{"type": "text", "text": f"x {SECRET}"}, {"type": "text", "text": LOG}]
    guarded = Guard().process_sync({"content": blocks, "isError": False}, tool="t")

    assert guarded.value["content"][0] == {"type": "text", "text": f"x {TAG}"}


def test_an_exception_says_no_secret() -> None:
    guarded = Guard().process_sync(ValueError(OUTPUT), tool="t")

    assert type(guarded.value) is ValueError
    assert SECRET not in str(guarded.value)
    assert TAG in str(guarded.value)


def test_secrets_of_the_environment_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BILLING_PASSWORD", 'tr0ub4dor "&3"')
    rows = {"rows": [{"n": number} for number in range(9_000)], "login": 'tr0ub4dor "&3"'}

    assert (
        "login with [REDACTED environment]\n"
        in Guard().process_sync('login with tr0ub4dor "&3"\n' + LOG, tool="t").value
    )
    assert Guard().process_sync(rows, tool="t").value["login"] == "[REDACTED environment]"


def test_the_environment_is_looked_through_again_only_once_it_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks, guard = [], Guard(policy=Policy(redact_inline=True))

    def look(environment: Mapping[str, str]) -> tuple[str, ...]:
        looks.append(len(environment))
        return secret_values(environment)

    monkeypatch.setattr("overspill.guard.redacting.secret_values", look)
    for value in ("first-3cret-!", "other-3cret-!"):
        monkeypatch.setenv("BILLING_PASSWORD", value)
        shown = [guard.process_sync(f"login with {value}", tool="t").value for _ in range(3)]

        assert shown == ["login with [REDACTED environment]"] * 3
    monkeypatch.delenv("BILLING_PASSWORD")
    assert guard.process_sync("login with other-3cret-!", tool="t").value == "login with other-3cret-!"
    assert len(looks) == 3


def test_a_pattern_of_your_own_is_masked_by_its_kind() -> None:
    policy = Policy(redact_patterns={"acme": "acme-[0-9]{8}"})
    guarded = Guard(policy=policy).process_sync(f"x acme-12345678\n{LOG}", tool="t")

    assert "x [REDACTED acme]" in guarded.value
    assert guarded.masked == {"acme": 1}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"redaction": "on"}, "redaction must be off, mask, tag"),
        ({"redact_patterns": {"acme": ".*"}}, "the pattern of acme has no bound"),
        ({"redact_patterns": {"acme": 7}}, "redact_patterns must be patterns by kind"),
        ({"redact_inline": "yes"}, "redact_inline must be true or false"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Policy(**settings)


def test_a_policy_file_has_the_settings(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        'version = 1\nredaction = "mask"\nredact_inline = true\n[redact_patterns]\nacme = "acme-[0-9]{8}"\n'
    )
    policy = Policy.load(path)

    assert (policy.redaction, policy.redact_inline) == (Redaction.MASK, True)
    assert policy.redact_patterns == {"acme": "acme-[0-9]{8}"}
    assert pickle.loads(pickle.dumps(policy)) == policy


@pytest.mark.parametrize(
    "line", ['redaction = "on"', "redaction = 1", "redact_patterns = 1", "redact_patterns.a = 1"]
)
def test_a_wrong_setting_in_a_policy_file_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(f"version = 1\n{line}\n")

    with pytest.raises(ValueError, match=line.partition(" ")[0].partition(".")[0]):
        Policy.load(path)


def test_what_a_tool_reports_while_it_runs_is_masked_where_it_is_cut() -> None:
    assert SECRET not in Guard().partial(OUTPUT, tool="t")


def test_a_held_out_session_is_masked_as_its_policy_says() -> None:
    holdout = Holdout(name="masked", share=0.999, policy=Policy(redact_inline=True))

    assert Guard(session="s", holdout=holdout).process_sync(f"x {SECRET}", tool="t").value == f"x {TAG}"


def test_a_history_that_is_cut_shows_no_secret() -> None:
    blocks = [{"type": "text", "text": f"x {SECRET}"}, {"type": "text", "text": OUTPUT}]
    messages = [{"role": "tool", "tool_call_id": "call_1", "content": blocks}]
    cut = clamp_messages(messages, Policy())

    assert cut is not messages
    assert SECRET not in repr(cut)


async def test_spilled_histories_store_no_secret(service: ServiceProcess) -> None:
    messages = [{"role": "tool", "tool_call_id": "call_1", "content": OUTPUT}]
    async with Client(service.url) as client:
        spilled = await spill_messages(messages, Guard(client, session="history"))
        (entry,) = (await client.list(session="history")).captures

        assert SECRET not in repr(spilled)
        assert SECRET.encode() not in await client.content(entry.id)
