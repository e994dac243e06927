"""Take off what stands before the message of a line: times, hosts, process ids, marks of containers.

So a rule about how a line begins applies to the message alone.
"""

from __future__ import annotations

import re
from typing import Final

from overspill.text.sanitize import ANSI

_MAX_PREFIXES: Final = 6
"""Parts of one prefix that are taken off."""
_LONGEST: Final = 200
"""Characters of a prefix that are looked at for another part of it."""
_CLOCK: Final = r"\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?"
_ZONE: Final = r"(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
_LEVEL: Final = r"(?:fatal|critical|crit|error|err|warn|warning|info|debug|trace|notice|fail(?:ed|ure)?)\b"
_PART: Final = re.compile(
    # Times: ISO 8601, as loggers and `date` write them, alone, in brackets, in seconds.
    rf"[\[(]?\d{{4}}[-/]\d\d[-/]\d\d[T _]{_CLOCK}{_ZONE}[\])]?[\s:|,]*(?:- )?"
    rf"|[\[(]?{_CLOCK}{_ZONE}[\])]?[\s:|]+(?:- )?"
    rf"|\[?(?:[A-Z][a-z]{{2}},? )?[A-Z][a-z]{{2}} [ \d]\d,? (?:\d{{4}} )?{_CLOCK}(?: \d{{4}})?\]?[\s:]+"
    rf"|\[?\d{{1,2}}[ /-][A-Z][a-z]{{2}}[ /-]\d{{4}}[ :T]{_CLOCK}{_ZONE}\]?[\s:]*"
    r"|\[ {0,8}\d{1,9}\.\d{3,6}\]\s*|\[?\d{10,13}(?:\.\d{1,9})?\]?[\s:]+|#\d{1,4} \d{1,6}\.\d{1,4}\s+"
    r"|#\d{1,4} +(?=\D)"
    # klog: a level, the day, the time, the thread, the place in the source.
    rf"|[IWEF]\d{{4}} {_CLOCK} +\d+ [\w.-]{{1,80}}:\d+\] "
    # syslog and journald: the host and the process, after their time.
    r"|<\d{1,3}>\d? ?|[\w.-]{1,60} [\w./@()-]{1,60}\[\d{1,9}\]: |(?<=\d )[\w.-]{1,60} kernel: "
    # Containers, terminals of many processes, steps of builds.
    r"|[\w./@-]{1,60} *\| |\[(?:pod/)?[\w.-]{1,60}/[\w./-]{1,80}\] |[^\t\n]{1,80}\t[^\t\n]{1,80}\t(?=\d{4}-)"
    rf"|(?:app|heroku|web|worker|[\w-]{{1,30}}:[\w-]{{1,30}})(?:\[[\w.]{{1,20}}\])?: (?=\S)"
    rf"|\[(?!\s*{_LEVEL})[\w .:/@#,+-]{{1,60}}\]:?\s+|\[gw\d{{1,3}}\] |\(\d{{1,6}}/\d{{1,6}}\) "
    # Process ids, and frames that some tools draw around what they say.
    r"|\(?(?:pid|PID|tid)[ =:]+\d{1,9}\)?[ :,]+|\d{1,9}:[A-Z] |={2,3}\d{1,9}={2,3}\s?|[│╷╵┃║|>]\s+",
    re.IGNORECASE,
)


_MARKS: Final = re.compile(r"[\d|\[<#=:>│╷╵┃║]")
"""Every prefix has one of these near its beginning."""
_FAR: Final = 60

_LEVEL_MARK: Final = re.compile(rf"[\[(<]?{_LEVEL}[\])>]?[\s:|-]{{1,12}}(?=\S)", re.IGNORECASE)


def without_level(content: str) -> str:
    """Return a message without the log level before it."""
    mark = _LEVEL_MARK.match(content)
    return content[mark.end() :] if mark else content


def message(line: str) -> str:
    r"""Return `line` without terminal escapes, what a `\r` wrote over, and what stands before its message."""
    if "\x1b" in line:
        line = ANSI.sub("", line)
    line = line.rstrip()
    if "\r" in line:
        line = line[line.rindex("\r") + 1 :]
    begin = 0
    if _MARKS.search(line, 0, _FAR) is None:
        return line
    for _ in range(_MAX_PREFIXES):
        part = _PART.match(line, begin)
        if part is None or part.end() == begin or part.end() > _LONGEST:
            break
        begin = part.end()
    return line[begin:]
