"""The wrappers that count operations have every method of their port, and count each that asks a back end."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest
from overspill_service.catalog import Catalog
from overspill_service.errors import StoreUnavailable
from overspill_service.objects import ObjectStore
from overspill_service.objects.memory import MemoryStore
from overspill_service.telemetry.metered import MeteredCatalog, MeteredStore
from overspill_service.telemetry.metrics import Metrics
from prometheus_client import generate_latest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from overspill_service.objects import StoredObject

UNCOUNTED = {"damaged"}
"""What a catalog answers out of this process's memory."""


def methods(port: type) -> dict[str, Callable[..., Any]]:
    return {
        name: value
        for part in port.__mro__
        for name, value in vars(part).items()
        if part.__module__.startswith("overspill_service") and not name.startswith("_")
    }


class Answering:
    """A back end that has every method, whatever the arguments."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def answer(*_args: object, **_kwargs: object) -> str:
            return name

        async def listing(*_args: object) -> AsyncIterator[str]:
            yield name

        return listing if name == "list" else answer


def operations(metrics: Metrics, result: str = "done") -> set[str]:
    """The operations that were counted once with this result."""
    lines = generate_latest(metrics.collect()).decode().splitlines()
    counted = [line for line in lines if line.startswith("overspill_backend_operations_total{")]
    return {
        line.partition('operation="')[2].partition('"')[0]
        for line in counted
        if f'result="{result}"' in line and line.endswith(" 1.0")
    }


async def call(method: Callable[..., Any], wanted: Callable[..., Any]) -> Any:
    """Call a method with an argument for each parameter of the port's."""
    parameters = list(inspect.signature(wanted).parameters.values())[1:]
    positional = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    named = {each.name: each.name for each in parameters if each.kind is each.KEYWORD_ONLY}
    answer = method(*positional, **named)
    return [each async for each in answer] if hasattr(answer, "__aiter__") else await answer


@pytest.mark.parametrize(("port", "wrapper"), [(ObjectStore, MeteredStore), (Catalog, MeteredCatalog)])
async def test_every_method_of_a_port_is_counted(port: type, wrapper: type) -> None:
    metrics = Metrics()
    metered = wrapper(Answering(), "backend", metrics)
    wanted = {name: method for name, method in methods(port).items() if name not in UNCOUNTED}
    answers = {name: await call(getattr(metered, name), method) for name, method in wanted.items()}

    assert answers == {name: [name] if name == "list" else name for name in wanted}
    assert operations(metrics) == set(wanted)


@pytest.mark.parametrize(("port", "wrapper"), [(ObjectStore, MeteredStore), (Catalog, MeteredCatalog)])
def test_a_wrapper_has_the_methods_of_its_port_and_no_others(port: type, wrapper: type) -> None:
    assert {name for name in vars(wrapper) if not name.startswith("_")} == set(methods(port))
    assert "__getattr__" not in dir(wrapper)


async def test_a_listing_that_is_broken_off_is_done_and_one_that_fails_has_failed() -> None:
    class Failing(MemoryStore):
        async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
            async for stored in super().list(prefix):
                yield stored
            raise StoreUnavailable("gone")

    metrics = Metrics()
    store = MeteredStore(Failing(), "store", metrics)
    await store.put("a", [b"x"])
    listing = store.list("")
    await anext(listing)
    await listing.aclose()  # type: ignore[attr-defined]
    with pytest.raises(StoreUnavailable):
        _ = [stored async for stored in store.list("")]

    assert operations(metrics) == {"put", "list"}
    assert operations(metrics, "failed") == {"list"}
