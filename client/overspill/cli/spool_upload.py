"""Uploads what waits in the spool, at the end of a command."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import click

from overspill.cli import output
from overspill.errors.client_errors import NotSpooled
from overspill.spools.flush_job import flush_shortly
from overspill.text.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.cli.invocation import Invocation
    from overspill.spools.partition import Partition

UPLOAD_SECONDS: Final = 2.0
"""How much longer a command may take to upload what waits."""


@contextmanager
def uploaded_afterwards(invocation: Invocation) -> Iterator[None]:
    """Upload what waits after the block, unless the block fails. Take at most `UPLOAD_SECONDS`.

    Raises `CommandFailure` before the block if the environment names an invalid spool.
    """
    invocation.partition()
    try:
        yield
    except click.exceptions.Exit:
        _upload(invocation)
        raise
    _upload(invocation)


def _upload(invocation: Invocation) -> None:
    """Upload what waits. An interrupt ends only this: the command has done its work."""
    output.flush()
    with suppress(KeyboardInterrupt, NotSpooled, OSError):
        partition = invocation.partition()
        if partition is not None and not partition.is_empty():
            _upload_from(partition, invocation)


def _upload_from(partition: Partition, invocation: Invocation) -> None:
    limits: dict[str, Any] = {"timeout": UPLOAD_SECONDS, "connect_timeout": UPLOAD_SECONDS, "retries": 0}
    with invocation.client(**limits) as client:
        done = flush_shortly(partition, client, UPLOAD_SECONDS)
    if done.uploaded:
        output.say(f"uploaded {plural(done.uploaded, 'capture')} that waited on this machine")
