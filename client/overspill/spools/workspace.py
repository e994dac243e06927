"""A spool inside the agent's own workspace, for agents that read files and nothing else.

    <workspace>/.overspill/     .gitignore keeps it out of commits and searches
      cap_….txt                 an output, exactly as it was

What is kept here is for the agent: its notice names the file. It is bounded as any spool, and not uploaded.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from overspill.spools.folder import Folder
from overspill.spools.location import MAX_BYTES
from overspill.spools.own_directory import NotSpooled, is_directory
from overspill.spools.spool import Shelf, Spool

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

FOLDER: Final = ".overspill"
_IGNORED: Final = "*\n"


class Workspace(Spool):
    """`directory` is the workspace, as the agent's file-reading tool sees its root. See `Spool`."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(Path(directory) / FOLDER, max_bytes=max_bytes, clock=clock)

    def shelf(self, url: str, key: str) -> Shelf:  # noqa: ARG002  (the workspace is one agent's)
        """The captures kept for a service; here the same for all."""
        folder = Folder(self.path, suffix=".txt", mode=0o644)
        return Shelf(self, folder, url, shown=FOLDER)

    def shelves(self) -> list[Shelf]:
        """All captures kept, one shelf at most."""
        return [self.shelf("", "")] if self.exists() else []

    def exists(self) -> bool:
        """The workspace's own permissions are its owner's business; a symbolic link leads out of it."""
        return is_directory(self.path)

    def make(self) -> None:
        """Make the folder. Raises `NotSpooled` where there is nothing to make it in."""
        if not is_directory(self.path.parent):
            raise NotSpooled(f"the workspace {self.path.parent} is no directory")
        with suppress(FileExistsError):
            self.path.mkdir()
        if not self.exists():
            raise NotSpooled(f"{FOLDER} in the workspace is no directory")
        with suppress(FileExistsError), (self.path / ".gitignore").open("x", encoding="utf-8") as file:
            file.write(_IGNORED)
