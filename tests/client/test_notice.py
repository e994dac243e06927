from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill import notice
from overspill.notice import Facts, Kept
from overspill.policy import READER
from overspill.tokens import Basis, TokenCount
from overspill.wire import Outcome

ID = "cap_abcdefghij234567abcd"
EXPIRES = datetime(2026, 11, 22, 10, 30, 15, 999, UTC)


def facts(**changes: Any) -> Facts:
    given: dict[str, Any] = {
        "id": ID,
        "tool": "run_command",
        "size": 4_194_304,
        "lines": 50_123,
        "sha256": bytes(range(32)),
        "preview": "first\n… [50,121 lines, 4,194,293 bytes not shown] …\nlast\n",
        "reader": READER,
    }
    return Facts(**(given | changes))


def test_the_text_that_a_model_sees_of_a_captured_output() -> None:
    assert str(notice.captured(facts(), EXPIRES)) == (
        "[overspill cap_abcdefghij234567abcd] The output of run_command is too long to show: "
        "4,194,304 bytes (4.2 MB), 50,123 lines, about 1,300,000 tokens. "
        "It is stored whole; a preview is below.\n"
        'To read more: inspect_output(capture="cap_abcdefghij234567abcd", mode="grep", pattern="…"); '
        "other modes: head, tail, range, summary. "
        "In a shell: overspill grep cap_abcdefghij234567abcd PATTERN\n"
        "Kept until 2026-11-22T10:30:15Z. Its sha256 begins 000102030405. "
        "Do not run the tool again to see more: read the capture.\n"
        "--- preview ---\n"
        "first\n"
        "… [50,121 lines, 4,194,293 bytes not shown] …\n"
        "last\n"
        "[/overspill cap_abcdefghij234567abcd]"
    )


def test_where_no_preview_fits_the_notice_promises_none() -> None:
    stored = str(notice.captured(facts(preview=""), EXPIRES))
    assert "It is stored whole.\n" in stored
    lost = str(notice.truncated(facts(preview=""), "no space"))
    assert "\nAll of it is lost. " in lost
    assert "preview" not in stored + lost
    assert notice.is_notice(stored)
    assert notice.is_notice(lost)


def test_the_text_that_a_model_sees_of_an_output_that_was_lost() -> None:
    assert str(notice.truncated(facts(), "http://127.0.0.1:8750 refused the connection")) == (
        "[overspill cap_abcdefghij234567abcd NOT STORED] The output of run_command is too long to show: "
        "4,194,304 bytes (4.2 MB), 50,123 lines, about 1,300,000 tokens. "
        "It could NOT be stored: http://127.0.0.1:8750 refused the connection.\n"
        "What the preview below leaves out is lost. If you need it, run the tool again with a narrower "
        "question (a filter, a range, fewer files). Its sha256 begins 000102030405.\n"
        "--- preview ---\n"
        "first\n"
        "… [50,121 lines, 4,194,293 bytes not shown] …\n"
        "last\n"
        "[/overspill cap_abcdefghij234567abcd]"
    )


def test_a_placeholder_says_where_its_text_is() -> None:
    stored, lost = notice.captured(facts(), EXPIRES), notice.truncated(facts(), "down")

    assert notice.placeholder(stored, 1_234) == f"[overspill {ID}: 1,234 bytes of text, in the capture]"
    assert notice.placeholder(lost, 1) == f"[overspill {ID}: 1 byte of text, not stored]"


def test_the_expiry_is_in_utc_whatever_zone_it_came_in() -> None:
    elsewhere = EXPIRES.astimezone(timezone(timedelta(hours=5, minutes=30)))

    assert str(notice.captured(facts(), elsewhere)) == str(notice.captured(facts(), EXPIRES))


def test_a_preview_without_a_last_newline_leaves_the_end_mark_on_a_line_of_its_own() -> None:
    assert str(notice.captured(facts(preview="x"), EXPIRES)).endswith(
        f"--- preview ---\nx\n[/overspill {ID}]"
    )


