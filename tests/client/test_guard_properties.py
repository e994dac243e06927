"""Properties of a guard's results, judged by plain counting and the `regex` package's characters."""

import asyncio
import hashlib
from dataclasses import replace
from typing import Any

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from overspill import SyncClient, calling
from overspill.guard.guard import Guard
from overspill.guard.policy import Policy
from overspill.previews.cut import ENDS, HEAD, TAIL
from overspill.shapes.examination import small_data_size
from overspill.shapes.lone_text import lone_text_of
from overspill.shapes.parts import parts_with_text
from overspill.text.limits import Limits
from overspill.text.sanitize import sanitize
from overspill.wire import Outcome

from tests.client.shell import printed_by
from tests.servers.overspill import clean_environment

CHARACTERS = ["a", "b ", "é", "漢", "😀", "\n", "\n", "\r\n", "\t", "e\u0301", "👍🏽", "🇩🇪", "❤\ufe0f", "한"]
CHARACTERS += [
    "👩\u200d👩\u200d👧\u200d👦",
    "\u1112\u1161\u11ab",
    "🏴\U000e0067\U000e0062\U000e007f",
    "\udc80",
    "\ud83d",
]
TEXT = st.lists(st.sampled_from([*CHARACTERS, "word " * 9, "ERROR: no\n"]), min_size=1, max_size=200).map(
    "".join
)
ANY_TEXT = TEXT | st.text(st.characters(exclude_categories=()) | st.sampled_from("\n\r\x1b[m👩\u200d\u0301"))
LIMITS = st.tuples(st.integers(300, 2_000), st.integers(10, 60)).map(lambda both: Limits(*both))
SMALL = settings(max_examples=60)


def limited(policy: Policy, limits: Limits) -> Policy:
    """As `uniform`, but with no limits in characters or tokens gone that the profile has."""
    own = policy.limits("")
    return policy.uniform(
        limits._replace(max_chars=own.max_chars, max_tokens=own.max_tokens, counter=own.counter)
    )


FILLING = {
    "clamped": Policy.clamped(),
    "capped": Policy.capped(),
    "clamped to a share": Policy.clamped_to_share(1_000),
    "token-limited": Policy.token_limited(1_000, tokenizer=str.split),
}
OTHERS = {"usual": Policy(), "persisted": Policy.persisted(), "file-based": Policy.file_based()}
PROFILES = {**FILLING, **OTHERS}


def stand_in(text: str, policy: Policy) -> Any:
    return Guard(policy=policy).process_sync(text, tool="t", call_id="c")


def boundaries(text: str) -> set[int]:
    """Where the `regex` package sees one character end and the next begin."""
    return {0, *(match.end() for match in regex.finditer(r"\X", text))}


def size_of(text: str) -> int:
    """UTF-8 bytes, of which Python's own escaped ones are one each and other surrogates three."""
    return len(regex.sub("[\udc80-\udcff]", "?", text).encode("utf-8", "surrogatepass"))


def within(text: str, limits: Limits) -> bool:
    size, lines = size_of(text), len(regex.findall(r"[^\n]*\n|[^\n]+", text))
    tokens, chars = limits.max_tokens, limits.max_chars
    return (
        size <= limits.max_bytes
        and lines <= limits.max_lines
        and (chars is None or len(text) <= chars)
        and (tokens is None or len(text.split()) <= tokens)
    )


@pytest.mark.parametrize("name", FILLING)
@SMALL
@given(text=ANY_TEXT, limits=LIMITS, times=st.integers(1, 30))
def test_what_fills_the_limits_never_exceeds_them(name: str, text: str, limits: Limits, times: int) -> None:
    policy = limited(FILLING[name], limits)

    assert within(stand_in(text * times, policy).value, policy.limits("t"))


@pytest.mark.parametrize("name", OTHERS)
@SMALL
@given(text=ANY_TEXT, size=st.integers(0, 1_000), rows=st.integers(0, 40))
def test_a_preview_never_exceeds_its_budget(name: str, text: str, size: int, rows: int) -> None:
    policy = replace(OTHERS[name].uniform(Limits(100, 5)), preview_bytes=size, preview_lines=rows)
    shown = stand_in(text * 9, replace(policy, lost_preview_bytes=size)).notice

    assert shown is None or within(shown.preview, Limits(min(size, 100), min(rows, 5)))


@SMALL
@given(TEXT, st.integers(200, 1_500), st.sampled_from([HEAD, TAIL, ENDS]))
def test_no_character_is_ever_broken_and_both_ends_are_the_outputs(
    text: str, size: int, strategy: Any
) -> None:
    whole = text * 20
    guarded = stand_in(whole, replace(Policy.capped(size), strategy=strategy))
    head, mark, tail = regex.split(
        r"(\n\.\.\. \[\d+ bytes truncated; head \+ tail kept\] \.\.\.\n|\Z)", guarded.value, 1
    )

    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert {len(head), len(whole) - len(tail)} <= boundaries(whole)
    assert (guarded.outcome is Outcome.INLINE) == (not mark)


