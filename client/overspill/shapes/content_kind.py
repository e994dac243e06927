"""What kind of content an output is, told from its beginning: a guess for people, never relied upon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from overspill.reading.content_kind import HEAD, detect
from overspill.text.body import Filed

if TYPE_CHECKING:
    from overspill.text.body import Body

Kind: TypeAlias = Literal["text", "json", "log", "unknown"]


def kind_of(body: Body) -> Kind:
    """The kind of `body`, of which the first 8 KiB are looked at; `unknown` for nothing and for no text.

    Raises `OSError` where it is in a file that cannot be read.
    """
    kind = detect(_head(body), None)
    return "unknown" if kind == "binary" else cast("Kind", kind)


def _head(body: Body) -> bytes:
    if isinstance(body, str):
        return body[:HEAD].encode(errors="replace")
    return body.at(0, HEAD) if isinstance(body, Filed) else body[:HEAD]
