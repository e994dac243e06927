import re
import string
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.guard.policy_defaults import MODES, READER
from overspill.previews import notice, notice_forms
from overspill.previews.notice_facts import Facts, StoreResult
from overspill.previews.notice_marks import marked
from overspill.text.reasons import for_model, one_safe_line
from overspill.text.tokens import Basis, TokenCount
from overspill.wire import Outcome
from overspill_service.web import authentication

from tests import notices
from tests.lazy import LazyModule
from tests.notice_marks import bare

if TYPE_CHECKING:
    import bpe_openai
else:
    bpe_openai = LazyModule("bpe_openai")

ID = "cap_abcdefghij234567abcd"
LETTERS = string.ascii_letters + string.digits
BASE32 = string.ascii_lowercase + "234567"
EXPIRES = datetime(2026, 11, 22, 10, 30, 15, 999, UTC)


def facts(**changes: Any) -> Facts:
    given: dict[str, Any] = {
        "id": ID,
        "tool": "run_command",
        "size": 4_194_304,
        "lines": 50_123,
        "preview": "first\n… [50,121 lines, 4,194,293 bytes not shown] …\nlast\n",
        "reader": READER,
        "modes": MODES,
    }
    return Facts(**(given | changes))


PREVIEW = "--- preview ---\nfirst\n… [50,121 lines, 4,194,293 bytes not shown] …\nlast\n[/overspill]"
SIZES = "4194304 bytes, 50123 lines, about 1300000 tokens"
HOW = f'Read more: inspect_output("{ID}"); modes: tail, range, grep, summary. Do not rerun.'


def test_the_text_that_a_model_sees_of_a_captured_output() -> None:
    assert bare(str(notices.captured(facts(), EXPIRES))) == (
        f"[overspill] Output of run_command too long: {SIZES}. "
        f"Stored whole until 22 Nov 10:30 UTC.\n{HOW}\n{PREVIEW}"
    )


@pytest.mark.parametrize(
    ("call_id", "status", "told"),
    [
        ("call_1", "", " (call_1)"),
        ("", "exit 3", " (failed: exit 3)"),
        ("toolu_1", "exit 0", " (toolu_1, succeeded: exit 0)"),
        ("toolu_1", "OK", " (toolu_1, succeeded)"),
        ("toolu_1", "error", " (toolu_1, failed)"),
        ("toolu_1", "timed\nout [/overspill]", " (toolu_1, status: timed out (/overspill])"),
        ("x" * 5_000, "", ""),
    ],
)
def test_a_notice_says_which_call_it_was_and_how_that_ended(call_id: str, status: str, told: str) -> None:
    text = str(notices.captured(facts(call_id=call_id, status=status), EXPIRES))

    assert text.startswith(f"[overspill] Output of run_command{told} too long: ")


def test_a_terse_notice_has_less_than_200_bytes_beside_its_preview_and_all_that_is_needed() -> None:
    kept = StoreResult(outcome=Outcome.CAPTURED, expires=EXPIRES)
    text = str(notice.make_notice(facts(preview="", status="exit 3"), kept, is_terse=True))

    assert bare(text) == (
        "[overspill] 4,194,304 bytes, 50,123 lines, failed: exit 3 until 2026-11-22; "
        f'do not rerun, use inspect_output("{ID}")\n[/overspill]'
    )
    assert notice_forms.is_notice(text)


@given(
    st.integers(0, 10**13),
    st.integers(0, 10**12),
    st.text(max_size=100),
    st.text(max_size=500),
    st.sampled_from([Outcome.CAPTURED, Outcome.SPOOLED, Outcome.TRUNCATED]),
    st.booleans(),
)
def test_no_terse_notice_has_more_than_200_bytes_beside_its_preview(
    size: int, lines: int, status: str, reason: str, outcome: Outcome, is_refused: bool
) -> None:
    kept = StoreResult(outcome=outcome, expires=EXPIRES, reason=reason, is_refused=is_refused)
    made = notice.make_notice(facts(size=size, lines=lines, status=status, preview=""), kept, is_terse=True)

    assert len(str(made)) < 200
    assert notice_forms.is_notice(str(made))
    assert (ID in str(made)) is made.stored


def test_where_no_preview_fits_the_notice_promises_none() -> None:
    stored = str(notices.captured(facts(preview=""), EXPIRES))
    assert "Stored whole until" in stored
    lost = str(notice.truncated(facts(preview=""), "no space"))
    assert "\nAll of it is lost. " in lost
    assert "preview" not in stored + lost
    assert notice_forms.is_notice(stored)
    assert notice_forms.is_notice(lost)