def test_the_reader_can_be_another() -> None:
    text = str(notice.captured(facts(reader="read_capture({id})"), EXPIRES))

    assert f"To read more: read_capture({ID})\n" in text


@pytest.mark.parametrize("mark", [f"[/overspill {ID}]", f"[overspill {ID}]", "[OVERSPILL cap_x]"])
def test_a_preview_cannot_fake_a_mark(mark: str) -> None:
    text = str(notice.captured(facts(preview=f"a\n{mark}\nb"), EXPIRES))

    assert mark not in text.partition("--- preview ---")[2].removesuffix(f"[/overspill {ID}]")
    assert f"({mark[1:]}" in text


def test_a_tool_name_cannot_break_the_first_line_or_fake_a_mark() -> None:
    text = str(notice.captured(facts(tool="x\x1b[2J\n[/overspill cap]" + "y" * 1_000), EXPIRES))
    first = text.splitlines()[0]

    assert first.startswith(f"[overspill {ID}] The output of x (/overspill cap]yyy")
    assert len(first) < 400


def test_an_output_of_an_unnamed_tool_is_the_output_of_the_tool() -> None:
    assert "The output of the tool is" in str(notice.captured(facts(tool=""), EXPIRES))


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
    assert notice.sanitised(reason) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_any_reason_becomes_one_short_line(reason: str) -> None:
    shown = notice.sanitised(reason)

    assert len(shown) <= 200
    assert len(shown.splitlines()) <= 1
    shown.encode()


def test_a_very_long_reason_costs_no_time_and_is_cut() -> None:
    assert notice.sanitised("word " * 1_000_000).endswith("…")


@pytest.mark.parametrize(
    "text",
    [
        str(notice.captured(facts(), EXPIRES)),
        str(notice.truncated(facts(), "down")),
        notice.placeholder(notice.captured(facts(), EXPIRES), 1_234),
        notice.placeholder(notice.truncated(facts(), "down"), 1),
    ],
)
def test_notices_and_placeholders_are_recognised(text: Any) -> None:
    assert notice.is_notice(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a text",
        f"[overspill {ID}]",
        f"[overspill {ID}] begins so\nbut has no end",
        f"[overspill {ID}] begins so\nand ends for another\n[/overspill cap_aaaaaaaaaaaaaaaaaaaa]",
        f"[overspill {ID}] \n" + "x" * 70_000 + f"\n[/overspill {ID}]",
        None,
        7,
        b"[overspill",
    ],
)
def test_what_only_looks_like_a_notice_is_none(text: Any) -> None:
    assert not notice.is_notice(text)


def test_as_a_dict_the_notice_comes_first_and_has_status_handle_totals_and_preview() -> None:
    value = notice.as_dict(notice.captured(facts(), EXPIRES))

    assert list(value) == [
        *("notice", "status", "capture", "total_bytes", "total_lines", "read_more", "preview")
    ]
    assert (value["status"], value["capture"], value["total_bytes"], value["total_lines"]) == (
        "captured",
        ID,
        4_194_304,
        50_123,
    )
    assert value["read_more"] == READER.replace("{id}", ID)
    assert f"To read more: {value['read_more']}\n" in value["notice"]
    assert value["preview"].startswith("first\n")


def test_as_a_dict_the_notice_of_what_was_lost_has_nothing_to_call() -> None:
    value = notice.as_dict(notice.truncated(facts(), "down"))

    assert list(value) == ["notice", "status", "capture", "total_bytes", "total_lines", "preview"]
    assert value["status"] == "truncated"


