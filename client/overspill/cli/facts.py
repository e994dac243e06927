"""Facts about a capture or a tenant as aligned lines: a name, and its value."""

from overspill.cli import output
from overspill.cli.printable import printable_line


def print_facts(facts: dict[str, str]) -> None:
    """Print each fact that has a value. Raises `OSError`."""
    width = max(map(len, facts))
    for name, value in facts.items():
        if value:
            output.line(f"{printable_line(name):<{width}}  {printable_line(value)}")
