"""How tools say that something went wrong: the words to look for, and how much a line that has one matters.

Gathered from what compilers, test runners, package managers, shells, databases, servers and languages print.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

STRONG: Final = (
    b"error", b"fail", b"exception", b"fatal", b"panic", b"denied", b"caused by", b"abort", b"err!",
)  # fmt: skip
"""In lower case, as `WEAK`. Looked for in all that is searched."""
WEAK: Final = (
    b"undefined", b"no such", b"not found", b"refused", b"reject", b"conflict", b"cannot", b"can't", b"could not",
    b"unable", b"invalid", b"illegal", b"unexpected", b"expected", b"assert", b"mismatch", b"missing",
    b"unresolved", b"unknown", b"unsupported", b"violat", b"not permitted", b"not ok", b"timed out", b"timeout",
    b"killed", b"segmentation", b"core dumped", b"signal", b"out of memory", b"no space", b"overflow", b"corrupt",
    b"deadlock", b"critical", b"severe", b"emerg", b"***", b" http/", b"status", b"exit", b"returned", b"warn",
    b"no matching", b"couldn't", b"does not", b"nonzero", b"non-zero", b"bug:", b"oops",
    "✗".encode(), "✘".encode(), "✖".encode(), "❌".encode(), "×".encode(), "●".encode(),
)  # fmt: skip
"""Looked for near both ends of what is searched."""

DECISIVE: Final = 10
STRONG_WEIGHT: Final = 8
PLAIN: Final = 6
HINT: Final = 4
WARNING: Final = 3
CALM: Final = 2
MENTION: Final = 1


class Verdict(NamedTuple):
    """How much a line matters, and which kind of line it is: the place of its rule in the table."""

    weight: int
    rule: int


_NUMBER: Final = r"[1-9][\d,]*"
_RULES: Final[tuple[tuple[int, re.Pattern[str]], ...]] = tuple(
    (weight, re.compile(pattern, flags))
    for weight, pattern, flags in (
        # the last line of a traceback, and of what caused it
        (
            DECISIVE,
            r"^\W{0,8}(?:[a-z_]\w*\.)*[A-Z_]\w*(?:Error|Exception|Exit|Interrupt|Failure|Warning|Iteration)"
            r"(?: \[\w+\])?(?:: \S|$)",
            0,
        ),
        (
            DECISIVE,
            r"^\s*(?:Caused by: |Exception in thread |Uncaught |Unhandled |uncaught exception|panic: |goroutine \d+ \[)"
            r"|\bpanicked at\b|\bterminate called\b|\bwhat\(\): ",
            0,
        ),
        # compilers and linkers
        (
            DECISIVE,
            r"(?:^|[:\]\s(])(?:fatal |internal |syntax |parse )?error(?:\[\w+\]| [A-Z]{1,4}\d+)?: \S",
            re.IGNORECASE,
        ),
        (
            DECISIVE,
            r"undefined (?:reference|symbol)|multiple definition|duplicate symbol|cannot find -l|unresolved (?:external|import)",
            0,
        ),
        # test runners
        (DECISIVE, r"^E {2,}\S", 0),
        (
            DECISIVE,
            r"^(?:FAILED|ERROR|FAIL:?|ERROR:) \S|^\s*--- FAIL|^not ok\b|^\s*[✗✘✖❌×●] \S|\.{3,} ?(?:FAILED|FAIL|ERROR)\b| (?:FAILED|ERROR)(?:\s*\[ *\d+%\])?$",
            0,
        ),
        (
            DECISIVE,
            r"\bassert(?:ion)?\b.*(?:fail|[!=<>]=| is | in )|expected\b.{1,200}?\b(?:got|but|found|received|actual|to (?:be|equal)|was)\b",
            re.IGNORECASE,
        ),
        # what the system says
        (
            DECISIVE,
            r"segmentation fault|core dumped|out of memory|oom-kill|\bkilled\b|bus error|illegal instruction|no space left|stack overflow|\bSIG(?:SEGV|ABRT|KILL|BUS|ILL|FPE)\b",
            re.IGNORECASE,
        ),
        (
            DECISIVE,
            r"command not found|no such (?:file|host|table|column|module|package|remote|image|key)|permission denied|access denied"
            r"|not permitted|(?:connection|request) (?:refused|reset|timed out)|could not resolve|host unreachable"
            r"|address already in use|cannot allocate|disk quota|read-only file system|no matching (?:distribution|version)"
            r"|certificate (?:verif|has expired|is not)|(?:authentication|verification) failed",
            re.IGNORECASE,
        ),
        # builds, packages, repositories, databases, HTTP
        (
            DECISIVE,
            r"\bmake(?:\[\d+\])?: \*\*\*|\bninja: |\bCMake Error|\bBUILD FAIL|\bnpm (?:ERR!|error)|\bERR_\w+|\bE[A-Z]{4,}\b: ",
            0,
        ),
        (DECISIVE, r"^(?:\S+: )?fatal:|\bCONFLICT \(|! \[(?:remote )?rejected\]", 0),
        (
            DECISIVE,
            r"\bsyntax error\b|constraint failed|violates \w+|SQLSTATE|\bORA-\d{5}|duplicate key|\bdeadlock\b",
            re.IGNORECASE,
        ),
        (DECISIVE, r"\bHTTP/[\d.]+\"? [45]\d\d\b|\bstatus(?:[ _]?code)?\"?[ :=]+[45]\d\d\b", re.IGNORECASE),
        # summaries
        (
            STRONG_WEIGHT,
            rf"\b{_NUMBER} (?:tests? |suites? )?(?:failed|failing|failures?|errors?|problems?|fatal)\b|\b(?:failed|failures?|errors?)\"?[:=] *{_NUMBER}\b",
            re.IGNORECASE,
        ),
        (
            STRONG_WEIGHT,
            rf"\bexit(?:ed|s)?(?: with)?(?: (?:status|code))?:? +{_NUMBER}\b|\breturned {_NUMBER}\b|non-?zero",
            re.IGNORECASE,
        ),
        # levels of logs
        (
            STRONG_WEIGHT,
            r"\b(?:FATAL|CRITICAL|PANIC|EMERG|ALERT|SEVERE)\b|\b(?:level|lvl|severity)\"?[=:] ?\"?(?:fatal|critical|panic)",
            0,
        ),
        (STRONG_WEIGHT, r"\b(?:ERROR|FAILURE|FAILED|FAIL|ERR)\b|\b(?:level|lvl|severity)\"?[=:] ?\"?err", 0),
        (PLAIN, r"\b(?:[A-Z]+_)*(?:ERROR|ERR|FAILED|FAILURE|FATAL|EXCEPTION)(?:_[A-Z]+)*\b", 0),
        (
            PLAIN,
            r"(?<![\w./-])(?:error|exception|failed|failure|fatal|panic|aborted|crash(?:ed)?)(?![\w./-]*\w)",
            re.IGNORECASE,
        ),
        (
            HINT,
            r"\b(?:cannot|can't|could ?n[o']t|unable|invalid|illegal|unexpected|expected|assert\w*|mismatch\w*|missing|unresolved|unsupported|reject\w*|conflict\w*|refused|denied|not found|not ok|timed? ?out|corrupt\w*|overflow|abort\w*|unknown|undefined|does not)\b",
            re.IGNORECASE,
        ),
        (WARNING, r"\bwarn(?:ing)?s?\b", re.IGNORECASE),
        (MENTION, r"error|exception|fail|fatal|panic|exit|critical", re.IGNORECASE),
    )
)
_HARMLESS: Final = re.compile(
    r"\b(?:0|no|zero|without)\s+(?:\w+\s+)?(?:errors?|failures?|failed|exceptions?|warnings?|problems?|issues?)\b"
    r"|\b(?:errors?|failures?|failed|exceptions?|warnings?)\"?\s*[=:]\s*(?:0|none|null|false|\[\])(?![\d.])"
    r"|\bexit(?:ed)?(?: with)?(?: (?:status|code))?:? 0\b",
    re.IGNORECASE,
)
_PASSING: Final = re.compile(
    r"^(?:ok|PASS(?:ED)?:?)\s|\s(?:PASSED|PASS|passed|ok|OK|SKIPPED)\s*(?:\[ *\d+%\]|\([\d.]+ ?m?s\))?\s*$|^\s*(?:✓|✔|√)"
)
_CALM: Final = re.compile(
    r"^.{0,60}?(?:\b(?:INFO|DEBUG|TRACE|NOTICE|VERBOSE)\b|\[(?:info|debug|trace|notice)\])"
    r"|\b(?:level|lvl|severity)\"?[=:] ?\"?(?:info|debug|trace|notice)\b"
)


def verdict(line: str) -> Verdict | None:
    """How much `line` matters; None where nothing in it says that something went wrong."""
    if _PASSING.search(line):
        return None
    rest = _HARMLESS.sub("", line)
    for rule, (weight, pattern) in enumerate(_RULES):
        if pattern.search(rest):
            return Verdict(min(weight, CALM) if _CALM.search(line) else weight, rule)
    return None


def least_shown(best: int) -> int:
    """The least weight that is worth showing beside a line of weight `best`."""
    return HINT if best >= STRONG_WEIGHT else CALM
