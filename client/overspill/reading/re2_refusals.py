"""What to write instead of a pattern that RE2 refuses."""

from __future__ import annotations

from overspill.reading.pattern_size import UNICODE_CLASS
from overspill.reading.pattern_syntax import MAX_PROGRAM


def explain(error: str, source: bytes) -> str:
    """Return RE2's message (see its re2.h and re2/regexp.cc) with what to write instead."""
    kind, _, part = error.partition(": ")
    match kind:
        case "bad repetition operator" if part.endswith("+"):
            return (
                f"possessive repetition {part} is not supported and not needed, since nothing backtracks: "
                f"write {part[:-1]}"
            )
        case "invalid repetition size":
            return (
                f"the repetition {part} is too large: 1000 is the most, nested ones multiplied. Write + or *"
            )
        case _ if "too large" in error:
            return f"the pattern is too complex: it needs more than {MAX_PROGRAM} steps. {_smaller(source)}"
    return (
        f"the pattern is not valid: {error}. The syntax is RE2's (github.com/google/re2/wiki/Syntax); "
        "fixed=true searches for the text as it is"
    )


def _smaller(source: bytes) -> str:
    """Return what to write instead of a pattern that is too large."""
    if named := UNICODE_CLASS.search(source.decode()):
        return (
            f"A Unicode class like {named[0]} has hundreds each time it is repeated: write {named[0]}+ "
            "without a count, or an ASCII class as [A-Za-z]"
        )
    return "Use smaller repetitions, and fewer alternatives and classes like \\pL"