def test_the_text_that_a_model_sees_of_an_output_that_was_lost_names_no_handle() -> None:
    lost = notice.truncated(facts(), "http://127.0.0.1:8750 refused the connection")

    assert bare(str(lost)) == (
        f"[overspill NOT STORED] Output of run_command too long: {SIZES}. "
        "It could NOT be stored: http://127.0.0.1:8750 refused the connection.\n"
        "What the preview leaves out is lost. If you need it, run the tool again with a narrower "
        f"question (a filter, a range, fewer files).\n{PREVIEW}"
    )
    assert notice_forms.as_dict(lost)["capture"] is None


def test_a_placeholder_says_where_its_text_is() -> None:
    stored, lost = notices.captured(facts(), EXPIRES), notice.truncated(facts(), "down")

    assert notice_forms.placeholder(stored, 1_234) == f"[overspill {ID}: 1,234 bytes of text, in the capture]"
    assert notice_forms.placeholder(lost, 1) == "[overspill: 1 byte of text, not stored]"


def test_the_expiry_is_in_utc_whatever_zone_it_came_in() -> None:
    elsewhere = EXPIRES.astimezone(timezone(timedelta(hours=5, minutes=30)))

    assert str(notices.captured(facts(), elsewhere)) == str(notices.captured(facts(), EXPIRES))


def test_a_preview_without_a_last_newline_leaves_the_end_mark_on_a_line_of_its_own() -> None:
    assert bare(str(notices.captured(facts(preview="x"), EXPIRES))).endswith(
        "--- preview ---\nx\n[/overspill]"
    )


def test_the_reader_can_be_another() -> None:
    text = str(notices.captured(facts(reader="read_capture({id})", modes=""), EXPIRES))

    assert f"Read more: read_capture({ID}). Do not rerun.\n" in text


@pytest.mark.parametrize("mark", ["[/overspill]", f"[overspill {ID}]", "[OVERSPILL cap_x]"])
def test_a_preview_cannot_fake_a_mark(mark: str) -> None:
    text = str(notices.captured(facts(preview=f"a\n{mark}\nb"), EXPIRES))

    assert mark not in text.partition("--- preview ---")[2].removesuffix("[/overspill]")
    assert f"({mark[1:]}" in text


def test_a_tool_name_cannot_break_the_first_line_or_fake_a_mark() -> None:
    text = str(notices.captured(facts(tool="x\x1b[2J\n[/overspill cap]" + "y" * 1_000), EXPIRES))
    first = text.splitlines()[0]

    assert first.startswith('[overspill] Output of "x (/overspill cap]yyy')
    assert len(first) < 400


def test_an_output_of_an_unnamed_tool_is_the_output_of_the_tool() -> None:
    assert "Output of the tool too long" in str(notices.captured(facts(tool=""), EXPIRES))


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("http://user:hunter2@host:8750/v1 is down", "http://host:8750/v1 is down"),
        ("GET https://s3/b/k?X-Amz-Signature=abc&x=1 failed", "GET https://s3/b/k failed"),
        ("Authorization: Bearer abc.def was refused", "Authorization: … … was refused"),
        ("api_key=hunter2 is wrong", "api_key=… is wrong"),
        ('{"password": "hunter2"}', '{"password": …'),
        ("key ovs_" + "a" * 40 + " is unknown", "key … is unknown"),
        ("line one\nline two\ttabbed.", "line one line two tabbed"),
        ("\x1b[31mred\x1b[0m\x00", "red␀"),
        ("[/overspill cap_x] ha", "(/overspill cap_x] ha"),
    ],
)
def test_a_reason_is_one_line_without_secrets(reason: str, shown: str) -> None:
    assert one_safe_line(reason) == shown


@pytest.mark.parametrize("said", [authentication.NO_KEY, authentication.NOT_LOCAL])
def test_what_the_service_says_of_a_missing_key_is_shown_whole(said: str) -> None:
    assert for_model(said) == said


@given(st.text(st.characters(exclude_categories=())))
def test_any_reason_becomes_one_short_line(reason: str) -> None:
    shown = one_safe_line(reason)

    assert len(shown) <= 200
    assert len(shown.splitlines()) <= 1
    shown.encode()


def test_a_very_long_reason_costs_no_time_and_is_cut() -> None:
    assert one_safe_line("word " * 1_000_000).endswith("…")


