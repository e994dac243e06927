"""The queries of requests: a structure for each, whose fields are the parameters."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  (msgspec resolves annotations at run time)
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from overspill.wire.captures import State  # noqa: TC001  (as above)

Count = Annotated[int, Meta(ge=1, le=2**53)]
"""A number of lines, or a line's number; JSON's numbers are exact up to the highest."""


class NoQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """The query of a request that takes no parameter."""


class TenantQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Confirms the removal of everything with the name of the key's tenant."""

    tenant: str


class RefQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every read by reference: a `call:` reference is looked up in `session`.

    Without one it is looked up in the session that the key is bound to, else among captures that have none.
    """

    session: str | None = None
    any_session: bool = False
    """Look a `call:` reference up in all sessions, if the key may."""


class SummaryQuery(RefQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a summary."""

    line_numbers: Annotated[int, Meta(ge=1, le=1000)] = 20
    """How many errors, and how many warnings, are listed by line number: the first ones."""


class ReadQuery(RefQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of every reading of text."""

    ansi: bool = False
    r"""Keep ANSI escape sequences and, in a capture of a terminal, what was overwritten after a `\r`."""
    max_bytes: Annotated[int, Meta(ge=256, le=65536)] | None = None
    """Bytes of text that the answer has at most, if that is less than the service's own cap."""
    since: datetime | None = None
    """Only lines that came after this instant. One that was stored at once came when it was created."""


class HeadQuery(ReadQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The number of first lines to read."""

    lines: Count = 50


class TailQuery(ReadQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The number of last lines to read."""

    lines: Count = 50


class LinesQuery(ReadQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The lines to read, numbered from 1. `end` is included."""

    start: Count = 1
    end: Count | None = None
    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """Bytes to skip inside line `start`: how to go on inside one very long line."""


class GrepQuery(ReadQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of `grep`: what to search for, and how much to show."""

    pattern: str
    fixed: bool = False
    ignore_case: bool = False
    invert: bool = False
    context: Annotated[int, Meta(ge=0, le=100)] = 0
    before: Annotated[int, Meta(ge=0, le=100)] | None = None
    after: Annotated[int, Meta(ge=0, le=100)] | None = None
    max_matches: Annotated[int, Meta(ge=1, le=1000)] = 50
    from_end: bool = False
    count: bool = False
    """Only count matching lines, all of them, and list none."""
    cursor: str | None = None


class Sort(StrEnum):
    """The order of a listing: the newest captures first, or the largest."""

    NEWEST = "newest"
    SIZE = "size"


class ListQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The captures to list: each filter narrows the list. `cursor` goes on with an earlier list.

    A listing by size has one page, and takes neither filters nor a cursor.
    """

    session: str | None = None
    call_id: Annotated[str, Meta(min_length=1)] | None = None
    tool: str | None = None
    state: State | None = None
    since: datetime | None = None
    until: datetime | None = None
    cursor: str | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    sort: Sort = Sort.NEWEST
