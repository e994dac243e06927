"""The command stat: what is known of a capture."""

from typing import TYPE_CHECKING

import typer

from overspill.cli.declaration import command
from overspill.cli.facts import print_facts
from overspill.cli.options import Ref, SessionFilter
from overspill.cli.table import instant

if TYPE_CHECKING:
    from overspill.cli.invocation import Invocation
    from overspill.wire import Entry

_EXAMPLES = (
    "overspill stat cap_k3v7q2m5x4c6z2b7n5aa",
    "overspill stat --json call:call_17 | jq .labels",
)


def stat(invocation: "Invocation", ref: Ref, *, session: SessionFilter = None) -> None:
    """Show the facts of a capture: state, size, tool, session, labels, expiry."""
    with invocation.source(ref, session) as source:
        entry = source.get(ref, session=session)
    if invocation.json:
        invocation.answer(entry)
    else:
        print_facts(_facts(entry))


def _facts(entry: "Entry") -> dict[str, str]:
    facts = {
        "capture": entry.id,
        "state": entry.state,
        "size": f"{entry.size:,} bytes, {entry.lines:,} lines",
        "stored": f"{entry.stored_size:,} bytes",
        "type": f"{entry.content_type} ({entry.kind})",
        "sha256": entry.sha256,
        "tool": entry.tool,
        "session": entry.session,
        "call id": entry.call_id,
        "status": entry.status,
        "created": instant(entry.created),
        "expires": instant(entry.expires),
    }
    if entry.gap is not None:
        facts["missing"] = str(entry.gap)
    return {**facts, **{f"label {name}": value for name, value in sorted(entry.labels.items())}}


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    command(app, examples=_EXAMPLES)(stat)
