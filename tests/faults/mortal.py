"""Makes a service mortal: its process kills itself right after a step of a live capture.

The file that the variable `DIES_AFTER` names says after which one, and is gone once that is done. No live
capture is worked on in the background, so that each step is one of a request. This changes the classes of the
process that imports it: a launcher's, from which services fork.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from overspill_service.catalog.sqlite.catalog import SqliteCatalog
from overspill_service.live import flusher
from overspill_service.objects.file import FileStore

STEPS = ("commit", "append_live", "end_live", "replace")


async def _rest(_: object) -> None:
    await asyncio.Event().wait()


def _make_deadly(owner: Any, step: str) -> None:
    method = getattr(owner, step)

    async def deadly(self: Any, *args: Any, **kwargs: Any) -> Any:
        answer = await method(self, *args, **kwargs)
        file = Path(os.environ["DIES_AFTER"])
        is_of_capture = step != "put" or "/cap_" in args[0]
        if is_of_capture and file.exists() and file.read_text() == step:
            file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(owner, step, deadly)


for each in STEPS:
    _make_deadly(SqliteCatalog, each)
_make_deadly(FileStore, "put")
flusher.LEASE_SECONDS = 0.1  # type: ignore[misc]  # nobody waits long for the dead
flusher.Flusher.run = _rest  # type: ignore[assignment, method-assign]
