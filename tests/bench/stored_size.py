"""The bytes that frames, index and seek table add to a capture, against one zstd frame: exact counts."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

import zstandard
from overspill.transfer.sync import SyncClient
from overspill_service.store_format.frames import LEVEL

from tests.bench import http, table, texts
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers

TYPICAL: Final = Goal(1.06)
WORST: Final = Goal(1.10)


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    size = scale.pick(64 * 2**20, 2**20)
    with SyncClient(servers.embedded.url) as client:
        ratios = {kind: _ratio(servers, client, kind, size) for kind in scale.some([*texts.KINDS])}
    what = f"stored size of {table.mebibytes(size)}, seven texts:"
    detail = table.listed(ratios, table.fine_ratio)
    yield Row(f"{what} median", median(ratios.values()), TYPICAL, table.fine_ratio, detail)
    yield Row(f"{what} worst", max(ratios.values()), WORST, table.fine_ratio)


def _ratio(servers: Servers, client: SyncClient, kind: str, size: int) -> float:
    content = texts.text(kind, size)
    capture = http.put(servers.embedded, [content], size)
    single = zstandard.ZstdCompressor(LEVEL, write_checksum=True).compress(content)
    return client.get(capture).stored_size / len(single)
