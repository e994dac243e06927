"""The metadata that a client sends with a capture. Masks or refuses the secrets in it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace
from overspill import wire
from overspill.redaction.masking import counts_of, counts_text

from overspill_service.errors import SecretsFound
from overspill_service.store_format.screening import INLINE_BYTES, redactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from overspill_service.resources.cpu import Workers
    from overspill_service.store_format.screening import Treatment
    from overspill_service.tenants.directory import Redaction

MAX_LABEL_BYTES: Final = 512
"""The most bytes of the label that says what was masked, in addition to what a client may send."""


class CaptureMetadata(Struct, frozen=True, kw_only=True):
    """The metadata of a capture, as the client sends it. `ttl` in seconds."""

    session: str = ""
    call_id: str = ""
    tool: str = ""
    status: str = ""
    content_type: str = ""
    labels: dict[str, str] = {}
    ttl: int | None = None

    @property
    def texts(self) -> list[str]:
        """All of it that is text."""
        named = self.session, self.call_id, self.tool, self.status, self.content_type
        return [*named, *self.labels, *self.labels.values()]

    @property
    def size(self) -> int:
        """Its bytes of UTF-8."""
        return sum(len(text.encode("utf-8", "replace")) for text in self.texts)


async def screened(metadata: CaptureMetadata, treatment: Redaction, workers: Workers) -> CaptureMetadata:
    """Return the metadata with the secrets in its status and in the values of its labels masked.

    The session, tool call, tool, type and names of labels cannot be masked, because a capture is found and
    served by them. Raises `SecretsFound` for a secret in these, and for any if the tenant refuses secrets.
    """
    if treatment == "off":
        return metadata
    if metadata.size <= INLINE_BYTES:
        return _screened(metadata, treatment)
    return await workers.run(_screened, metadata, treatment)


def _screened(metadata: CaptureMetadata, treatment: Treatment) -> CaptureMetadata:
    fixed = (metadata.session, metadata.call_id, metadata.tool, metadata.content_type, *metadata.labels)
    free = (metadata.status, *metadata.labels.values())
    if not _secrets_in((*fixed, *free), treatment):
        return metadata
    if found := _secrets_in(fixed if treatment != "refuse" else (*fixed, *free), treatment):
        raise SecretsFound(found, subject="the session, tool call, tool, type, status or labels have")
    redact = redactor(treatment).redact
    labels = {name: redact(value).text for name, value in metadata.labels.items()}
    return replace(
        metadata,
        status=redact(metadata.status).text,
        labels=with_masked(labels, _secrets_in(free, treatment)),
    )


def with_masked(labels: Mapping[str, str], masked: Mapping[str, int]) -> dict[str, str]:
    """Return the labels with the one that says what was masked, by the client and by the service."""
    if not masked:
        return dict(labels)
    counts = Counter(counts_of(labels.get(wire.REDACTED_LABEL, "")))
    counts.update(masked)
    return {**labels, wire.REDACTED_LABEL: wire.fit(counts_text(counts), MAX_LABEL_BYTES)}


def _secrets_in(texts: Iterable[str], treatment: Treatment) -> Mapping[str, int]:
    return redactor(treatment).redact("\n".join(texts)).counts
