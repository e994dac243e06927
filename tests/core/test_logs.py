"""Records as text and as JSON: fields, quoting, causes."""

from __future__ import annotations

import json
import logging
from typing import Any, Final

import pytest
from overspill_service.telemetry import logs


def record(**fields: object) -> logging.LogRecord:
    made = logging.LogRecord("overspill_service.x", logging.INFO, "", 0, "said %s", ("this",), None)
    made.__dict__.update(logs.fields(**fields))
    return made


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain", "plain"),
        (12, "12"),
        (0.5, "0.5"),
        ("", '""'),
        ("two words", '"two words"'),
        ("a=b", '"a=b"'),
        ('say "x"', r'"say \"x\""'),
        ("line\nforged status=200", r'"line\nforged status=200"'),
        ("\x1b[31m", '"\\u001b[31m"'),
        ("\x9b31mgrün", '"\\u009b31mgrün"'),
        ("a\u202eb\u2028c\x7f\u200b\U000e0041", '"a\\u202eb\\u2028c\\u007f\\u200b\\udb40\\udc41"'),
        ("\ud800", '"\\ud800"'),
    ],
)
def test_a_value_is_one_word_of_a_line(value: object, shown: str) -> None:
    assert logs.formatter_of("text").format(record(name=value)).endswith(f"[-] said this name={shown}")


UNSEEN: Final = "a\x9b31m\u202eb\u2028c\x7f\u200b\U000e0041\ud800"
"""What a terminal obeys, or nobody sees: a control of 8 bits, marks of direction, tags, half a character."""


def test_a_line_of_json_has_nothing_that_a_terminal_obeys_and_says_the_same() -> None:
    line = logs.formatter_of("json").format(record(name=UNSEEN))

    assert line.isprintable()
    assert json.loads(line)["name"] == UNSEEN


def test_a_message_and_a_traceback_have_nothing_that_a_terminal_obeys() -> None:
    made = record()
    made.msg, made.args = "no such thing: %s\n", (UNSEEN,)
    try:
        int(UNSEEN)
    except ValueError as error:
        made.exc_info = ValueError, ValueError(UNSEEN), error.__traceback__
    text = logs.formatter_of("text").format(made)

    assert text.replace("\n", "").isprintable()
    assert "test_logs.py" in text


def test_fields_of_what_is_under_way_come_with_every_record_and_go_with_it() -> None:
    formatter = logs.formatter_of("json")
    with logs.bound_fields(request_id="r", tenant="?"):
        logs.bind_fields(tenant="acme")
        within: dict[str, Any] = json.loads(formatter.format(record(tenant="own", code="x", message="no")))
        with logs.bound_fields(request_id="inner"):
            assert json.loads(formatter.format(record()))["request_id"] == "inner"
        assert json.loads(formatter.format(record()))["tenant"] == "acme"
    logs.bind_fields(tenant="nobody's")

    assert (within["request_id"], within["tenant"], within["code"]) == ("r", "own", "x")
    assert within["message"] == "said this"
    assert "tenant" not in json.loads(formatter.format(record()))


def test_the_causes_of_an_error_are_told_nearest_first() -> None:
    refused = RuntimeError("unavailable")
    refused.__cause__ = ConnectionError("no Redis")
    refused.__cause__.__cause__ = OSError(111, "Connection refused")

    assert logs.causes(refused) == (
        "ConnectionError: no Redis; ConnectionRefusedError: [Errno 111] Connection refused"
    )
    assert logs.causes(ValueError("alone")) == ""
