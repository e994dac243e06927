r"""RE2's syntax put into that of Python's `re`, for searches on this machine.

A translated pattern hardly ever matches a line end, so that it can run over many lines at once
(`re.MULTILINE`); only a class with a range around `\n` does, as `[\t-\r]`. `\b`, `\d`, `\s` and `\w` are
ASCII; ignoring case is Unicode-aware. What RE2 refuses is refused here too, and so are Unicode classes
(`\pL`), which `re` does not know. Python's engine backtracks: whoever runs the pattern of a stranger does so
where it can be stopped.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_SIZE: Final = 4096
"""Bytes that a pattern may have, and how often it may repeat something: as in the service."""
MAX_REPEAT: Final = 1000


class Unsupported(Exception):
    """A pattern that cannot be searched for; the text says why, and what to do instead."""


def compile_pattern(pattern: str, *, fixed: bool, ignore_case: bool) -> re.Pattern[str]:
    r"""For text of many lines, which end at `\n` alone. Raises `Unsupported`."""
    if "\n" in pattern:
        raise Unsupported(_LINE_END)
    try:
        size = len(pattern.encode())
    except UnicodeEncodeError:
        raise Unsupported("the pattern is not valid Unicode: it has a lone surrogate") from None
    if size > MAX_SIZE:
        raise Unsupported(f"the pattern has {size} bytes; {MAX_SIZE} is the most")
    source = re.escape(pattern) if fixed else translated(pattern)
    try:
        return re.compile(source, re.MULTILINE | (re.IGNORECASE if ignore_case else 0))
    except (re.error, OverflowError, RecursionError) as error:
        raise Unsupported(f"the pattern is not valid: {error}. {_SYNTAX}") from None


def translated(pattern: str) -> str:
    """`pattern`, in RE2's syntax, in Python's. Raises `Unsupported`."""
    return "".join(_Translation(pattern).parts())


def longest(pattern: str) -> float:
    """A bound on the characters that a valid pattern matches; infinite where it has none."""
    length = float(len(pattern))
    for token in _TOKEN.finditer(pattern):
        if token.lastgroup == "repeat":
            numbers = [int(number) for number in re.findall(r"\d+", token[0])]
            is_open = token[0][0] in "*+" or ",}" in token[0]
            length *= float("inf") if is_open else max([1, *numbers])
    return length


_SYNTAX: Final = (
    "The syntax is RE2's (github.com/google/re2/wiki/Syntax); fixed=true searches for the text as it is"
)
_LINE_END: Final = (
    "a pattern cannot match a line end: lines are searched one by one. Search for one of the lines, "
    "and use context=, before= or after= to see those around it"
)
_TOKEN: Final = re.compile(
    r"""
    (?P<quoted> \\Q .*? (?: \\E | \Z ) )
  | (?P<code> \\x \{ [0-9A-Fa-f]{1,8} \} | \\x [0-9A-Fa-f]{2} )
  | (?P<octal> \\0 [0-7]{0,2} )
  | (?P<escape> \\ . )
  | (?P<set> \[ \^? \]? (?: \[:[^\]]*:\] | \\. | [^\]\\] )* \] )
  | (?P<name> \(\?P?<[A-Za-z0-9_]+> )
  | (?P<flags> \(\? [A-Za-z]* (?:-[A-Za-z]+)? [:)] )
  | (?P<special> \(\? .? .? )
  | (?P<open> \( )
  | (?P<close> \) )
  | (?P<either> \| )
  | (?P<repeat> (?: [*+?] | \{ \d+ (?:,\d*)? \} ) \?? )
  | (?P<literal> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES: Final = {
    "d": "[0-9]",
    "D": r"[^0-9\n]",
    "w": "(?-i:[0-9A-Za-z_])",
    "W": r"(?-i:[^0-9A-Za-z_\n])",
    "s": r"[\t\f\r ]",
    "S": r"[^\t\n\f\r ]",
    "b": r"(?a:\b)",
    "B": r"(?a:\B)",
}
_IN_SET: Final = {
    "d": "0-9",
    "D": r"\x00-\x09\x0b-/:-\U0010ffff",
    "w": "0-9A-Za-z_",
    "W": r"\x00-\x09\x0b-/:-@\[-\^`{-\U0010ffff",
    "s": r"\t\f\r ",
    "S": r"\x00-\x08\x0b\x0e-\x1f!-\U0010ffff",
}
_NAMED_SETS: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x09\x0b-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x09\x0b-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_SET_PART: Final = re.compile(
    r"\[:\^?(?P<named>\w+):\]|\\x\{?(?P<code>[0-9A-Fa-f]{1,8})\}?|\\(?P<octal>0[0-7]{0,2})|\\(?P<letter>.)|.",
    re.DOTALL,
)
_CONTROLS: Final = frozenset("aftrv")
"""Escapes of letters that mean the same in both."""
_LAST_CODE: Final = 0x10FFFF


class _Translation:
    """One pattern on its way. Flags set inside a group hold to its end, over its alternatives too."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._groups: list[list[str]] = [[]]
        """Of each open group the flags set inside it, each a group of its own in the translation."""

    def parts(self) -> Iterator[str]:
        kind = ""
        for token in _TOKEN.finditer(self._pattern):
            before, kind = kind, str(token.lastgroup)
            if before == kind == "repeat":
                raise Unsupported(f"what is repeated cannot be repeated again by {token[0]}. {_SYNTAX}")
            yield self._structure(kind, token[0]) or _atom(kind, token[0])
        if len(self._groups) > 1:
            raise Unsupported(f"a parenthesis is not closed. {_SYNTAX}")
        yield ")" * len(self._groups[0])

    def _structure(self, kind: str, text: str) -> str | None:
        """What opens, closes or parts groups."""
        match kind:
            case "open" | "name":
                self._groups.append([])
                return "(?:"
            case "flags":
                return self._flagged(text)
            case "close" if len(self._groups) == 1:
                raise Unsupported(f"a parenthesis is closed that was never opened. {_SYNTAX}")
            case "close":
                return ")" * (len(self._groups.pop()) + 1)
            case "either":
                flags = self._groups[-1]
                return ")" * len(flags) + "|" + "".join(flags)
        return None

    def _flagged(self, text: str) -> str:
        on, _, off = text[2:-1].partition("-")
        if set(on + off) - set("imsU") or "m" in off:
            raise Unsupported(f"the flags {text} are not supported. {_SYNTAX}")
        group = f"(?{'i' if 'i' in on else ''}{'-i' if 'i' in off else ''}:"
        if text.endswith(":"):
            self._groups.append([])
        else:
            self._groups[-1].append(group)
        return group


def _atom(kind: str, text: str) -> str:
    match kind:
        case "quoted":
            return re.escape(text.removeprefix(r"\Q").removesuffix(r"\E"))
        case "code" | "octal":
            return re.escape(_character(text))
        case "escape":
            return _ESCAPES.get(text[1]) or _escape(text[1])
        case "set":
            return _set(text)
        case "repeat":
            return _repeat(text)
        case "special":
            raise Unsupported(_SPECIAL.format(text))
    if text in "[\\":
        raise Unsupported(f"the pattern ends inside a class or an escape. {_SYNTAX}")
    return text if text in "^$." else re.escape(text)


_SPECIAL: Final = (
    "{} is not supported: no look-around, conditions, recursion, comments or possessive groups. "
    "Search for the plain text and pick among the matching lines, or use invert=true to leave lines out"
)


def _repeat(text: str) -> str:
    if any(int(number) > MAX_REPEAT for number in re.findall(r"\d{1,9}", text)):
        raise Unsupported(f"the repetition {text[:40]} is too large: {MAX_REPEAT} is the most. Write + or *")
    return text


def _set(text: str) -> str:
    is_negated = text.startswith("[^")
    members = "".join(map(_member, _SET_PART.finditer(text[2:-1] if is_negated else text[1:-1])))
    return rf"[^\n{members}]" if is_negated else f"[{members}]"


def _member(part: re.Match[str]) -> str:
    named, letter = part["named"], part["letter"]
    if named is not None:
        if part[0].startswith("[:^") or named not in _NAMED_SETS:
            raise Unsupported(f"the class {part[0]} is not supported. {_SYNTAX}")
        return _NAMED_SETS[named]
    if letter is not None:
        return _IN_SET.get(letter) or _escape(letter)
    if part["code"] or part["octal"]:
        return re.escape(_character(part[0]))
    return "-" if part[0] == "-" else re.escape(part[0])


def _escape(letter: str) -> str:
    r"""What a backslash and `letter` stand for."""
    if letter in _CONTROLS:
        return "\\" + letter
    if letter in "nR":
        raise Unsupported(_LINE_END)
    if letter.isdigit() or letter in "kg":
        raise Unsupported("back-references are not supported. Write what the group matches once more")
    if letter in "pP":
        raise Unsupported(rf"\{letter} is not supported while the capture waits on this machine. {_CLASS}")
    if letter.isascii() and letter.isalpha():
        raise Unsupported(rf"\{letter} is not supported. {_SYNTAX}")
    return re.escape(letter)


_CLASS: Final = "Write a class, as [a-zäöü]"


def _character(text: str) -> str:
    r"""The character of `\x41`, `\x{41}` or `\101`."""
    digits = text.strip("\\x{}")
    code = int(digits, 16) if text[1] == "x" else int(digits, 8)
    if code > _LAST_CODE:
        raise Unsupported(f"{text} is no character. {_SYNTAX}")
    return chr(code)
