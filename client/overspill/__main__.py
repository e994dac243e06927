"""The command `overspill`, also where its extra is not installed: then it says what to install."""

from __future__ import annotations

import sys
from importlib.util import find_spec

_USAGE = 2
_MISSING = (
    "overspill: the command line needs the extra overspill[cli]; "
    "install it from a checkout: pip install './client[cli]'"
)


_HOOK_WORDS = 3


def main() -> int:
    """Run the command line; the exit code."""
    if len(sys.argv) == _HOOK_WORDS and sys.argv[1] == "hook" and not sys.argv[2].startswith("-"):
        from overspill.integrations.agent_programs.hook import main as hook  # noqa: PLC0415  (it needs no command line)

        return hook(sys.argv[2])
    if find_spec("typer") is None:
        print(_MISSING, file=sys.stderr)
        return _USAGE
    from overspill.cli.app import main as run  # noqa: PLC0415  (there only with the extra)

    return run()


if __name__ == "__main__":
    sys.exit(main())
