"""A spool inside the agent's own workspace, for agents that read files and nothing else.

    <workspace>/.overspill/     .gitignore keeps it out of commits and searches
      cap_….txt                 an output, exactly as it was
      toolu_….txt               a link to it named by the tool call, if that is wanted

The files are for the agent, and notices name them. They are bounded like any spool, and never uploaded.
"""

from __future__ import annotations

import functools
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from overspill import wire
from overspill.errors.client_errors import NotSpooled
from overspill.spools.folder import Folder
from overspill.spools.location import MAX_BYTES
from overspill.spools.own_directory import is_directory
from overspill.spools.partition import Partition
from overspill.spools.spool import Spool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overspill.spools.order import Addition
    from overspill.spools.store_request import StoreRequest

FOLDER: Final = ".overspill"
_IGNORED: Final = "*\n"
_SUFFIX: Final = ".txt"
_SAFE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
"""A call id that can be a file's name as it is."""
_DIGITS: Final = slice(4, 12)
"""The part of a capture id that goes into a file's name if two outputs have the same call id."""


class Workspace(Spool):
    """A spool in `.overspill` of `directory`, the root of the agent's workspace. See `Spool`.

    With `by_call_id` each file also gets a name made from the id of its tool call, if that id is known and
    can be a file's name; the notice has this name. With `absolute` the notice has the absolute path.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        max_bytes: int = MAX_BYTES,
        by_call_id: bool = False,
        absolute: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(Path(directory) / FOLDER, max_bytes=max_bytes, clock=clock)
        self._by_call_id = by_call_id
        self._is_absolute = absolute
        self._agent_path = str(self.path) if absolute else FOLDER

    def __reduce__(self) -> tuple[Any, ...]:
        more: dict[str, Any] = {
            "by_call_id": self._by_call_id,
            "absolute": self._is_absolute,
            "clock": self.clock,
        }
        return functools.partial(type(self), max_bytes=self.max_bytes, **more), (self.path.parent,)

    def partition(self, url: str, key: str) -> Partition:  # noqa: ARG002  (the workspace is one agent's)
        """Return the only partition: a workspace belongs to one agent, whatever its service and key."""
        folder = Folder(self.path, suffix=_SUFFIX, mode=0o644)
        kind = _LinkedPartition if self._by_call_id else Partition
        return kind(self, folder, url, agent_path=self._agent_path)

    def partitions(self) -> list[Partition]:
        """Return the only partition, or an empty list if the folder is not there."""
        return [self.partition("", "")] if self.exists() else []

    def exists(self) -> bool:
        """Return whether the folder is there. Any permissions will do, but a symbolic link does not."""
        return is_directory(self.path)

    def make(self) -> None:
        """Create the folder. Raises `NotSpooled` if the workspace is not a directory."""
        if not is_directory(self.path.parent):
            raise NotSpooled(f"the workspace {self.path.parent} is not a directory")
        with suppress(FileExistsError):
            self.path.mkdir()
        if not self.exists():
            raise NotSpooled(f"{FOLDER} in the workspace is not a directory: remove it")
        with suppress(FileExistsError), (self.path / ".gitignore").open("x", encoding="utf-8") as file:
            file.write(_IGNORED)


class _LinkedPartition(Partition):
    """A partition whose files have links named by their tool calls. A taken name gets another ending."""

    def _path_for_agent(self, request: StoreRequest) -> str:
        origin = request.origin
        call_id = "" if origin.is_minted or wire.CAPTURE_ID.fullmatch(origin.call_id) else origin.call_id
        if not _SAFE.fullmatch(call_id):
            return super()._path_for_agent(request)
        target, name = self.folder.name(request.id), f"{call_id}{_SUFFIX}"
        if self._target(name) not in {None, target}:
            name = f"{call_id}-{request.id[_DIGITS]}{_SUFFIX}"
        return f"{self._agent_path}/{name}"

    def _add(
        self,
        additions: Sequence[Addition],
        lock_timeout: float,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        super()._add(additions, lock_timeout, on_progress)
        self._remove_dangling()
        for addition in additions:
            if addition.failure is None:
                self._link(addition)

    def _target(self, name: str) -> str | None:
        """Return the target of the link of this name, "" for any other file, None if there is none."""
        try:
            return str((self.folder.path / name).readlink())
        except FileNotFoundError:
            return None
        except OSError:
            return ""

    def _link(self, addition: Addition) -> None:
        """Link the name in the entry to the file. If that fails, let the entry name the file itself."""
        entry = addition.entry
        name, target = entry.path.rpartition("/")[2], self.folder.name(entry.id)
        if name == target:
            return
        with suppress(OSError):
            (self.folder.path / name).symlink_to(target)
        if self._target(name) != target:
            addition.entry = structs.replace(entry, path=f"{self._agent_path}/{target}")

    def _remove_dangling(self) -> None:
        """Remove the links to files that were removed."""
        with suppress(OSError), os.scandir(self.folder.path) as found:
            gone = [Path(each.path) for each in found if each.is_symlink() and not Path(each.path).exists()]
            for link in gone:
                link.unlink(missing_ok=True)
