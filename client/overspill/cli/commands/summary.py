"""The command summary: figures and first looks at a capture."""

from typing import TYPE_CHECKING, Any

from overspill.cli import output
from overspill.cli.color import Paint, Style
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.options import COLORED, Ref, SessionFilter
from overspill.cli.printable import printable
from overspill.cli.table import fitting, print_facts
from overspill.text.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill.wire import Summary


@command(
    "overspill summary cap_k3v7q2m5x4c6z2b7n5aa",
    "overspill summary call:call_17",
    options=COLORED,
)
def summary(invocation: Invocation, ref: Ref, *, session: SessionFilter = None) -> None:
    """Summarise a capture.

    Prints totals, first and last lines, repeated lines, errors, warnings, and the shape of JSON.
    """
    with invocation.source(ref, session) as source:
        found = source.summary(ref, session=session)
    if not invocation.answered(found):
        _summarise(found, Paint(invocation.color), raw=invocation.raw)


def _summarise(found: "Summary", paint: Paint, *, raw: bool) -> None:
    counted = f"{plural(found.total_lines, 'line')}, {found.empty_lines:,} empty"
    print_facts(
        {
            "size": f"{plural(found.total_bytes, 'byte')}, {counted}",
            "longest line": plural(found.longest_line, "byte"),
            "type": f"{found.content_type} ({found.kind})",
            "errors": _severity(found.errors),
            "warnings": _severity(found.warnings),
        }
    )
    for title, lines in _sections(found).items():
        if lines:
            output.line(paint(f"{title}:", Style.HEADER))
            for each in lines:
                output.line(f"  {fitting(each if raw else printable(each), 2)}")
    if isinstance(found.note, str):
        output.say(found.note)
    if found.truncated:
        output.say(f"only the first {found.scanned_bytes:,} bytes were looked at")


def _sections(found: "Summary") -> "dict[str, Sequence[str]]":
    return {
        "first lines": found.first_lines,
        "last lines": found.last_lines,
        "repeated": [
            f"{each.count:,} times from line {each.first_line:,}: {each.line}" for each in found.repeated
        ],
        "JSON": (found.json_shape or "").splitlines(),
    }


def _severity(found: Any) -> str:
    numbers = ", ".join(f"{number:,}" for number in found.line_numbers)
    return f"{found.count:,}{f' (lines {numbers})' if numbers else ''}"
