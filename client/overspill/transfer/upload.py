"""Chooses how content is sent: as it is, as one zstd frame, or compressed piece by piece.

`Repr-Digest` is always the digest of the uncompressed content, whatever the encoding.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from overspill.execution import threads
from overspill.transfer import compression
from overspill.transfer.request import Body

if TYPE_CHECKING:
    from overspill.transfer.source import HashedContent

_WORTH_A_THREAD = 128 * 1024
"""Bytes whose compression takes longer than handing them to another thread."""


async def body_for(content: HashedContent, *, compress: bool, is_near: bool) -> Body:
    """Return the body that carries `content`.

    Up to `compression.SINGLE_FRAME` bytes it is one frame, if that is smaller. Longer content is compressed
    while it is sent, if a sample of it shrinks and the service is not on this machine (`is_near`): there
    sending costs less than compressing.
    """
    if content.whole is not None and content.size <= compression.SINGLE_FRAME:
        return await _short_body(content.whole, compress=compress)
    if not compress or is_near or not await threads.run_blocking(_sample_shrinks, content):
        return Body(length=content.size, pieces=content.pieces)
    return Body(
        length=None,
        pieces=lambda: compression.compress_pieces(content.pieces(), content.size),
        encoding="zstd",
    )


async def _short_body(data: memoryview, *, compress: bool) -> Body:
    frame = None
    if compress and len(data) < _WORTH_A_THREAD:
        frame = compression.compress_frame(data)
    elif compress:
        frame = await threads.run(compression.compress_frame, data)
    return Body.of(bytes(data)) if frame is None else Body.of(frame, "zstd")


def _sample_shrinks(content: HashedContent) -> bool:
    sample = bytes(next(itertools.chain(content.pieces(), [b""])))
    return compression.compress_frame(sample[: compression.SAMPLE]) is not None