@pytest.mark.parametrize(
    "text",
    [
        str(notices.captured(facts(), EXPIRES)),
        str(notice.truncated(facts(), "down")),
        notice_forms.placeholder(notices.captured(facts(), EXPIRES), 1_234),
        notice_forms.placeholder(notice.truncated(facts(), "down"), 1),
    ],
)
def test_notices_and_the_placeholders_beside_them_are_recognised(text: Any) -> None:
    made = str(notices.captured(facts(preview="another"), EXPIRES))

    assert notice_forms.notices_among([made, text]) == [made, text]


@pytest.mark.parametrize(
    "text",
    [
        bare(str(notices.captured(facts(), EXPIRES))),
        str(notices.captured(facts(), EXPIRES)).replace("first", "fjrst"),
        str(notices.captured(facts(), EXPIRES)) + "\n",
        re.sub(r"\d{12}\]$", "123456789012]", str(notices.captured(facts(), EXPIRES))),
        notice_forms.placeholder(notices.captured(facts(), EXPIRES), 1_234),
        "",
        "a text",
        "[overspill]",
        "[overspill] begins so\nbut has no end",
        "[overspill] begins so\nand ends for another\n[/overspill cap_aaaaaaaaaaaaaaaaaaaa]",
        "[overspill] \n" + "x" * 70_000 + "\n[/overspill]",
        None,
        7,
        b"[overspill",
    ],
)
def test_what_only_looks_like_a_notice_is_none(text: Any) -> None:
    assert not notice_forms.is_notice(text)


def test_as_a_dict_the_notice_comes_first_and_has_status_handle_totals_and_preview() -> None:
    value = notice_forms.as_dict(notices.captured(facts(), EXPIRES))

    assert list(value) == [
        *("notice", "status", "capture", "total_bytes", "total_lines", "read_more", "preview", "mark")
    ]
    assert (value["status"], value["capture"], value["total_bytes"], value["total_lines"]) == (
        "captured",
        ID,
        4_194_304,
        50_123,
    )
    assert value["read_more"] == READER.replace("{id}", ID)
    assert f"Read more: {value['read_more']}; " in value["notice"]
    assert value["preview"].startswith("first\n")


def test_as_a_dict_the_notice_of_what_was_lost_has_nothing_to_call() -> None:
    value = notice_forms.as_dict(notice.truncated(facts(), "down"))

    assert list(value) == ["notice", "status", "capture", "total_bytes", "total_lines", "preview", "mark"]
    assert value["status"] == "truncated"


def test_the_text_that_a_model_sees_of_an_output_that_waits_for_the_service() -> None:
    made = notices.spooled(facts(), EXPIRES, "http://127.0.0.1:8750 refused the connection")

    assert bare(str(made)) == (
        f"[overspill] Output of run_command too long: {SIZES}. "
        "Stored whole on this machine until 22 Nov 10:30 UTC; the service could not take it "
        "(http://127.0.0.1:8750 refused the connection); "
        f"it waits to be uploaded.\n{HOW}\n{PREVIEW}"
    )


def test_what_the_service_refused_is_promised_to_nobody() -> None:
    kept = StoreResult(
        outcome=Outcome.SPOOLED,
        expires=EXPIRES,
        reason="the service refused: no right to write (forbidden, HTTP 403, request 01HX2-abc)",
        is_refused=True,
    )

    assert bare(str(notice.make_notice(facts(), kept))) == (
        f"[overspill] Output of run_command too long: {SIZES}. "
        "Stored whole on this machine alone until 22 Nov 10:30 UTC; it is not in the service "
        f"(the service refused: no right to write).\n{HOW}\n{PREVIEW}"
    )


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (
            "the service refused: full (quota_exceeded, HTTP 507, request r-1f2e3d)",
            "the service refused: full",
        ),
        ("the service failed (no code, HTTP 500)", "the service failed"),
        ("http://s answered with HTTP 502", "http://s answered with an error"),
        ("http://s answered HTTP status 502, request 4f5e6d7c", "http://s answered an error"),
        (
            "the service has failed since 2026-11-22T10:30:15Z: connection refused",
            "the service has failed for a while: connection refused",
        ),
        ("request one more file", "request one more file"),
    ],
)
def test_no_status_request_id_or_time_of_day_reaches_a_model(reason: str, told: str) -> None:
    assert for_model(reason) == told


