"""Judge how much lines matter: by the first rule that it meets, and by its own level and colour."""

from __future__ import annotations

import functools
import re
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.previews.keywords import Keywords, members
from overspill.previews.prefixes import message, without_level
from overspill.previews.rule import CALM, DECISIVE, HINT, MARKED, SAID, UNLIKE, Role, Rule, at_word
from overspill.previews.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

_CALMED: Final = 0.5
"""A decisive line loses so much if its log level says that all is well."""


class LineVerdict(NamedTuple):
    """The weight of a line, and the number of the rule that gives it."""

    weight: float
    rule: int
    role: Role = Role.TELLS


LIKE_NO_OTHER: Final = LineVerdict(UNLIKE, -1)
COLOURED: Final = LineVerdict(SAID, -2)
"""A line in red."""
_HARMLESS: Final = re.compile(
    at_word(
        "0|no|zero|without",
        r"\s{1,3}(?:[a-z]{1,20}\s{1,3})?"
        r"(?:errors?|failures?|failed|exceptions?|warnings?|problems?|issues?|offenses)\b",
    )
    + "|"
    + at_word(
        "errors?|failures?|failed|exceptions?|warnings?|unreachable",
        r"\"?\s{0,3}[=:]\s{0,3}(?:0|none|null|false|\[\]|\"\")(?![\d.])",
    )
    + "|"
    + at_word("exit", r"(?:ed)?(?: with)?(?: (?:status|code))?:? 0\b")
    + r"|--no-\w{1,20}"
)
"""Words that say that nothing went wrong, in lower case."""
_DENIALS: Final = ("0", "no ", "none", "null", "false", "[]", '""', "zero", "without", "--no")
_DENIED: Final = (
    "error", "fail", "exception", "warning", "problem", "issue", "offenses", "unreachable", "exit", "--no",
)  # fmt: skip
"""A line without any of these denies nothing."""
_PASSING: Final = re.compile(
    r"^(?:ok|PASS(?:ED)?:?)\s|^\s*(?:✓|✔|√)"
    r"|\s(?:PASSED|PASS|passed|ok|OK|SKIPPED)\s*(?:\[ *\d+%\]|\(?[\d.]+ ?m?s\)?)?\s*$"
    r"|^\s*\[ +OK +\]|\.{2,} *(?:ok|OK|Passed|passed|PASSED)\b|- PASS\b|: [\d.]+ ms OK$"
)
_PASSED: Final = ("ok", "PASS", "pass", "OK", "SKIP", "✓", "✔", "√")
_CALM_WORDS: Final = ("info", "debug", "trace", "notice", "verbose")
_CALM: Final = re.compile(
    at_word("INFO|DEBUG|TRACE|NOTICE|VERBOSE", r"\b(?!: task)")
    + r"|\[(?:info|debug|trace|notice)\]|"
    + at_word("level|lvl|severity", r"\"?[=:] ?\"?(?:info|debug|trace|notice)\b")
)
_RED: Final = re.compile(r"\x1b\[(?:\d{1,2};){0,2}(?:31|91)(?:;\d{1,2}){0,2}m")
_PREFIX: Final = 80
"""Characters at the beginning of a line of a log that its level is in."""
_TRACED: Final = re.compile(r"^(?:\+{1,4} ?[\w'\[/.]|\$ \S)|^\s*(?:-{1,2}[a-z]|// |/\*|#!)")
"""A command that a shell prints before it runs, an option, a comment: these only mention errors."""


def judge(lines: Sequence[str]) -> list[LineVerdict | None]:
    """Return how much each line matters; None for a line that does not say that something went wrong."""
    content = [message(line) for line in lines]
    undenied = [_without_denials(each) for each in content]
    words = _RuleWords.among("\n".join(undenied))
    return [_judged(*each, words) for each in zip(lines, content, undenied, strict=True)]


