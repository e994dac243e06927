"""The entries of captures, their readers and removals, and a tenant's totals."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  (msgspec resolves annotations at run time)
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta, Struct

DEFAULT_TTL: Final = 24 * 3600
"""Seconds that a capture lives if nobody asks for another time."""


PREVIEW_LABEL: Final = "overspill.preview"
"""The label of a capture that says which kind of preview its notice shows: a `PreviewKind`."""


SPOOLED_LABEL: Final = "overspill.spooled"
"""The label of a capture that waited in a client's spool: since when, in ISO 8601."""


REDACTED_LABEL: Final = "overspill.redacted"
"""The label of a capture with masked secrets: how many of each kind, as `aws-access-key=2, jwt=1`."""


SEEN_LABEL: Final = "overspill.seen-lines"
"""The label of a capture that says which lines its notice shows whole: `1-18,433,990-1002`, numbered from 1.

The model may have seen more, in part. A capture without this label may have been shown all the same.
"""


class PreviewKind(StrEnum):
    """The part of an output that a notice shows: the lines that matter, its beginning, its end, or both."""

    PREVIEW = "preview"
    HEAD = "head"
    TAIL = "tail"
    ENDS = "ends"


class State(StrEnum):
    """The state of a capture: it still grows, is whole, or ended early."""

    LIVE = "live"
    COMPLETE = "complete"
    PARTIAL = "partial"


class Gap(Struct, frozen=True, kw_only=True):
    """Bytes that the service had accepted and lost: neither the catalog nor the producer has them."""

    offset: int
    """The offset of the first lost byte, where the bytes that are left end."""
    size: int | None = None
    """Null if nobody knows how many, perhaps none: the catalog was lost and its producer is gone."""

    def __str__(self) -> str:
        if self.size is None:
            return f"Bytes from byte {self.offset} on that were accepted may be lost, nobody knows how many."
        return f"{self.size} bytes from byte {self.offset} on were accepted and are lost."


class Entry(Struct, frozen=True, kw_only=True):
    """The entry of one capture. Sizes are in bytes. `lines` also counts a last line without a newline."""

    id: str
    state: State
    size: int
    stored_size: int
    lines: int
    sha256: str
    content_type: str
    kind: str
    """text, json, log, binary or unknown: found by looking at the content."""
    tool: str
    session: str
    call_id: str
    status: str
    labels: dict[str, str]
    created: datetime
    expires: datetime
    held: bool = False
    """On hold: it does not expire, and nobody can delete it. Meanwhile `expires` is in the year 9999."""
    first_read: datetime | None = None
    """When the content was first read; null if nobody has read it, or if the first read was forgotten."""
    first_reader: str = ""
    """The id of the key that read it then, or the `sub` of a token. Empty if nobody said who."""
    durable: int | None = None
    """For a live capture: the number of its bytes that are in the object store."""
    last_append: datetime | None = None
    """For a capture that is or was live: when its producer was last heard of."""
    gap: Gap | None = None
    """For a partial capture: the bytes that are missing at its end, if any are known to be."""
    sent_sha256: str | None = None
    """In the answer to an upload: the digest that the sender announced, if it was right.

    It is null if `sha256` is the same. It is set if secrets were masked, or if the key may not read.
    """

    def is_of(self, sha256: str) -> bool:
        """Return whether a content with this digest is stored as this capture, masked or not."""
        return sha256 in (self.sha256, self.sent_sha256)


MAX_READERS: Final = 16
"""Readers of one capture that the service remembers."""


class Reader(Struct, frozen=True, kw_only=True):
    """A reader of a capture's content, with its first and last read, to within two minutes."""

    name: str
    """The id of the key, or the `sub` of a token. Empty if nobody said who."""
    on_page: bool = False
    """A person has looked at it in a browser. That does not count as a read-back."""
    first_read: datetime
    last_read: datetime


class Readers(Struct, frozen=True, kw_only=True):
    """The readers of a capture. No object has them, so they are lost with the catalog."""

    readers: list[Reader]
    """The latest reader comes first. Beyond `MAX_READERS`, those who read longest ago are forgotten."""


class Listing(Struct, frozen=True, kw_only=True):
    """A page of captures, newest first. `cursor` asks for the next page; it is null on the last one."""

    captures: list[Entry]
    cursor: str | None = None
    incomplete: bool = False
    """The catalog was lost and is being rebuilt from the object store: captures may be missing."""


class Usage(Struct, frozen=True, kw_only=True):
    """A tenant's stored totals and limits; a limit of 0 is none."""

    tenant: str
    captures: int
    size: int
    stored_size: int
    oldest: datetime | None
    max_capture_size: int
    max_stored_size: int
    max_captures: int
    max_content_size: int = 0
    metadata_size: int = 0
    """Bytes that the entries take in the catalog."""
    max_metadata_size: int = 0
    default_ttl: int
    max_ttl: int
    incomplete: bool = False
    """The catalog was lost and is being rebuilt from the object store: the totals may be too low."""


class Remains(StrEnum):
    """The things that a removal leaves behind for a while. None can be read through the service."""

    TOMBSTONE = "tombstone"
    """A record that the id was removed, when and why."""
    UNFINISHED_UPLOADS = "unfinished_uploads"
    """Objects of uploads that never ended. Nothing records which capture they belong to."""
    OBJECT_VERSIONS = "object_versions"
    """Versions that the bucket keeps of deleted objects."""
    CATALOG_LOG = "catalog_log"
    """Names, labels and sizes in the log and in the snapshots of the catalog.

    Of live captures also content: what was appended passes through the catalog.
    """
    BACKUPS = "backups"
    """Copies that an operator has made."""


class Remainder(Struct, frozen=True, kw_only=True):
    """Something that a removal leaves behind, and the time until which it stays."""

    what: Remains
    until: datetime | None = None
    """Null: an operator decides, as `note` says."""
    note: str = ""


class Removed(Struct, frozen=True, kw_only=True):
    """The number of captures that a removal or a sweep took away, and their stored bytes.

    With `at`, it is the receipt of a removal that neither a crash nor a lost catalog undoes.
    """

    captures: int
    stored_size: int
    held: int = 0
    """Captures that stay, because they are on hold."""
    at: datetime | None = None
    remains: list[Remainder] = []


class HoldReceipt(Struct, frozen=True, kw_only=True):
    """The number of captures of a session that were put on hold, or released."""

    captures: int


class Amendment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of PATCH: a new life of `ttl` seconds, counted from now."""

    ttl: Annotated[int, Meta(ge=1)]
