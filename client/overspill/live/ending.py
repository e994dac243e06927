"""What a live capture ends with: its status, its exit code, and the labels that say what was masked in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from overspill import wire
from overspill.live.labels import redacted_label

if TYPE_CHECKING:
    from overspill.live.pending_writes import PendingWrites
    from overspill.live.ports import Description
    from overspill.live.producer import Producer

_EXIT_CODES: Final = range(-(2**31), 2**32)
"""The exit codes that `wire.Completion` takes."""


class Ending:
    """The end of one live capture, as far as its producer knows it."""

    def __init__(self, description: Description, pending: PendingWrites) -> None:
        self.status: str | None = None
        self._exit_code: int | None = None
        self._description, self._pending = description, pending

    def set(self, status: str | None, exit_code: int | None) -> None:
        """Set both. Raises `TypeError` or `ValueError` if they are invalid."""
        check_ending(status, exit_code)
        self.status, self._exit_code = status, exit_code

    def completion(self, state: wire.State, status: str | None, producer: Producer) -> wire.Completion:
        """Return what the service is told of the end of a stream."""
        return wire.Completion(
            offset=producer.size,
            state="complete" if state is wire.State.COMPLETE else "partial",
            status=None if status is None else wire.fit(status, wire.SHORT_VALUE),
            exit_code=self._exit_code,
            sha256=producer.sha256.hexdigest(),
            labels=redacted_label(self._pending.masked, self._description),
        )

    def labels(self) -> dict[str, str]:
        """Return all labels of the stream, for the spool or the guard to store it with."""
        masked = redacted_label(self._pending.masked, self._description)
        coded = {} if self._exit_code is None else {wire.EXIT_CODE_LABEL: str(self._exit_code)}
        return {**self._description.labels, **masked, **coded}

    def description(self, status: str | None) -> Description:
        """Return what is known of the stream, with what its end told."""
        return structs.replace(self._description, status=status or "", labels=self.labels())


def check_ending(status: object, exit_code: object) -> None:
    """Check what a live capture is to end with. Raises `TypeError` and `ValueError`."""
    if status is not None and not isinstance(status, str):
        raise TypeError(f"status must be text (str), not {type(status).__name__}")
    if exit_code is None:
        return
    if isinstance(exit_code, bool) or not isinstance(exit_code, int):
        raise TypeError(f"exit_code must be a whole number, not {exit_code!r}")
    if exit_code not in _EXIT_CODES:
        raise ValueError(f"exit_code must be that of a process, in 32 bits, not {exit_code}")
