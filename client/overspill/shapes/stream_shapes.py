"""The shapes of streams that were too long: of text or bytes, and of records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overspill.shapes.records import NDJSON_TYPE, Records, short_record
from overspill.shapes.shape import Shape
from overspill.shapes.single_values import TextShape
from overspill.text import encoding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill.previews.notice_facts import Notice
    from overspill.text.body import Body
    from overspill.text.limits import Limits


class StreamShape(Shape):
    """A stream that was too long. `missing` says why `body` is not all that came; empty if it is.

    `masked` is how many secrets of each kind were masked in the body.
    """

    def __init__(
        self,
        body: Body,
        content_type: str,
        *,
        is_bytes: bool,
        missing: str = "",
        masked: Mapping[str, int] | None = None,
    ) -> None:
        self.masked: Mapping[str, int] = masked or {}
        self.body = body
        self.content_type = content_type
        self.missing = missing
        self._is_bytes = is_bytes

    def notices(self) -> list[str]:
        """Return the body if it is a notice already."""
        return TextShape(self.body).notices() if isinstance(self.body, str) else []

    def whole(self) -> Any:
        """Return all of a short stream as one chunk of the same class. Raises `OSError`."""
        body = self.body if isinstance(self.body, (str, bytes)) else self.body.read(0, self.body.size)
        return encoding.encode(body) if self._is_bytes and isinstance(body, str) else body

    def replaced(self, notice: Notice) -> Any:
        """Return the notice as a chunk of the same class."""
        return encoding.encode(str(notice)) if self._is_bytes else str(notice)

    def items(self, value: Any) -> list[Any]:
        """Return what comes out at the end of the stream if `value` stands for it."""
        return [value]


class RecordStreamShape(StreamShape):
    """A stream of records that was too long. The records that have not passed wait while they are few."""

    def __init__(self, body: Body, records: Records, missing: str, masked: Mapping[str, int]) -> None:
        super().__init__(body, NDJSON_TYPE, is_bytes=False, missing=missing, masked=masked)
        self.remaining: Limits | None = records.remaining()
        self.passed: int = records.passed
        self._first = records.first
        self._waiting = records.waiting

    def whole(self) -> Any:
        """Return all records of a short stream that have not passed yet."""
        return self._waiting

    def replaced(self, notice: Notice) -> Any:
        """Return a record like the others with the notice in it."""
        return short_record(self._first, notice)

    def items(self, value: Any) -> list[Any]:
        """Return what comes out at the end of the stream if `value` stands for it."""
        return self._waiting or [] if value is self._waiting else [value]
