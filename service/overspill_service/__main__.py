"""The command `overspill-service`: its start, during which nothing becomes garbage."""

from __future__ import annotations

import gc
import sys


def main() -> int:
    """Run one command. Return the exit code.

    What is imported stays, so the garbage collector looks through none of it: not now, not while the event
    loop waits for it, and not at the end.
    """
    gc.disable()
    from overspill_service.command_line import main as run  # noqa: PLC0415  (the collector is off from here on)

    return run(imported=_resume_collection)


def _resume_collection() -> None:
    gc.freeze()
    gc.enable()


if __name__ == "__main__":
    sys.exit(main())
