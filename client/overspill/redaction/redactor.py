"""Masks the secrets of whole texts, and of texts that come in chunks. The result is the same for any chunks.

What is around a secret decides, never where the text was cut. So the end of the text is held back until
enough has come behind it. Memory is bounded by the largest chunk.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, AnyStr, Final, Generic, NamedTuple

from overspill.redaction.contexts import NAMED_KINDS
from overspill.redaction.groups import groups_of
from overspill.redaction.holding import held_from, may_be_wrapped
from overspill.redaction.masking import Redaction
from overspill.redaction.patterns import PatternPass, ValuePass
from overspill.redaction.rule import FURTHEST_BEHIND, LONGEST_HEAD
from overspill.redaction.rules import RULES
from overspill.redaction.text_forms import ByteOrderMark, BytesForm, TextForm

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from overspill.redaction.rule import FoundSecret, SecretPass

_AHEAD: Final = LONGEST_HEAD + FURTHEST_BEHIND
_BEHIND: Final = 2 * FURTHEST_BEHIND
_BATCH_CHARS: Final = 64 * 1024
"""Small chunks are searched together once they have this many characters: little is searched twice then."""

_WINDOW_CHARS: Final = 1024 * 1024
"""A whole text is searched in windows of this size: RE2 makes an encoded copy of what it searches."""


class Redacted(NamedTuple, Generic[AnyStr]):
    """A text with its secrets masked, and how many of each kind there were."""

    text: AnyStr
    counts: Mapping[str, int]


class Redactor:
    """Masks secrets: those of the default rules, of `patterns` by kind, and `values`.

    For any number of threads. Raises `ValueError` for a pattern that does not compile or might take long.
    """

    def __init__(
        self,
        redaction: Redaction = Redaction.TAG,
        *,
        patterns: Mapping[str, str] | None = None,
        values: Iterable[str] = (),
    ) -> None:
        self.redaction: Redaction = redaction
        self._has_patterns = bool(patterns)
        own = [PatternPass(kind, pattern) for kind, pattern in (patterns or {}).items()]
        known = list(dict.fromkeys(form for value in values if value for form in (value, _in_json(value))))
        self._passes: tuple[SecretPass, ...] = (
            *_default_passes(),
            *own,
            *(ValuePass(VALUE_KIND, value) for value in known),
        )
        encoded = [value.encode().decode("latin-1") for value in known]
        self._values, self._byte_values = known, encoded
        self._byte_passes: tuple[SecretPass, ...] = (
            *_default_passes(),
            *own,
            *(ValuePass(VALUE_KIND, value) for value in encoded),
        )

    def redact(self, text: AnyStr) -> Redacted[AnyStr]:
        """Return the text with its secrets masked; the same object if it has none.

        A text without any is not copied, however long it is.
        """
        if isinstance(text, str) and len(text) <= _BATCH_CHARS and self.has_none(text):
            return Redacted(text, Counter())
        stream, unchanged = RedactingStream(self, type(text)), 0
        pieces: list[AnyStr] = []
        last_window = max(0, len(text) - 1) // _WINDOW_CHARS * _WINDOW_CHARS
        for at in range(0, last_window, _WINDOW_CHARS):
            piece = stream.feed(text[at : at + _WINDOW_CHARS])
            if stream.counts:
                pieces.append(piece)
            else:
                unchanged += len(piece)
        last = stream.finish(text[last_window:])
        if not stream.counts:
            return Redacted(text, stream.counts)
        parts: list[Any] = [text[:unchanged], *pieces, last]
        return Redacted(text[:0].join(parts), stream.counts)

    def has_none(self, text: str) -> bool:
        """Return whether a text has no secret. It takes microseconds for a short one."""
        for each in self._passes:  # noqa: SIM110  (`all` takes a tenth of the time of a short text)
            if not each.has_none(text):
                return False
        return True

    def stream(self, kind: type[AnyStr]) -> RedactingStream[AnyStr]:
        """Return a stream that masks the secrets of one text in chunks: of `str`, or of `bytes`."""
        return RedactingStream(self, kind)

    def held_from(self, text: str, start: int, known: int, *, is_bytes: bool) -> int:
        """Return where, from `start` on, a secret may begin that goes on behind the text: see `holding`."""
        values = self._byte_values if is_bytes else self._values
        return held_from(text, start, known, values, is_by_line=self._has_patterns)

    def find(self, text: str, start: int, end: int, *, is_bytes: bool) -> list[FoundSecret]:
        """Return the secrets with an anchor or a beginning between `start` and `end`, in no order."""
        passes = self._byte_passes if is_bytes else self._passes
        return [found for each in passes for found in each.find(text, start, end)]


def _in_json(value: str) -> str:
    """Return a value as it stands in JSON."""
    return json.dumps(value, ensure_ascii=False)[1:-1]


VALUE_KIND: Final = "environment"
"""The kind of secrets that are literal values of environment variables."""


class RedactingStream(Generic[AnyStr]):
    """One text that comes in chunks. It gives back what is decided; `finish` gives the rest.

    Bytes that begin with the mark of UTF-16 are searched as that too, once they were searched as bytes.
    """

    def __init__(self, redactor: Redactor, kind: type[AnyStr], form: TextForm | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self._redactor = redactor
        is_bytes = kind is bytes or issubclass(kind, bytes)
        self._form = form or (BytesForm() if is_bytes else TextForm())
        self._byte_order_mark = ByteOrderMark() if self._form.is_bytes else None
        self._utf16: RedactingStream[Any] | None = None
        self._waiting: list[str] = []
        self._waiting_chars = 0
        self._text = ""
        self._decided = 0  # secrets that begin before it are known
        self._given = 0  # the text before it was given back, or masked
        self._known: list[FoundSecret] = []
        self._open: FoundSecret | None = None  # the secret that may go on at `_given`

    def feed(self, chunk: AnyStr) -> AnyStr:
        """Take a chunk. Return what can be given back, which may be empty."""
        given = self._feed(chunk)
        return given if self._utf16 is None else self._utf16.feed(given)

    def _feed(self, chunk: AnyStr) -> AnyStr:
        text = self._decoded(chunk)
        self._waiting.append(text)
        self._waiting_chars += len(text)
        if self._waiting_chars < _BATCH_CHARS:
            return self._encoded("")
        self._gather()
        return self._encoded(self._step(max(self._decided, len(self._text) - _AHEAD)))

    def settle(self) -> AnyStr:
        """Return what was held back, except what may be half a secret. For a reader who cannot wait.

        The result may differ from that of the whole text: if this is called in the middle of a secret of
        several lines that a user's own pattern finds, or before the text behind a secret that tells it apart.
        """
        given = self._settle()
        return given if self._utf16 is None else self._utf16.feed(given) + self._utf16.settle()

    def _settle(self) -> AnyStr:
        self._gather()
        least = max(self._decided, len(self._text) - _AHEAD)
        if self._open is not None and self._open.has_lines:
            return self._encoded(self._step(least))
        held = self._redactor.held_from(self._text, least, self._decided, is_bytes=self._form.is_bytes)
        return self._encoded(self._step(max(least, held)))

    def finish(self, chunk: AnyStr | None = None) -> AnyStr:
        """Take the last chunk, if there is one more. Return what was held back."""
        if chunk is not None:
            self._waiting.append(self._decoded(chunk))
        self._gather()
        given: AnyStr = self._encoded(self._step(len(self._text), is_last=True)) + self._form.rest
        return given if self._utf16 is None else self._utf16.finish(given)

    def _decoded(self, chunk: AnyStr) -> str:
        mark = self._byte_order_mark
        if mark is not None and (form := mark.form(chunk)) is not None:
            self._utf16 = RedactingStream(self._redactor, bytes, form)
            self._utf16.counts = self.counts
        return self._form.decoded(chunk)

    def _encoded(self, text: str) -> AnyStr:
        result: AnyStr = self._form.encoded(text)
        return result

    def _gather(self) -> None:
        self._text += "".join(self._waiting)
        self._waiting, self._waiting_chars = [], 0

    def _step(self, safe: int, *, is_last: bool = False) -> str:
        """Decide on what has come before `safe`."""
        self._look(safe, is_last=is_last)
        given = "".join(self._pieces(safe, is_last=is_last))
        self._forget()
        return given

    def _look(self, safe: int, *, is_last: bool) -> None:
        """Find the secrets that begin between `_decided` and `safe`."""
        first = max(0, self._decided - FURTHEST_BEHIND)
        last = len(self._text) if is_last else safe + FURTHEST_BEHIND
        found = self._redactor.find(self._text, first, last, is_bytes=self._form.is_bytes)
        self._known += [each for each in found if self._decided <= each.start < safe]
        self._known.sort(key=_order)
        self._decided = safe

    def _pieces(self, safe: int, *, is_last: bool) -> Iterator[str]:
        text, mark = self._text, self._redactor.redaction.mark
        taken = 0
        for found in self._known:
            if not self._extend_open(safe, is_last=is_last):
                break
            taken += 1
            if found.end <= self._given:
                continue
            yield text[self._given : max(self._given, found.start)]
            yield mark(found.kind)
            self.counts[found.kind] += 1
            self._given, self._open = found.end, found
        del self._known[:taken]
        if self._extend_open(safe, is_last=is_last) and self._given < safe:
            yield text[self._given : safe]
            self._given = safe

    def _extend_open(self, safe: int, *, is_last: bool) -> bool:
        """Take what continues the open secret. Return whether its end is known."""
        while self._open is not None:
            if self._given >= safe and not is_last:
                return False
            match = None if self._open.more is None else self._open.more.match(self._text, self._given)
            if match is None or match.end() == self._given:
                if not is_last and self._open.is_wrapped and may_be_wrapped(self._text, self._given):
                    return False
                self._open = None
                break
            self._given = match.end()
            if match.lastgroup == "end":
                self._open = None
        return True

    def _forget(self) -> None:
        """Drop the text that no decision needs any more."""
        if self._open is not None:
            self._known = [each for each in self._known if each.end > self._given]
        start = max(0, min(self._decided, self._given) - _BEHIND)
        self._text = self._text[start:]
        self._decided -= start
        self._given -= start
        self._known = [each._replace(start=each.start - start, end=each.end - start) for each in self._known]
        if self._open is not None:
            self._open = self._open._replace(start=0, end=0)


def _order(found: FoundSecret) -> tuple[int, bool, int, str]:
    return found.start, found.kind in NAMED_KINDS, -found.end, found.kind


def _default_passes() -> tuple[SecretPass, ...]:
    """Return the passes of the default rules. They are compiled when they are first needed."""
    try:
        return (_prefix_scan(),)
    except (ImportError, OSError):  # without the extra `re2`; with too many files open to import anything
        return _groups()


@functools.cache
def _prefix_scan() -> SecretPass:
    from overspill.redaction.prefix_scan import PrefixScan  # noqa: PLC0415  (the extra `re2`)

    return PrefixScan(RULES)


@functools.cache
def _groups() -> tuple[SecretPass, ...]:
    return tuple(groups_of(RULES))
