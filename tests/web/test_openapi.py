"""The description of the API, held against a public validator and against the service."""

from __future__ import annotations

from openapi_spec_validator import OpenAPIV31SpecValidator
from overspill_service.web.routes import ROUTES

from tests.web.conftest import Api


async def test_the_description_is_valid_openapi(api: Api) -> None:
    document = await (await api.get("/openapi.json")).json()

    OpenAPIV31SpecValidator(document).validate()


async def test_every_route_is_described_with_its_scope(api: Api) -> None:
    document = await (await api.get("/openapi.json")).json()

    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == {(route.method, route.path) for route in ROUTES}


async def test_operation_ids_are_unique(api: Api) -> None:
    document = await (await api.get("/openapi.json")).json()

    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids))
