"""Tables of the service's pages, made from what they describe.

`uv run python -m tests.readme_tables` prints them.
"""

from __future__ import annotations

from overspill.wire import Code
from overspill_service.settings.help import descriptions
from overspill_service.telemetry.definitions import METRICS
from overspill_service.web.routes import ROUTES


def api_table() -> str:
    rows = ["| request | scope | does |", "|---|---|---|"]
    for route in ROUTES:
        scope = "none" if route.needed is None else route.needed.value
        query = ", ".join(f"`{name}`" for name in route.query.__struct_fields__)
        does = f"{route.summary} Query: {query}" if query else route.summary
        rows.append(f"| `{route.method} {route.path}` | {scope} | {does} |")
    return "\n".join(rows)


def problems_table() -> str:
    rows = ["| code | status | means |", "|---|---|---|"]
    rows += [f"| `{code}` | {code.status} | {code.heading} |" for code in Code]
    return "\n".join(rows)


def settings_table() -> str:
    rows = ["| setting | default | allowed | meaning |", "|---|---|---|---|"]
    for each in descriptions():
        default = each.default if " " in each.default else f"`{each.default}`" if each.default else ""
        rows.append(f"| `{each.name}` | {default} | {each.allowed} | {each.meaning} |")
    return "\n".join(rows)


def metrics_table() -> str:
    rows = ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    for each in METRICS:
        labels = ", ".join(f"`{label.name}`" for label in each.labels)
        name = f"`{each.full_name}`{' *' if each.is_kept else ''}"
        rows.append(f"| {name} | {each.kind.value} | {labels} | {each.help} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(api_table(), problems_table(), settings_table(), metrics_table(), sep="\n\n")
