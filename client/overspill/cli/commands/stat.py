"""The command stat: the details of a capture, and who has read it."""

from typing import TYPE_CHECKING

from msgspec.structs import asdict

from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.options import Ref, SessionFilter
from overspill.cli.table import instant, print_facts
from overspill.errors import Forbidden, NoRoute
from overspill.text.quantities import plural

if TYPE_CHECKING:
    from overspill.spools.holder import SyncSource
    from overspill.wire import Entry, Reader


@command(
    "overspill stat cap_k3v7q2m5x4c6z2b7n5aa",
    "overspill stat --json call:call_17 | jq .labels",
)
def stat(invocation: Invocation, ref: Ref, *, session: SessionFilter = None) -> None:
    """Show the details of a capture.

    Prints its state, size, lines, tool, session, labels and expiry, and who has read it and when.
    """
    with invocation.source(ref, session) as source:
        entry = source.get(ref, session=session)
        readers = _readers(source, entry)
    facts = entry if readers is None else asdict(entry) | {"readers": readers}
    if not invocation.answered(facts):
        print_facts(_facts(entry) | {_reader_name(each): _read_times(each) for each in readers or ()})


def _readers(source: "SyncSource", entry: "Entry") -> "list[Reader] | None":
    """Return who has read a capture, None if the key may not know it or the service does not."""
    try:
        return source.readers(entry.id).readers
    except (Forbidden, NoRoute):  # a key of some sessions; an older service
        return None


def _reader_name(reader: "Reader") -> str:
    where = "looked at by" if reader.on_page else "read by"
    return f"{where} {reader.name or 'no key'}"


def _read_times(reader: "Reader") -> str:
    first, last = instant(reader.first_read), instant(reader.last_read)
    return last if first == last else f"{last}, first {first}"


def _facts(entry: "Entry") -> dict[str, str]:
    facts = {
        "capture": entry.id,
        "state": entry.state,
        "size": f"{plural(entry.size, 'byte')}, {plural(entry.lines, 'line')}",
        "stored": f"{entry.stored_size:,} bytes",
        "type": f"{entry.content_type} ({entry.kind})",
        "sha256": entry.sha256,
        "tool": entry.tool,
        "session": entry.session,
        "call id": entry.call_id,
        "status": entry.status,
        "created": instant(entry.created),
        "expires": "not before it is released" if entry.held else instant(entry.expires),
    }
    if entry.gap is not None:
        facts["missing"] = str(entry.gap)
    return {**facts, **{f"label {name}": value for name, value in sorted(entry.labels.items())}}
