"""How tools say that something went wrong: the words to look for, and how much a line that has one matters.

Gathered from what compilers, test runners, package managers, shells, databases, servers and languages print.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

STRONG: Final = (
    b"error",
    b"fail",
    b"exception",
    b"fatal",
    b"panic",
    b"caused by",
    b"critical",
)
"""In lower case, as the others. Looked for in most of what is searched."""
SPECIFIC: Final[dict[bytes, tuple[bytes, ...]]] = {
    b"error": (b"error: ", b" error ", b"error[", b"[error]", b"error(", b"error\n"),
    b"fail": (b"failed: ", b"--- fail", b" failed\n", b"failure\n", b" fail: "),
    b"exception": (b"exception: ", b"exception in ", b"exception\n"),
}
"""What of a word to look for where too many lines have it."""
WEAK: Final = (
    b"undefined", b"no such", b"not ", b"n't ", b"refused", b"reject", b"conflict", b"unable", b"invalid",
    b"illegal", b"expect", b"assert", b"mismatch", b"missing", b"unresolved", b"unknown", b"unsupported",
    b"violat", b"timed out", b"timeout", b"segmentation", b"signal", b"memory", b"no space", b"overflow",
    b"denied", b"killed", b"corrupt", b"deadlock", b"severe", b"emerg", b"abort", b"err!", b"***", b"exit",
    b"returned", b"warn", b"no matching", b"differ", b"nonzero", b"non-zero", b"crash", b"bad ", b"wrong",
    "✗".encode(), "✘".encode(), "✖".encode(), "❌".encode(), "\N{MULTIPLICATION SIGN}".encode(), "●".encode(),
)  # fmt: skip
"""Looked for near both ends of what is searched."""
STATUS: Final = (
    (b" http/", re.compile(r"HTTP/\d(?:\.\d)?\"? [45]\d\d\b")),
    (b"status", re.compile(r"status(?:[ _]?code)?\"?[=:]? ?[45]\d\d\b")),
)
"""A word, and how it goes on in a line that matters: there the digits say it."""

DECISIVE: Final = 10
MARKED: Final = 8
SAID: Final = 6
HINT: Final = 4
WARNING: Final = 3
UNLIKE: Final = 2.5
CALM: Final = 2


class Verdict(NamedTuple):
    """How much a line matters, and the rule that says so: the place in the table."""

    weight: float
    rule: int


LIKE_NO_OTHER: Final = Verdict(UNLIKE, -1)


class _Rule(NamedTuple):
    """`pattern` is for lines that have one of `words`, both in lower case unless the rule `is_exact`."""

    weight: int
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    is_exact: bool


def _rule(weight: int, words: str, *patterns: str, is_exact: bool = False) -> _Rule:
    return _Rule(weight, tuple(words.split("|")), re.compile("|".join(patterns)), is_exact)


_SOME: Final = r"[1-9][\d,]*"
_RULES: Final = (
    # The last line of a traceback, and what it says of the cause.
    _rule(
        DECISIVE,
        "Error|Exception|Exit|Interrupt|Failure|Iteration",
        r"^\W{0,8}(?:[a-z_]\w*\.)*[A-Z_]\w*(?:Error|Exception|Exit|Interrupt|Failure|Iteration)"
        r"(?: \[\w+\])?(?:: \S|:?$)",
        is_exact=True,
    ),
    _rule(
        DECISIVE,
        "caused by: |exception in |uncaught |unhandled |panic: |panicked at|goroutine |terminate called"
        "|what():",
        r"^\s*(?:caused by: |exception in |uncaught |unhandled |panic: |goroutine \d+ \[)",
        r"\bpanicked at\b|\bterminate called\b|\bwhat\(\): ",
    ),
    # Compilers and linkers.
    _rule(
        DECISIVE,
        "error",
        r"(?:^|[:\]\s(])(?:fatal |internal |syntax |parse |runtime )?error(?:\[\w+\]| [a-z]{1,4}\d+)?: \S",
    ),
    _rule(
        DECISIVE,
        "undefined |multiple definition|duplicate symbol|cannot find -l|unresolved ",
        r"undefined (?:reference|symbol|name)|multiple definition|duplicate symbol|cannot find -l",
        r"unresolved (?:external|import)",
    ),
    # Test runners.
    _rule(DECISIVE, "E  ", r"^E {2,}\S", is_exact=True),
    _rule(
        DECISIVE,
        "FAIL|ERROR|not ok|✗|✘|✖|❌|\N{MULTIPLICATION SIGN}|●",
        r"^(?:FAILED|ERROR|FAIL:?|ERROR:) \S|^\s*--- FAIL|^\s*not ok\b|^\s*[✗✘✖❌\xd7●] \S",
        r"\.{3,} ?(?:FAILED|FAIL|ERROR)\b| (?:FAILED|ERROR)(?:\s*\[ *\d+%\])?$",
        is_exact=True,
    ),
    _rule(
        DECISIVE,
        "assert|expect",
        r"\bassert(?:ion)?\b.{0,120}?(?:fail|[!=<>]=| is | in )",
        r"expected\b.{1,120}?\b(?:got|but|found|received|actual|to (?:be|equal)|was)\b",
    ),
    # What the system says.
    _rule(
        DECISIVE,
        "segmentation|core dumped|memory|oom-kill|killed|bus error|illegal|no space|overflow|sig|invalid|race"
        "|sanitizer",
        r"segmentation fault|core dumped|out of memory|oom-kill|\bkilled\b|bus error|illegal instruction",
        r"no space left|stack overflow|\bsig(?:segv|abrt|kill|bus|ill|fpe)\b",
        r"\binvalid (?:read|write|free)\b|\bdata race\b|sanitizer: ",
    ),
    _rule(
        DECISIVE,
        "not |no |denied|connection |resolve|unreachable|in use|quota|read-only|verif|authentication"
        "|certificate|timed out",
        r"command not found|permission denied|access denied|not permitted|request timed out",
        r"no such (?:file|host|table|column|module|package|remote|image|key|variable|method)",
        r"connection (?:refused|reset|timed out|closed)",
        r"could not resolve|unreachable|already in use|cannot allocate|disk quota|read-only file system",
        r"no matching (?:distribution|version|package)|(?:authentication|verification) failed",
        r"certificate (?:problem|verif|has expired|is not)",
    ),
    # Builds, packages, repositories, databases, answers.
    _rule(
        DECISIVE,
        "***|ninja: |CMake Error|BUILD FAIL|npm |ERR_|E",
        r"\bmake(?:\[\d+\])?: \*\*\*|\bninja: |\bCMake Error|\bBUILD FAIL|\bnpm (?:ERR!|error)|\bERR_\w+",
        r"\bE[A-Z]{4,}\b: ",
        is_exact=True,
    ),
    _rule(
        DECISIVE,
        "fatal:|conflict (|rejected]",
        r"^(?:\S+: )?fatal:|^conflict \(|! \[(?:remote )?rejected\]",
    ),
    _rule(
        DECISIVE,
        "syntax error|constraint|violates|sqlstate|ora-|duplicate|deadlock",
        r"\bsyntax error\b|constraint failed|violates \w+|sqlstate|\bora-\d{5}|duplicate (?:key|entry)",
        r"\bdeadlock\b",
    ),
    _rule(
        DECISIVE,
        "http/|status",
        r"\bhttp/[\d.]+\"? 5\d\d\b|\bstatus(?:[ _]?code)?\"?[ :=]+5\d\d\b",
    ),
    _rule(
        MARKED,
        "http/|status",
        r"\bhttp/[\d.]+\"? 4\d\d\b|\bstatus(?:[ _]?code)?\"?[ :=]+4\d\d\b",
    ),
    # Summaries.
    _rule(
        MARKED,
        "fail|error|problem|fatal",
        rf"\b{_SOME} (?:tests? |suites? )?(?:failed|failing|failures?|errors?|problems?|fatal)\b",
        rf"\b(?:failed|failures?|errors?)\"?[:=] *{_SOME}\b",
    ),
    _rule(
        MARKED,
        "exit|returned|zero",
        rf"\bexit(?:ed|s)?(?: with)?(?: (?:status|code))?:? +{_SOME}\b|\breturned {_SOME}\b|non-?zero",
    ),
    # Levels of logs.
    _rule(
        MARKED,
        "FATAL|CRITICAL|PANIC|EMERG|ALERT|SEVERE|level|lvl|severity",
        r"\b(?:FATAL|CRITICAL|PANIC|EMERG|ALERT|SEVERE)\b",
        r"\b(?:level|lvl|severity)\"?[=:] ?\"?(?:fatal|critical|panic|FATAL|CRITICAL)",
        is_exact=True,
    ),
    _rule(
        MARKED,
        "ERR|FAIL|level|lvl|severity",
        r"\b(?:ERROR|FAILURE|FAILED|FAIL|ERR)\b|\b(?:level|lvl|severity)\"?[=:] ?\"?(?:err|ERR)",
        is_exact=True,
    ),
    # Words.
    _rule(
        SAID,
        "ERR|FAIL|FATAL|EXC",
        r"\b(?:[A-Z]+_)*(?:ERROR|ERR|FAILED|FAILURE|FATAL|EXCEPTION)(?:_[A-Z]+)*\b",
        is_exact=True,
    ),
    _rule(
        SAID,
        "error|exception|fail|fatal|panic|abort|crash",
        r"(?<![\w./-])(?:error|exception|failed|fails?|failure|fatal|panic|aborted|crash(?:ed)?)(?![\w./-]*\w)",
    ),
    _rule(
        HINT,
        "not|n't|unable|invalid|illegal|expected|assert|match|missing|unresolved|unsupported|reject|conflict"
        "|refused|denied|out|corrupt|overflow|abort|unknown|undefined|must|bad|wrong",
        r"\b(?:cannot|can't|could ?n[o']t|unable|invalid|illegal|unexpected|expected|assert\w*)\b",
        r"\b(?:mismatch\w*|missing|unresolved|unsupported|reject\w*|conflict\w*|refused|denied|corrupt\w*)\b",
        r"\bnot (?:found|ok|allowed|valid|available)\b|\b(?:does not|must (?:not )?be|bad|wrong)\b",
        r"\b(?:timed? ?out|overflow|abort\w*|unknown|undefined)\b",
    ),
    _rule(WARNING, "warn", r"\bwarn(?:ing)?s?\b"),
)
_HARMLESS: Final = re.compile(
    r"\b(?:0|no|zero|without)\s+(?:\w+\s+)?(?:errors?|failures?|failed|exceptions?|warnings?|problems?|issues?)\b"
    r"|\b(?:errors?|failures?|failed|exceptions?|warnings?)\"?\s*[=:]\s*(?:0|none|null|false|\[\]|\"\")(?![\d.])"
    r"|\bexit(?:ed)?(?: with)?(?: (?:status|code))?:? 0\b",
    re.IGNORECASE,
)
_DENIALS: Final = ("0", "no ", "none", "null", "false", "[]", '""', "zero", "without")
_PASSING: Final = re.compile(
    r"^(?:ok|PASS(?:ED)?:?)\s|^\s*(?:✓|✔|√)"
    r"|\s(?:PASSED|PASS|passed|ok|OK|SKIPPED)\s*(?:\[ *\d+%\]|\([\d.]+ ?m?s\))?\s*$"
)
_CALM_WORDS: Final = ("info", "debug", "trace", "notice", "verbose")
_CALM: Final = re.compile(
    r"\b(?:INFO|DEBUG|TRACE|NOTICE|VERBOSE)\b|\[(?:info|debug|trace|notice)\]"
    r"|\b(?:level|lvl|severity)\"?[=:] ?\"?(?:info|debug|trace|notice)\b"
)
_PREFIX: Final = 80
"""Characters at the beginning of a line of a log that its level is in."""


def verdict(line: str) -> Verdict | None:
    """How much `line` matters; None where nothing in it says that something went wrong."""
    if _PASSING.search(line):
        return None
    lower = line.lower()
    if _has(lower, _DENIALS):
        line = _HARMLESS.sub("", line)
        lower = line.lower()
    for number, rule in enumerate(_RULES):
        text = line if rule.is_exact else lower
        if _has(text, rule.words) and rule.pattern.search(text):
            return Verdict(min(rule.weight, CALM) if _is_calm(line, lower) else rule.weight, number)
    return None


def _has(text: str, words: tuple[str, ...]) -> bool:
    for word in words:  # noqa: SIM110  (`any` takes three times as long)
        if word in text:
            return True
    return False


def _is_calm(line: str, lower: str) -> bool:
    """Whether the line of a log says of itself that all is well."""
    return _has(lower[:_PREFIX], _CALM_WORDS) and _CALM.search(line, 0, _PREFIX) is not None


def least_shown(best: float) -> float:
    """The least weight that is worth showing beside a line of weight `best`."""
    return SAID if best >= MARKED else CALM
