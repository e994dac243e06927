"""The command usage: a tenant's totals and limits."""

from overspill.cli import output
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.table import instant, print_facts


@command(
    "overspill usage",
    "overspill usage --json",
)
def usage(invocation: Invocation) -> None:
    """Show what the tenant has stored, and its limits."""
    with invocation.client() as client:
        used = client.usage()
    if invocation.answered(used):
        return
    print_facts(
        {
            "tenant": used.tenant,
            "captures": _use_of_limit(used.captures, used.max_captures),
            "content": f"{_use_of_limit(used.size, used.max_content_size)} bytes",
            "stored": f"{_use_of_limit(used.stored_size, used.max_stored_size)} bytes",
            "metadata": f"{_use_of_limit(used.metadata_size, used.max_metadata_size)} bytes",
            "oldest": instant(used.oldest) if used.oldest else "-",
            "one capture": f"at most {used.max_capture_size:,} bytes",
            "kept": f"{used.default_ttl:,} s, at most {used.max_ttl:,} s",
        }
    )
    if used.incomplete:
        output.say("the catalog is being rebuilt: the totals may be too low")


def _use_of_limit(number: int, limit: int) -> str:
    return f"{number:,} of {limit:,}" if limit else f"{number:,}"