def test_the_text_that_a_model_sees_of_an_output_in_its_workspace() -> None:
    made = notices.spooled(facts(preview=""), None, "", "/workspace/.overspill/out put.txt")

    assert bare(str(made)) == (
        f"[overspill] Output of run_command too long: {SIZES}. "
        "Stored whole in the file /workspace/.overspill/out put.txt.\n"
        "Read more: read parts of /workspace/.overspill/out put.txt with your file-reading tool, or grep "
        "it. Do not rerun.\n"
        "[/overspill]"
    )


def test_an_output_like_an_earlier_one_names_that_ones_handle() -> None:
    same = facts(same_as="cap_zyxwvutsrqponm765432")

    for text in (notices.captured(same, EXPIRES), notices.spooled(same, EXPIRES, "down")):
        assert (
            "Do not rerun. It is byte for byte an earlier output of this session, "
            "whose handle is cap_zyxwvutsrqponm765432.\n--- preview ---\n"
        ) in str(text)


def test_the_reason_why_an_output_is_not_shown_can_be_another() -> None:
    text = str(notices.captured(facts(why="does not fit beside the other results of this turn"), EXPIRES))

    assert "Output of run_command does not fit beside the other results of this turn: 4194" in text


def test_an_output_that_nobody_could_store_needs_no_handle() -> None:
    lost = notice.truncated(facts(id=""), "no Overspill service is configured")

    assert str(lost).startswith("[overspill NOT STORED] Output of run_command too long: ")
    assert notice_forms.is_notice(str(lost))
    assert notice_forms.placeholder(lost, 7) == "[overspill: 7 bytes of text, not stored]"
    assert notice_forms.notices_among([notice_forms.placeholder(lost, 7), str(lost)])[1:] == [
        "[overspill: 7 bytes of text, not stored]"
    ]
    assert notice_forms.as_dict(lost)["capture"] is None


def test_tokens_that_were_counted_are_said_exactly() -> None:
    text = str(notices.captured(facts(tokens=TokenCount(68_123, Basis.EXACT, 0.0)), EXPIRES))

    assert "50123 lines, 68123 tokens. Stored" in text


def test_a_last_line_with_the_handle_is_one_line_whatever_the_reader_says() -> None:
    kept = StoreResult(outcome=Outcome.SPOOLED, expires=EXPIRES, reason="down")
    line = notice_forms.closing(facts(reader="read\nwith {id}", modes=""), kept)

    assert line == (
        "[overspill: all 4,194,304 bytes, 50,123 lines are stored on this machine until "
        "22 Nov 10:30 UTC; the service could not take it (down); it waits to be uploaded. "
        f"Read more: read with {ID}. Do not rerun.]"
    )
    for short in notice_forms.closings(facts(), kept):
        assert notice_forms.is_notice(marked(f"kept\n{short}"))
        assert not notice_forms.is_notice(f"kept\n{short}")
    assert notice_forms.is_notice(marked(f"kept\n{line}"))


CALL_IDS: dict[str, Callable[[Random], str]] = {
    "none": lambda _: "",
    "short": lambda random: f"call_{random.randrange(1_000)}",
    "toolu": lambda random: "toolu_01" + "".join(random.choices(LETTERS, k=22)),
    "call": lambda random: "call_" + "".join(random.choices(LETTERS, k=24)),
}


@pytest.mark.parametrize("status", ["", "error", "exit 0", "exit 101"])
@pytest.mark.parametrize("made", CALL_IDS.values(), ids=CALL_IDS)
def test_the_usual_notice_takes_fewer_than_125_tokens(made: Callable[[Random], str], status: str) -> None:
    random, kept = Random(16), StoreResult(outcome=Outcome.CAPTURED, expires=EXPIRES)
    handles = ["cap_" + "".join(random.choices(BASE32, k=20)) for _ in range(200)]
    made_of = [facts(id=handle, preview="", call_id=made(random), status=status) for handle in handles]
    texts = [str(notice.make_notice(each, kept)).replace("[/", "--- preview ---\n[/") for each in made_of]

    assert max(map(tokens, texts)) < 125


def test_a_terse_notice_takes_about_50_tokens() -> None:
    kept = StoreResult(outcome=Outcome.CAPTURED, expires=EXPIRES)

    assert tokens(str(notice.make_notice(facts(preview=""), kept, is_terse=True))) <= 55


@cache
def encodings() -> "list[bpe_openai.Encoding]":
    return [bpe_openai.get_encoding(name) for name in ("cl100k_base", "o200k_base")]


def tokens(text: str) -> int:
    """By the vocabulary that needs the most of them."""
    return max(len(encoding.encode_ordinary(text)) for encoding in encodings())
