"""Masks secrets in everything that a guard captures or shows, before it is previewed, hashed or stored."""

from __future__ import annotations

import copy
import functools
import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from overspill.redaction.environment import secret_values
from overspill.redaction.masking import Redaction
from overspill.redaction.redactor import Redactor
from overspill.shapes.exceptions import ExceptionShape
from overspill.shapes.masked_buffer import MaskedBuffer
from overspill.shapes.stream_shapes import StreamShape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill.shapes.shape import Shape
    from overspill.text.body import Body, FileBody

_NONE: Final[Mapping[str, int]] = {}


class _Environment:
    """The environment of this process, whose secrets are picked again only if it has changed.

    `os.environ` decodes each name and value anew, which takes longer than masking a short output. So what is
    behind it is compared; another Python may keep it otherwise.
    """

    def __init__(self) -> None:
        self._last: tuple[object, tuple[str, ...]] = (None, ())

    def secrets(self) -> tuple[str, ...]:
        """Return the values that are secrets as the environment is now."""
        data, (seen, values) = getattr(os.environ, "_data", None), self._last
        if data is None or data != seen:
            seen, values = None if data is None else dict(data), secret_values(os.environ)
            self._last = seen, values
        return values


_ENVIRONMENT: Final = _Environment()


class MaskedContent(NamedTuple):
    """An output whose text has no secrets, and how many of each kind were masked."""

    shape: Shape
    counts: Mapping[str, int]


class Masking:
    """Masks secrets under a policy. Makes a new redactor if the environment's secrets have changed."""

    def __init__(self, redaction: Redaction, patterns: Mapping[str, str]) -> None:
        self._made_of = redaction, tuple(patterns.items())
        self._is_off = redaction is Redaction.OFF
        self._last: tuple[tuple[str, ...] | None, Redactor | None] = (None, None)

    def redactor(self) -> Redactor | None:
        """Return the redactor with the values of this process's environment as it is now; None if it is off.

        Raises `ValueError` for a pattern that does not compile or might take long.
        """
        if self._is_off:
            return None
        values, (seen, redactor) = _ENVIRONMENT.secrets(), self._last
        if values is not seen:
            redactor = _redactor(*self._made_of, values)
            self._last = values, redactor
        return redactor


@functools.lru_cache(maxsize=16)
def _redactor(
    redaction: Redaction, patterns: tuple[tuple[str, str], ...], values: tuple[str, ...]
) -> Redactor:
    return Redactor(redaction, patterns=dict(patterns), values=values)


def masked_content(shape: Shape, redactor: Redactor | None) -> MaskedContent:
    """Return the output with its text masked. A stream was masked as it came.

    It takes about 5 ms a megabyte: call it in a thread. Raises `OSError` if the output's file cannot be read.
    """
    if isinstance(shape, StreamShape):
        return MaskedContent(shape, shape.masked)
    if redactor is None:
        return MaskedContent(shape, _NONE)
    body, counts = _masked_body(shape.body, redactor)
    if not counts and not isinstance(shape, ExceptionShape):
        return MaskedContent(shape, _NONE)
    copied = copy.copy(shape)
    own: dict[str, Any] = vars(copied)
    own["body"] = body
    if isinstance(shape, ExceptionShape):
        own["shown"] = redactor.redact(shape.shown).text
    return MaskedContent(copied, counts)


def _masked_body(body: Body, redactor: Redactor) -> tuple[Body, Mapping[str, int]]:
    if isinstance(body, str):
        return redactor.redact(body)
    if isinstance(body, bytes):
        return redactor.redact(body)
    return _masked_file(body, redactor)


def _masked_file(body: FileBody, redactor: Redactor) -> tuple[Body, Mapping[str, int]]:
    """Copy a file with its secrets masked. Keep the file itself if it has none."""
    buffer = MaskedBuffer(redactor)
    try:
        for piece in body.pieces():
            buffer.write(piece)
        masked = buffer.finish()
        return (masked, buffer.counts) if buffer.counts else (body, _NONE)
    finally:
        buffer.close()
