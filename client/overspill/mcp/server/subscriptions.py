"""News of captures for clients: `notifications/resources/updated` while one grows, and at its end.

Until 2025-11-25 a client subscribes to a resource of its connection (`resources/subscribe`). From 2026-07-28
on it listens on a request of its own (`subscriptions/listen`), for as long as that is open.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcp import types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from overspill.mcp.server import resources

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext

    from overspill.mcp.growth import Growth, Watches

    Tell = Callable[[str], Awaitable[None]]
    """Sends the news of one resource."""

MAX_SUBSCRIPTIONS: Final = 100
"""Resources that one connection, or one listening request, may have news of."""
_STATE: Final = "overspill.subscriptions"


class Subscriptions:
    """The resources that clients have subscribed to. Resources of one capture share its watch."""

    def __init__(self, watches: Watches) -> None:
        self._watches = watches

    async def subscribe(
        self, context: ServerRequestContext[Any], params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Send news of a resource to this connection from now on. Raises `MCPError`."""
        uri = str(params.uri)
        capture = resources.capture_of(uri)
        subscribed = self._of_connection(context)
        if uri not in subscribed:
            if len(subscribed) >= MAX_SUBSCRIPTIONS:
                raise MCPError(
                    types.INVALID_REQUEST, f"a connection has at most {MAX_SUBSCRIPTIONS} subscriptions"
                )
            subscribed[uri] = subscription = _Subscription(self._watches, capture, uri)
            try:
                first = await subscription.begin(context.session.send_resource_updated)
                resources.checked(first.answer, uri)
            except BaseException:
                subscribed.pop(uri, None)
                await subscription.end()
                raise
        return types.EmptyResult()

    async def unsubscribe(
        self, context: ServerRequestContext[Any], params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Stop the news of a resource on this connection."""
        subscription = self._of_connection(context).pop(str(params.uri), None)
        if subscription is not None:
            await subscription.end()
        return types.EmptyResult()

    async def listen(
        self, context: ServerRequestContext[Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Send news of resources on this request until the client ends it. Only captures have news."""
        bus = InMemorySubscriptionBus()
        uris = params.notifications.resource_subscriptions or []
        if len(uris) > MAX_SUBSCRIPTIONS:
            raise MCPError(
                types.INVALID_PARAMS, f"a request has at most {MAX_SUBSCRIPTIONS} resource subscriptions"
            )
        async with self._subscribed(uris, lambda uri: bus.publish(ResourceUpdated(uri))) as accepted:
            honored = types.SubscriptionFilter(resource_subscriptions=accepted)
            honored_params = params.model_copy(update={"notifications": honored})
            return await ListenHandler(bus)(context, honored_params)

    @asynccontextmanager
    async def _subscribed(self, uris: Sequence[str], tell: Tell) -> AsyncIterator[list[str]]:
        """Send news of captures within the block. Yield the addresses that are of captures."""
        accepted = [uri for uri in dict.fromkeys(uris) if _is_capture(uri)]
        async with AsyncExitStack() as stack:
            subscriptions = [_Subscription(self._watches, resources.capture_of(uri), uri) for uri in accepted]
            for subscription in subscriptions:
                stack.push_async_callback(subscription.end)
            await asyncio.gather(*(subscription.begin(tell) for subscription in subscriptions))
            yield accepted

    def _of_connection(self, context: ServerRequestContext[Any]) -> dict[str, _Subscription]:
        """Return the subscriptions of a connection, which end with it."""
        connection: Connection = context.session._connection  # noqa: SLF001  (the SDK shows its end nowhere else)
        if _STATE not in connection.state:
            connection.state[_STATE] = subscribed = dict[str, _Subscription]()
            connection.exit_stack.push_async_callback(partial(_end_all, subscribed))
        found: dict[str, _Subscription] = connection.state[_STATE]
        return found


class _Subscription:
    """Sends news of one resource to one client."""

    def __init__(self, watches: Watches, capture: str, uri: str) -> None:
        self._watches, self._capture, self._uri = watches, capture, uri
        self._task: asyncio.Task[None] | None = None

    async def begin(self, tell: Tell) -> Growth:
        """Begin to report growth. Return the present growth of the capture: only later growth is reported."""
        first: asyncio.Future[Growth] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(tell, first), name=f"subscription to {self._uri}")
        return await first

    async def end(self) -> None:
        """Stop the news."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, tell: Tell, first: asyncio.Future[Growth]) -> None:
        async with self._watches.of(self._capture) as watch:
            seen = await watch.after(None)
            if not first.done():
                first.set_result(seen)
            while seen.is_live:
                seen = await watch.after(seen)
                await tell(self._uri)


async def _end_all(subscribed: dict[str, _Subscription]) -> None:
    await asyncio.gather(*(subscription.end() for subscription in subscribed.values()))


def _is_capture(uri: str) -> bool:
    try:
        resources.capture_of(uri)
    except MCPError:
        return False
    return True
