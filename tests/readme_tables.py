"""The README's tables, made from what they describe: `uv run python -m tests.readme_tables` prints them."""

from __future__ import annotations

from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from overspill_service.settings import Settings
from overspill_service.web.registry import Access
from overspill_service.web.routes import ROUTES


def api_table() -> str:
    rows = ["| request | scope | does |", "|---|---|---|"]
    for route in ROUTES:
        scope = "none" if isinstance(route.scope, Access) else route.scope.value
        query = ", ".join(f"`{name}`" for name in route.query.__struct_fields__)
        does = f"{route.summary} Query: {query}" if query else route.summary
        rows.append(f"| `{route.method} {route.path}` | {scope} | {does} |")
    return "\n".join(rows)


def settings_table() -> str:
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    hints = get_type_hints(Settings, include_extras=True)
    for each in msgspec.structs.fields(Settings):
        default = "the user's data directory" if each.name == "data" else _shown(each.default)
        rows.append(f"| `{each.name}` | {default} | {_meaning(hints[each.name])} |")
    return "\n".join(rows)


def _shown(default: Any) -> str:
    if default in ("", None):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _meaning(hint: Any) -> str:
    assert get_origin(hint) is Annotated
    text = next(each.description for each in get_args(hint)[1:] if isinstance(each, msgspec.Meta))
    return (text or "").replace("|", "\\|")


if __name__ == "__main__":
    print(api_table(), settings_table(), sep="\n\n")