def _judged(line: str, content: str, undenied: str, words: _RuleWords) -> LineVerdict | None:
    found = _by_rule(undenied, line, words)
    bare = without_level(undenied)
    if bare != undenied and (found is None or found.weight < MARKED):
        found = max(found, _by_rule(bare, line, words), key=lambda one: one.weight if one else 0)
    if found is None and content != line:
        whole = _without_denials(line.strip())
        found = _by_rule(whole, line, _RuleWords.among(whole))
    return found


def is_red(line: str) -> bool:
    """Return whether `line` is red from near its beginning on."""
    return _RED.search(line, 0, _PREFIX) is not None if "\x1b" in line else False


class _RuleWords(NamedTuple):
    """The words of rules that some lines have, each with the set of numbers of its rules."""

    exact: list[tuple[str, int]]
    lower: list[tuple[str, int]]
    """Of rules that apply to the line in lower case."""

    @classmethod
    def among(cls, text: str) -> _RuleWords:
        found = _keywords().among(text.lower().encode(errors="replace"))
        exact, lower = (_words(is_exact=is_exact) for is_exact in (True, False))
        return cls(*([pair for word in found for pair in words.get(word, ())] for words in (exact, lower)))

    def rules(self, content: str, lower: str) -> tuple[int, ...]:
        """Return the numbers of the rules of which a line has a word, the first rule first."""
        numbers = 0
        for word, its_numbers in self.lower:
            if word in lower:
                numbers |= its_numbers
        for word, its_numbers in self.exact:
            if word in content:
                numbers |= its_numbers
        return members(numbers)


@functools.cache
def _keywords() -> Keywords:
    return Keywords([*_words(is_exact=True), *_words(is_exact=False)])


@functools.cache
def _words(*, is_exact: bool) -> dict[bytes, list[tuple[str, int]]]:
    """Return the words of the rules that are exact, or of the others, by what they are in lower case."""
    numbers: Counter[str] = Counter()
    for number, rule in enumerate(RULES):
        if rule.is_exact == is_exact:
            numbers.update(dict.fromkeys(rule.words, 1 << number))
    words: dict[bytes, list[tuple[str, int]]] = {}
    for word, its_numbers in numbers.items():
        words.setdefault(word.lower().encode(), []).append((word, its_numbers))
    return words


def _by_rule(content: str, line: str, words: _RuleWords) -> LineVerdict | None:
    """Return the verdict of the first rule that the message meets; None if it says that all is well."""
    lower = content.lower()
    numbers = words.rules(content, lower)
    if not numbers or (_has(content, _PASSED) and _PASSING.search(content)):
        return None
    for number in numbers:
        rule = RULES[number]
        if rule.is_met(content, lower):
            return LineVerdict(_weighed(rule, content, line), number, rule.role)
    return None


def _without_denials(content: str) -> str:
    lower = content.lower()
    if not _has(lower, _DENIALS) or not _has(lower, _DENIED) or len(lower) != len(content):
        return content
    for denial in reversed(list(_HARMLESS.finditer(lower))):
        begin, end = denial.span()
        content = content[:begin] + content[end:]
    return content


def _weighed(rule: Rule, content: str, line: str) -> float:
    if _TRACED.match(content):
        return min(rule.weight, HINT)
    if not _is_calm(line):
        return rule.weight
    return rule.weight - _CALMED if rule.weight >= DECISIVE else min(rule.weight, CALM)


def _is_calm(line: str) -> bool:
    """Return whether the level of a log line says that all is well."""
    return _has(line[:_PREFIX].lower(), _CALM_WORDS) and _CALM.search(line, 0, _PREFIX) is not None


def _has(text: str, words: tuple[str, ...]) -> bool:
    for word in words:  # half the time of `any`  # noqa: SIM110
        if word in text:
            return True
    return False


def least_shown(best: float) -> float:
    """Return the smallest weight that is worth showing beside a line of weight `best`."""
    return SAID if best >= MARKED else CALM
