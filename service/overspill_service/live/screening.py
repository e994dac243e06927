"""Keeps secrets out of the live captures of a tenant that stores none.

Nothing can be masked here: producer and service count the same bytes, and the producer keeps bytes until they
are durable. So an append with a secret is refused. Our clients mask what they append, so they never see that.
The last word of an append may be the beginning of a secret. It is not accepted, so that no reader sees half a
secret, and comes again with what follows it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from overspill.redaction.rule import FURTHEST_BEHIND

from overspill_service.catalog.records import Entry
from overspill_service.live.positions import bytes_between
from overspill_service.store_format.screening import INLINE_BYTES, decided_size

if TYPE_CHECKING:
    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.live import Append
    from overspill_service.store_format.screening import Treatment

BEFORE_BYTES: Final = 2 * FURTHEST_BEHIND
"""Bytes before a secret at which its rule may look."""
_SPACE: Final = re.compile(rb"\s")


async def screened(
    archive: Archive, name: tuple[str, str], append: Append, treatment: Treatment, *, is_last: bool
) -> Append:
    """Return the append with as much of its bytes as may be accepted now.

    `name`: the tenant and the capture. `is_last`: nothing follows the append. It is empty if it does not
    begin where the content ends: then the catalog says where that is. Raises `SecretsFound`, and what reading
    raises.
    """
    before = await _before(archive, name, append.offset)
    if before is None:
        return append._replace(data=b"")
    if len(append.data) <= INLINE_BYTES:
        size = decided_size(treatment, before, append.data, is_last=is_last)
    else:
        workers = archive.upload_workers(name[0])
        size = await workers.run(decided_size, treatment, before, append.data, is_last=is_last)
    return append._replace(data=append.data[:size])


async def _before(archive: Archive, name: tuple[str, str], offset: int) -> bytes | None:
    """Return the bytes before `offset`, from the beginning of a word on; None if it is not the end."""
    start = max(0, offset - BEFORE_BYTES)
    record = await archive.catalog.live(*name, since=start, limit=offset - start)
    if record is None or record.accepted != offset:
        return None
    stored = b"" if record.start <= start else await _stored(archive, name, start, record.start)
    if stored is None:
        return None
    before = stored + record.buffer
    word = _SPACE.search(before) if start else None
    return before if word is None else before[word.start() :]


async def _stored(archive: Archive, name: tuple[str, str], start: int, stop: int) -> bytes | None:
    """Return durable bytes; None if the capture has ended or was removed meanwhile."""
    entry = await archive.catalog.get(*name)
    if not isinstance(entry, Entry) or not entry.is_live or entry.size < stop:
        return None
    return await bytes_between(await archive.reader(entry), start, stop)