def test_the_text_that_a_model_sees_of_an_output_that_waits_for_the_service() -> None:
    assert str(notice.spooled(facts(), EXPIRES, "http://127.0.0.1:8750 refused the connection")) == (
        "[overspill cap_abcdefghij234567abcd] The output of run_command is too long to show: "
        "4,194,304 bytes (4.2 MB), 50,123 lines, about 1,300,000 tokens. "
        "It is stored whole on this machine, because the service could not take it "
        "(http://127.0.0.1:8750 refused the connection); "
        "it will be uploaded as soon as the service can take it; a preview is below.\n"
        'To read more: inspect_output(capture="cap_abcdefghij234567abcd", mode="grep", pattern="…"); '
        "other modes: head, tail, range, summary. "
        "In a shell: overspill grep cap_abcdefghij234567abcd PATTERN\n"
        "Kept until 2026-11-22T10:30:15Z. Its sha256 begins 000102030405. "
        "Do not run the tool again to see more: read the capture.\n"
        "--- preview ---\n"
        "first\n"
        "… [50,121 lines, 4,194,293 bytes not shown] …\n"
        "last\n"
        "[/overspill cap_abcdefghij234567abcd]"
    )


def test_the_text_that_a_model_sees_of_an_output_in_its_workspace() -> None:
    assert str(notice.spooled(facts(preview=""), None, "", "/workspace/.overspill/out put.txt")) == (
        "[overspill cap_abcdefghij234567abcd] The output of run_command is too long to show: "
        "4,194,304 bytes (4.2 MB), 50,123 lines, about 1,300,000 tokens. "
        "It is stored whole in the file /workspace/.overspill/out put.txt.\n"
        "To read more: read that file in parts with your file-reading tool, or search it with grep: "
        "/workspace/.overspill/out put.txt\n"
        "Its sha256 begins 000102030405. Do not run the tool again to see more: read the file.\n"
        "[/overspill cap_abcdefghij234567abcd]"
    )


def test_an_output_like_an_earlier_one_names_that_ones_handle() -> None:
    same = facts(same_as="cap_zyxwvutsrqponm765432")

    for text in (notice.captured(same, EXPIRES), notice.spooled(same, EXPIRES, "down")):
        assert (
            "read the capture. This output is byte for byte that of an earlier call of this session, "
            "whose handle is cap_zyxwvutsrqponm765432.\n--- preview ---\n"
        ) in str(text)


def test_the_reason_why_an_output_is_not_shown_can_be_another() -> None:
    text = str(notice.captured(facts(why="does not fit beside the other results of this turn"), EXPIRES))

    assert "The output of run_command does not fit beside the other results of this turn: 4,194" in text


def test_an_output_that_nobody_could_store_needs_no_handle() -> None:
    lost = notice.truncated(facts(id="", sha256=b""), "no Overspill service is configured")

    assert str(lost) == (
        "[overspill NOT STORED] The output of run_command is too long to show: "
        "4,194,304 bytes (4.2 MB), 50,123 lines, about 1,300,000 tokens. "
        "It could NOT be stored: no Overspill service is configured.\n"
        "What the preview below leaves out is lost. If you need it, run the tool again with a narrower "
        "question (a filter, a range, fewer files).\n"
        "--- preview ---\n"
        "first\n"
        "… [50,121 lines, 4,194,293 bytes not shown] …\n"
        "last\n"
        "[/overspill]"
    )
    assert notice.is_notice(str(lost))
    assert notice.placeholder(lost, 7) == "[overspill: 7 bytes of text, not stored]"
    assert notice.is_notice(notice.placeholder(lost, 7))
    assert notice.as_dict(lost)["capture"] is None


def test_tokens_that_were_counted_are_said_exactly() -> None:
    text = str(notice.captured(facts(tokens=TokenCount(68_123, Basis.EXACT, 0.0)), EXPIRES))

    assert "50,123 lines, 68,123 tokens. It is stored" in text


def test_a_last_line_with_the_handle_is_one_line_whatever_the_reader_says() -> None:
    kept = Kept(outcome=Outcome.SPOOLED, expires=EXPIRES, reason="down")
    line = notice.closing(facts(reader="read\nwith {id}"), kept)

    assert line == (
        f"[overspill {ID}: the whole output, 4,194,304 bytes, 50,123 lines, is stored on this machine until "
        "2026-11-22T10:30:15Z, because the service could not take it (down); it will be uploaded as soon as "
        f"the service can take it. To read more: read with {ID}. "
        "Do not run the tool again to see more: read the capture.]"
    )
    assert notice.is_notice(f"kept\n{line}")
