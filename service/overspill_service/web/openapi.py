"""The API's description (OpenAPI 3.1), made from the route registry."""

from __future__ import annotations

import re
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, get_type_hints

import msgspec
from msgspec import Struct
from overspill import wire
from overspill.wire import PROBLEM_TYPE, Header, Path

from overspill_service.web.registry import PUBLIC, SCRAPER, Route

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aiohttp import web

    from overspill_service.web.context import RequestContext

COMPONENT: Final = "#/components/schemas/{name}"
ID: Final = "cap_[a-z2-7]{20}"
PATH_PARAMETERS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "file": ("Its name.", {}),
    "ref": ("A capture id, or call: and a tool-call id (the newest).", {"pattern": f"^({ID}|call:.+)$"}),
    "id": ("The id of a key, as the list shows it.", {}),
    "session": ("A session.", {"minLength": 1}),
}
HEADER_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    Header.TTL: {"type": "integer", "minimum": 1},
}
OWN_FIELDS: Final = frozenset({"Content-Type", "Content-Encoding"})
"""Headers that OpenAPI describes in another place."""


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the description of these routes."""
    routes = tuple(routes)
    kinds = [wire.Problem, *dict.fromkeys(kind for route in routes for kind in _kinds(route))]
    _, components = msgspec.json.schema_components(kinds, ref_template=COMPONENT)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Overspill",
            "version": wire.VERSION,
            "description": "Captured tool outputs, read by handle.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


_KEY: Final[list[dict[str, Any]]] = [{"key": []}]
_SECURITY: Final[dict[Any, list[dict[str, Any]]]] = {PUBLIC: [], SCRAPER: [{}, *_KEY]}
"""The credentials that each access needs. An empty object means none."""


def _kinds(route: Route) -> list[type[Struct]]:
    return [kind for kind in (route.body, *route.answers.values()) if kind and not isinstance(kind, str)]


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "parameters": [*_path_parameters(route), *_query_parameters(route), *_header_parameters(route)],
        "responses": {str(status): _answer(kind, route) for status, kind in route.answers.items()},
    }
    operation["responses"]["default"] = {
        "description": "A problem (RFC 9457).",
        "content": {PROBLEM_TYPE: {"schema": _reference(wire.Problem)}},
    }
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": _content(route.body)}
    operation["security"] = _SECURITY.get(route.scope, _KEY)
    if route.needed is not None:
        operation["description"] = f"Needs the scope `{route.needed.value}`."
    if route.scope is SCRAPER:
        operation["description"] += " Not from addresses of the setting `metrics_from`."
    return operation


def _operation_id(route: Route) -> str:
    words = re.findall(r"[a-z]+", route.path.replace("/v1", "").lower())
    return "_".join([route.method.lower(), *words])


def _answer(kind: type[Struct] | str | None, route: Route) -> dict[str, Any]:
    if kind is None:
        return {"description": "Not modified."}
    content = _content(kind)
    if route.is_text:
        content["text/plain"] = {"schema": {"type": "string"}}
    return {"description": "Done.", "content": content}


def _content(kind: type[Struct] | str) -> dict[str, Any]:
    if kind == wire.FOLLOW_TYPE:  # tools take the schema for that of one event
        return {kind: {}}
    if isinstance(kind, str):
        return {kind: {"schema": {"type": "object" if kind == "application/json" else "string"}}}
    return {"application/json": {"schema": _reference(kind)}}


def _reference(kind: type[Struct]) -> dict[str, str]:
    return {"$ref": COMPONENT.format(name=kind.__name__)}


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": PATH_PARAMETERS[name][0],
            "schema": {"type": "string", **_path_schema(route, name)},
        }
        for name in re.findall(r"\{(\w+)\}", route.path)
    ]


def _path_schema(route: Route, name: str) -> dict[str, Any]:
    """Return the schema of a path parameter.

    Storing takes only a capture id: a call id does not name the content.
    """
    return {"pattern": f"^{ID}$"} if route.method == "PUT" else PATH_PARAMETERS[name][1]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    hints = get_type_hints(route.query, include_extras=True)
    return [
        {
            "name": each.name,
            "in": "query",
            "required": each.required,
            "schema": _schema(hints[each.name], {} if each.required else {"default": each.default}),
        }
        for each in msgspec.structs.fields(route.query)
    ]


def _schema(hint: Any, extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return a parameter's schema, with references resolved."""
    schema, components = msgspec.json.schema_components([hint])
    (found,) = schema
    while "$ref" in found:
        found = components[found["$ref"].rsplit("/", 1)[-1]]
    if "anyOf" in found:
        found = {"anyOf": [_resolved(each, components) for each in found["anyOf"]]}
    return {**found, **extra}


def _resolved(schema: dict[str, Any], components: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    return components[schema["$ref"].rsplit("/", 1)[-1]] if "$ref" in schema else schema


def _header_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": str(name),
            "in": "header",
            "required": False,
            "description": text,
            "schema": HEADER_SCHEMAS.get(name, {"type": "string"}),
        }
        for name, text in route.headers.items()
        if name not in OWN_FIELDS
    ]


def route_for(routes: Iterable[Route]) -> Route:
    """Return the route of the description. It describes the other routes and itself.

    The description is made in a thread at the first request for it, because it takes 30 ms.
    """
    described = tuple(routes)

    async def describe(context: RequestContext[wire.NoQuery]) -> web.Response:
        return context.json(await context.service.archive.cpu.run(rendered))

    route = Route(
        method="GET",
        path=Path.OPENAPI,
        scope=PUBLIC,
        handler=describe,
        summary="Return this description.",
        answers={200: "application/json"},
    )
    rendered = cache(partial(document, (*described, route)))
    return route
