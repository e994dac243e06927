"""The command `overspill`, even where its extra is not installed: then it says what to install."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import NoReturn, TextIO

_USAGE = 2
_INTERRUPTED = 130
_MISSING = (
    "overspill: the command line needs the extra overspill[cli]; "
    "install it from a checkout: pip install './client[cli]'"
)


_HOOK_WORDS = 3
_COLLECT_AFTER = 200_000
"""New objects after which garbage is looked for: more than a command makes at its start, which it keeps."""


def main() -> int:
    """Run the command line; the exit code."""
    if len(sys.argv) == _HOOK_WORDS and sys.argv[1] == "hook" and not sys.argv[2].startswith("-"):
        from overspill.integrations.agent_programs.hook import main as hook  # noqa: PLC0415  (it needs no command line)

        return hook(sys.argv[2])
    if find_spec("click") is None:
        print(_MISSING, file=sys.stderr)
        return _USAGE
    from overspill.cli.app import main as run  # noqa: PLC0415  (there only with the extra)

    return run()


def run_process() -> NoReturn:
    """Run the command line as this process, which has no other purpose, and end it."""
    gc.set_threshold(_COLLECT_AFTER)
    end = _QuickEnd()
    atexit.register(end.leave)  # before all others, so it is called after them
    try:
        sys.exit(main())
    except SystemExit as exit_:
        end.code = exit_.code
        raise
    except KeyboardInterrupt:  # while the command line is loaded: later it says so itself
        end.code = _INTERRUPTED
        print("overspill: interrupted", file=sys.stderr)
        sys.exit(_INTERRUPTED)


class _QuickEnd:
    """Ends the process without freeing its objects one by one, a fifth of the time of a short command."""

    def __init__(self) -> None:
        self.code: object = ""

    def leave(self) -> None:
        """Leave with the code, if it is one. What standard error cannot take changes nothing.

        The interpreter deals with what standard output cannot take.
        """
        if not isinstance(self.code, int):
            return
        with suppress(OSError, ValueError):
            _flush(sys.stderr)
        try:
            _flush(sys.stdout)
        except (OSError, ValueError):
            return
        os._exit(self.code & 0xFF)


def _flush(stream: TextIO | None) -> None:
    if stream is not None and not stream.closed:
        stream.flush()


if __name__ == "__main__":
    run_process()
