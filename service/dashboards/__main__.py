"""Write the JSON of every dashboard to a folder, by default the one that docker-compose mounts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards.fleet import fleet
from dashboards.health import health
from dashboards.storage import storage
from dashboards.tenant import tenant
from dashboards.tool import tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from grafana_foundation_sdk.builders.dashboard import Dashboard

FOLDER: Final = Path(__file__).parents[1] / "deploy" / "grafana" / "dashboards"
DASHBOARDS: Final[tuple[Callable[[], Dashboard], ...]] = (fleet, tenant, tool, health, storage)


def document(make: Callable[[], Dashboard]) -> dict[str, Any]:
    """Return a dashboard as Grafana reads it."""
    made: dict[str, Any] = json.loads(JSONEncoder(sort_keys=True).encode(make().build()))
    return made


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for make in DASHBOARDS:
        text = json.dumps(document(make), indent=2, sort_keys=True)
        (folder / f"{make.__name__}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
