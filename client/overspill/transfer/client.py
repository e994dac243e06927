"""The asynchronous client: one method for each request that the service takes."""

from __future__ import annotations

from overspill import wire
from overspill.transfer.argument_checks import check_text
from overspill.transfer.capture_calls import CaptureCalls
from overspill.transfer.live_calls import LiveCalls
from overspill.transfer.read_calls import ReadCalls
from overspill.transfer.service_calls import ServiceCalls


def call(call_id: str) -> str:
    """Return the reference to the newest capture of a tool call: `call:` and the call's id."""
    check_text("call_id", call_id)
    return wire.CALL_PREFIX + wire.fit(call_id)


class Client(CaptureCalls, ReadCalls, LiveCalls, ServiceCalls):
    """Overspill for asyncio code: `async with Client() as client`.

    `url`, `key` and `session` default to `OVERSPILL_URL`, `OVERSPILL_KEY` and `OVERSPILL_SESSION`. Captures
    are put into `session`, and a `call:` reference is looked up in it; without a session, among captures that
    have none. A method's own `session` replaces it; `""` looks in all sessions, if the key may.

    `timeout` is how many seconds a call may last, retries included; an upload or a download may last that
    long without progress. `connect_timeout` is how many of them connecting may take. `retries` is how often
    a failed request is sent again. `compress=False` sends content as it is.

    A `ref` is a capture id or `call(tool-call id)`. Every method raises `Unreachable`, `ProtocolError` or the
    `ProblemError` that the service answered with, and `ClientClosed` after `aclose`. A client belongs to the
    event loop that first uses it. Raises `ValueError` for a malformed URL or key, and
    for a time or a number of retries that is none.
    """
