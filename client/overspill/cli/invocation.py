"""The things that every command works with: the common options, the client, the spool and the answer."""
# ruff: noqa: PLC0415  (every command imports this module: its help waits for no client)

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from overspill.cli import output
from overspill.cli.exit_codes import usage_errors
from overspill.cli.options import Color, Json, Key, Raw, Url
from overspill.cli.printable import printable_json

if TYPE_CHECKING:
    from overspill.guard.policy import Policy
    from overspill.spools.entries import Spooled
    from overspill.spools.holder import SyncSource
    from overspill.spools.partition import Partition
    from overspill.transfer.client import Client
    from overspill.transfer.sync import SyncClient


@dataclass(frozen=True)
class Invocation:
    """The options that every command takes, before or after its name."""

    url: Url = None
    key: Key = None
    json: Json = False
    raw: Raw = False
    color: Color = None

    def client(self, **limits: Any) -> "SyncClient":
        """Return a client of the service that the options or environment name. Raises `CommandFailure`."""
        from overspill.transfer.sync import SyncClient

        with usage_errors(ValueError):
            return SyncClient(self.url, self.key, **limits)

    def async_client(self, **limits: Any) -> "Client":
        """Return the same for asyncio code. Raises `CommandFailure`."""
        from overspill.transfer.client import Client

        with usage_errors(ValueError):
            return Client(self.url, self.key, **limits)

    def policy(self) -> "Policy":
        """Return the policy that the environment names. Raises `CommandFailure`."""
        from overspill.guard.environment_policy import environment_policy

        with usage_errors(OSError, ValueError, before="OVERSPILL_POLICY: "):
            return environment_policy()

    def session(self) -> str:
        """Return the session of the environment, empty if it names none. Raises `CommandFailure`."""
        with self.client() as client:
            return client.session

    def partition(self) -> "Partition | None":
        """Return where captures wait for this service and key. None if there is no spool.

        Raises `CommandFailure`.
        """
        from overspill.spools.spool import partition_for

        with usage_errors(ValueError):
            return partition_for(self.client())

    @contextmanager
    def source(self, ref: str, session: str | None) -> Iterator["SyncSource"]:
        """Give what to read a capture from: the spool while it waits there, or else the service."""
        from overspill.spools.capture import LocalCapture
        from overspill.spools.holder import Holder

        partition = self.partition()
        with self.client() as client:
            holder = Holder(partition, session=client.session)
            with holder.source(client, ref, session) as source:
                if isinstance(source, LocalCapture):
                    output.say(_not_uploaded(source.spooled))
                yield source

    def answer(self, value: object) -> None:
        """Print `value` as the JSON of the wire. Raises `OSError`."""
        import msgspec

        text = msgspec.json.encode(value).decode()
        output.line(text if self.raw else printable_json(text))

    def answered(self, value: object) -> bool:
        """Print `value` as `answer` does if `--json` asks for that. Return whether it does."""
        if self.json:
            self.answer(value)
        return self.json

    def command(self, *words: str) -> str:
        """Return a command line that asks the same service, in a shell like ours. It never has the key."""
        from overspill.integrations.agent_programs.own_command import shell_command

        url = [] if self.url is None else ["--url", self.url]
        return shlex.join([*shell_command(), *words[:1], *url, *words[1:]])


def _not_uploaded(spooled: "Spooled") -> str:
    state = f"and will not be uploaded: {spooled.refused}" if spooled.refused else "and is not uploaded yet"
    return f"{spooled.id} is on this machine only {state}"
