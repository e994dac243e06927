"""`kind`: what people call content when they see its beginning."""

from __future__ import annotations

import json

import pytest
from overspill.reading.content_kind import HEAD_BYTES, detect

LONG_JSON = json.dumps([{"id": number, "name": "é" * 7} for number in range(1000)], ensure_ascii=False)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"", "unknown"),
        (b"plain words\nand more\n", "text"),
        ("日本語の文章\n".encode() * 200, "text"),
        (b'{"a": 1}', "json"),
        (b"[1, 2, 3]\n", "json"),
        (b'\xef\xbb\xbf {"a": [', "json"),
        (LONG_JSON.encode()[:HEAD_BYTES], "json"),
        (json.dumps(json.loads(LONG_JSON), indent=2).encode()[:HEAD_BYTES], "json"),
        (b'{"level": "info", "msg": "a"}\n{"level": "info", "msg": "b"}\n{"level"', "json"),
        (b"[INFO] starting\n[INFO] started\n", "log"),
        (b"{not json}\n", "text"),
        (b"[section]\nkey = 1\n", "text"),
        (b"2026-11-21T23:12:01Z GET / 200\n2026-11-21 23:12:02,123 done\n", "log"),
        (b"Nov 21 23:12:01 host sshd[1]: accepted\n" * 3, "log"),
        (b'10.0.0.1 - - [21/Nov/2026:23:12:01 +0000] "GET / HTTP/1.1" 200 12\n', "log"),
        (b"\x1b[32mINFO\x1b[0m ready\n\x1b[33mWARN\x1b[0m slow\n", "log"),
        (b"time=1 level=info msg=x\n", "log"),
        (b"ERROR: no such file\n  at main.c\n", "log"),
        (b"def f():\n    return 1\n" * 10, "text"),
        (b"src/a.py:12:import os\nsrc/b.py:1:import sys\n", "text"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary"),
        (b"\x1f\x8b\x08\x00" + bytes(range(256)), "binary"),
        ("utf-16".encode("utf-16"), "binary"),
        (bytes(range(128, 256)) * 8, "unknown"),
        ("caf\xe9 au lait, s'il vous pla\xeet\n".encode("latin-1") * 20, "text"),
    ],
)
def test_the_beginning_tells_the_kind(head: bytes, kind: str) -> None:
    assert detect(head, None) == kind


def test_what_the_content_looks_like_goes_before_what_it_is_said_to_be() -> None:
    assert detect(b"<html>not json</html>", "application/json") == "text"
    assert detect(b"a\0b", "text/plain") == "binary"


def test_a_declared_text_in_an_unknown_encoding_is_text() -> None:
    assert detect(bytes(range(192, 256)) * 20, "text/plain; charset=koi8-r") == "text"


@pytest.mark.parametrize(
    "head",
    [
        b"[" * HEAD_BYTES,
        b'{"a":' * HEAD_BYTES,
        b'"' + b"\\" * HEAD_BYTES,
        b"\n" * HEAD_BYTES,
        b" " * HEAD_BYTES,
    ],
)
def test_a_hostile_beginning_has_a_kind_too(head: bytes) -> None:
    assert detect(head, None) in {"text", "json"}


TOKENS = (
    r"""{"a": [1, -2.5e+10, 3E-7, true, false, null], "b\\\"\u00e9\ud83d\ude00": {}, "é": "日"}""".encode()
)


def test_json_that_is_cut_short_anywhere_is_json() -> None:
    for length in range(1, len(TOKENS) + 1):
        assert detect(TOKENS[:length], None) == "json", TOKENS[:length]


@pytest.mark.parametrize(
    "head",
    [
        *(b'{"a": 1,}', b"[1,]", b"[tru e", b"[nulll", b"[NaN, 1]", b"[01, 2]", b"[+", b"[1.x", b"[1 .5]"),
        *(b'["a" "b"', b'["\\x"', b'["\\u12g"', b'["\x01"', b'["\xff"', b"{u12", b"{} {", b"[- 1]"),
    ],
)
def test_what_no_json_begins_with_is_no_json(head: bytes) -> None:
    assert detect(head, None) != "json"