@SMALL
@given(TEXT.filter(lambda text: "…" not in text), st.integers(300, 3_000), st.integers(1, 30))
def test_a_preview_begins_and_ends_as_the_output_does(text: str, size: int, times: int) -> None:
    whole = text * times
    policy = Policy(max_bytes=size, preview_bytes=size, lost_preview_bytes=size)
    notice = stand_in(whole, policy).notice
    shown = "" if notice is None else notice.preview
    whole, head, tail = sanitize(whole), shown.partition("…")[0], shown.rpartition("…")[2].removeprefix("\n")
    head = head if whole.startswith(head) else head.removesuffix("\n")

    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert {len(head), len(whole) - len(tail)} <= boundaries(whole)


@pytest.mark.parametrize("name", PROFILES)
@SMALL
@given(text=ANY_TEXT, limits=LIMITS, times=st.integers(1, 30))
def test_guarded_twice_is_guarded_once(name: str, text: str, limits: Limits, times: int) -> None:
    policy = limited(PROFILES[name], limits)
    once = stand_in(text * times, policy).value
    twice = stand_in(once, policy)

    assert twice.value is once
    assert twice.outcome is Outcome.INLINE


@pytest.mark.parametrize("name", PROFILES)
@SMALL
@given(text=ANY_TEXT, limits=LIMITS)
def test_what_the_limits_allow_comes_back_as_the_same_object(name: str, text: str, limits: Limits) -> None:
    policy = limited(PROFILES[name], limits)
    guarded = stand_in(text, policy)

    if within(text, policy.limits("t")):
        assert guarded.value is text
        assert guarded.bytes_before == size_of(text)


@settings(max_examples=20)
@given(ANY_TEXT, LIMITS, st.sampled_from(sorted(PROFILES)))
def test_with_and_without_an_event_loop_the_same_comes_back(text: str, limits: Limits, name: str) -> None:
    guard = Guard(policy=limited(PROFILES[name], limits))

    async def both() -> tuple[Any, Any]:
        with calling("c"):
            return await guard.process(text * 9, tool="t"), await guard.wrap(returned, name="t")()

    async def returned() -> str:
        return text * 9

    processed, wrapped = asyncio.run(both())
    without = guard.process_sync(text * 9, tool="t", call_id="c")
    assert (processed.value, processed.outcome, processed.bytes_after) == (
        without.value,
        without.outcome,
        without.bytes_after,
    )
    assert wrapped == without.value


GUARD_MANY = """
import hashlib, random
from overspill.guard.guard import Guard
from overspill.guard.policy import Policy

rng = random.Random(7)
words = ["GET /items", "ERROR", "failed:", "worker-3", "ok", "a.py:12", "é漢", "👍🏽", "Traceback", "{}"]
digest = hashlib.sha256()
for policy in (Policy(), Policy.persisted(), Policy.clamped(), Policy.capped(), Policy.file_based()):
    guard = Guard(policy=policy)
    text = "\\n".join(" ".join(rng.choices(words, k=rng.randrange(1, 30))) for _ in range(3_000))
    digest.update(guard.process_sync(text, tool="t", call_id="c").value.encode())
    data = {word: [rng.random() for _ in range(1_000)] for word in words}
    digest.update(str(guard.process_sync(data, tool="t", call_id="c").value).encode())
print(digest.hexdigest())
"""


def test_two_processes_that_hash_differently_say_the_same_to_the_byte() -> None:
    environment = clean_environment(OVERSPILL_SPOOL="off")
    hashed = {**environment, "PYTHONHASHSEED": "1"}
    said = {printed_by(GUARD_MANY, environment=each) for each in (environment, hashed)}

    assert len(said) == 1
    assert len(next(iter(said)).strip()) == 2 * hashlib.sha256().digest_size


WORDS = st.sampled_from([None, "tool", "function", "user", "text", "tool-return", 5])
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, "", "a text", ["a"], [{"type": "text", "text": "b"}], [{"text": "c"}], [{"text": 5}], 5, {}]
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "type": WORDS,
            "role": WORDS,
            "kind": WORDS,
            "content": VALUES,
            "structuredContent": VALUES,
            "structured_content": VALUES,
            "name": WORDS,
        },
    ),
    st.booleans(),
)
def test_the_short_way_to_a_messages_text_finds_what_the_long_one_does(
    fields: dict[str, Any], is_object: bool
) -> None:
    message = type("Message", (), {})() if is_object else fields
    if is_object:
        vars(message).update(fields)
    text = lone_text_of(message)

    assert text is None or [part.value for part in parts_with_text(message) or ()] == [text]


