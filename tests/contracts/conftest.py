"""Every adapter of a port, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from overspill_service.catalog.urls import open_catalog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from overspill_service.catalog import Catalog


@pytest.fixture(params=["memory:", "sqlite:", "redis_url", "redis_sentinel_url", "redis_cluster_url"])
async def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Catalog]:
    url: str = request.param
    if not url.endswith(":"):
        url = f"{request.getfixturevalue(url)}?deadline=60"  # however busy the machine is
    made = open_catalog(url, data_dir=tmp_path)
    yield made
    await made.close()
