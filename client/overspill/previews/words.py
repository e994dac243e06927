"""The words for trouble that a text is searched for, in lower case unless said otherwise."""

from __future__ import annotations

import re
from typing import Final

STRONG: Final = (b"error", b"fail", b"exception")
"""Searched for everywhere but in the middle of a long text."""
STRONG_WORD: Final = re.compile("error|fail|exception", re.IGNORECASE)
"""If too many lines have a word, some of those with a strong one are judged too."""
DISTANT: Final = (b"ERROR", b"FAIL", b"rror:")
"""Searched for in the middle of a long text, as they are written."""
USUAL: Final = (b"fatal", b"panic", b"exit", b"\x1b[31", b'" 50', b"assert", b"blocked for")
"""Searched for in more places than the weak words, since few lines have them."""
LOUD: Final[dict[bytes, bytes]] = {b"error": b"ERROR", b"fail": b"FAIL", b"exception": b"Exception:"}
"""How a word is written where it matters. Searched for if too many lines have the word."""
LOUD_MARKS: Final = (
    "ERROR",
    "FAIL",
    "Error: ",
    "error: ",
    "Exception: ",
    "***",
    "\x1b[31",
    "exited with",
    "panic",
)
"""If too many lines have a word, those with one of these are judged first."""
SPECIFIC: Final[dict[bytes, tuple[bytes, ...]]] = {
    b"error": (b"error: ", b"error in ", b"error\n"),
    b"fail": (b"failed: ", b"*** fail", b"failure\n"),
    b"exit": tuple(
        b"exit%s %d" % (how, digit)
        for how in (b"ed with", b" code", b" status", b" code:")
        for digit in range(1, 10)
    ),
}
"""Like `LOUD`, in lower case."""
WEAK: Final = (
    b"undefined", b"no such", b"not ", b"n't ", b"refused", b"reject", b"conflict", b"unable", b"invalid",
    b"illegal", b"unexpect", b"expect", b"mismatch", b"missing", b"unknown", b"unsupported",
    b"violat", b"timed out", b"timeout", b"segmentation", b"segfault", b"signal", b"memory", b"no space",
    b"overflow", b"denied", b"killed", b"corrupt", b"deadlock", b"severe",
    b"caused by", b"critical", b'status":"5', b"emerg", b"err!", b"***",
    b"returned", b"warn", b"no matching", b"unresolved", b"differ", b"nonzero", b"non-zero", b"crash",
    b"bad ", b"wrong", b"lockup", b"oops", b"bug:", b"unrecognized", b"flag provided",
    b"backoff", b"back-off", b"oomkilled",
    b'"level":50', b'"level":60', b'"ok":false', b'"success":false', b") test ",
    b'"level": 50', b'"level": 60', b'"ok": false', b'"success": false',
    b"problem", b"offense", b"severity", b"sanitizer", b"not in scope", b"err:",
    b"[31m", b"[31;1m", b"[1;31m", b"[91m", b"! ", b"leak", b"lost:",
    "✗".encode(), "✘".encode(), "✖".encode(), "❌".encode(), "\N{MULTIPLICATION SIGN}".encode(), "●".encode(),
)  # fmt: skip
"""Searched for near both ends only."""
END_OF_RED: Final = b"1m"
"""How each of the weak words that is a colour code ends. They are searched for only if a text has this."""
NUMBERED: Final = (b"exit", b"code", b"status", b"http/", b"returned", b"rc=")
TELLING_NUMBER: Final = re.compile(
    rb"(?:exit\w{0,3}|code|status|rc|returned|http/[\d.]{1,3})\W{1,3}(?:\w{1,6}\W{1,2})?(\d{1,9})"
)
"""A number that says whether all went well. Lines that differ in it are not alike."""