@given(
    st.fixed_dictionaries(
        {"toolUseId": st.sampled_from(["call_1", "", None, 5]), "status": WORDS, "content": VALUES},
        optional={"structuredContent": VALUES, "type": WORDS},
    )
)
def test_the_short_way_to_a_strands_results_text_finds_what_the_long_one_does(result: dict[str, Any]) -> None:
    text = lone_text_of(result)

    assert text is None or [part.value for part in parts_with_text(result) or ()] == [text]


TEXT_BLOCK = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image"]), "text": VALUES}, optional={"annotations": VALUES}
)


@given(
    st.fixed_dictionaries(
        {"content": st.one_of(VALUES, st.lists(TEXT_BLOCK, max_size=2))},
        optional={
            "isError": st.booleans(),
            "resultType": WORDS,
            "_meta": VALUES,
            "structuredContent": st.one_of(VALUES, st.builds(lambda value: {"result": value}, VALUES)),
        },
    ),
    st.booleans(),
)
def test_the_short_way_to_an_mcp_results_text_finds_what_the_long_one_does(
    result: dict[str, Any],
    is_same: bool,
) -> None:
    if is_same:
        match result["content"]:
            case [{"text": text}, *_]:
                result["structuredContent"] = {"result": text}
    text = lone_text_of(result)

    assert text is None or [part.value for part in parts_with_text(result) or ()] in (
        [text],
        [text, {"result": text}],
    )


@pytest.mark.parametrize("more", [{}, {"isError": False}, {"structuredContent": {"result": "short"}}])
def test_the_short_way_is_taken_for_what_mcp_servers_return(more: dict[str, Any]) -> None:
    result = {"content": [{"type": "text", "text": "short"}], "_meta": {"a": 1}, **more}
    with SyncClient("http://127.0.0.1:1") as client, Guard(client, spool=False) as guard:
        guarded = guard.process_sync(result, tool="quick")

    assert lone_text_of(result) == "short"
    assert (guarded.value, guarded.bytes_before) == (result, 5)


def test_the_short_way_is_taken_for_what_strands_tools_return() -> None:
    assert (
        lone_text_of({"toolUseId": "call_1", "status": "success", "content": [{"text": "short"}]}) == "short"
    )


@given(
    st.lists(
        st.one_of(
            TEXT_BLOCK,
            st.dictionaries(st.sampled_from(["type", "text", "kind", "content", "id", "data"]), VALUES),
            st.sampled_from(["text", 5, None]),
        ),
        max_size=2,
    ),
    st.booleans(),
)
def test_the_short_way_to_a_lists_text_finds_what_the_long_one_does(
    blocks: list[Any], are_objects: bool
) -> None:
    if are_objects:
        blocks = [_as_object(block) if isinstance(block, dict) else block for block in blocks]
    text = lone_text_of(blocks)

    assert text is None or [part.value for part in parts_with_text(blocks) or ()] == [text]


def _as_object(fields: dict[str, Any]) -> Any:
    made = type("Block", (), {})()
    vars(made).update(fields)
    return made


@pytest.mark.parametrize("more", [{}, {"annotations": None, "additional_properties": {}, "uri": None}])
def test_the_short_way_is_taken_for_a_list_of_one_block(more: dict[str, Any]) -> None:
    assert lone_text_of([{"type": "text", "text": "short"}]) == "short"
    assert lone_text_of([_as_object({"type": "text", "text": "short", **more})]) == "short"


DATA = st.recursive(
    st.one_of(VALUES, st.text(max_size=30), st.integers(), st.floats(), st.booleans(), st.just("x" * 1_500)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES_OF_DATA = st.sampled_from(["rows", "text", "json", "id", "type", "content", "data", "ä", "\ud800"])


@given(st.dictionaries(NAMES_OF_DATA, DATA, max_size=4))
def test_the_short_way_for_data_counts_what_the_long_one_does(data: dict[str, Any]) -> None:
    guard = Guard(spool=False)
    short = guard.process_sync(data, tool="t")
    long = guard.process_sync(data, tool="t", policy=guard.policy)

    assert short.value is data or short.notice is not None
    assert (short.outcome, short.bytes_before, short.bytes_after) == (
        long.outcome,
        long.bytes_before,
        long.bytes_after,
    )


def test_the_short_way_is_taken_for_a_shells_result() -> None:
    assert small_data_size({"stdout": "short", "stderr": "", "interrupted": False}, 2_000) == 50
