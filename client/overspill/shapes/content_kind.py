"""What kind of content an output is, told from its beginning: a guess for people, never relied upon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from overspill.reading.content_kind import HEAD_BYTES, detect
from overspill.text.body import FileBody

if TYPE_CHECKING:
    from overspill.text.body import Body

ContentKind: TypeAlias = Literal["text", "json", "log", "unknown"]


def kind_of(body: Body) -> ContentKind:
    """The kind of `body`, of which the first 8 KiB are looked at; `unknown` for nothing and for no text.

    Raises `OSError` where it is in a file that cannot be read.
    """
    kind = detect(_head(body), None)
    return "unknown" if kind == "binary" else cast("ContentKind", kind)


def _head(body: Body) -> bytes:
    if isinstance(body, str):
        return body[:HEAD_BYTES].encode(errors="replace")
    return body.read(0, HEAD_BYTES) if isinstance(body, FileBody) else body[:HEAD_BYTES]
