"""The credentials of the AWS chain. When the store refuses them, the chain is asked for others.

botocore renews credentials that name their end, such as those of a role. Others it reads once: it would never
use those of a file that has changed since, or was not there yet.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeVar

import botocore.session
from botocore.credentials import Credentials, RefreshableCredentials
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
)

from overspill_service.errors import StoreUnavailable
from overspill_service.objects.s3.failures import NO_CREDENTIALS, NOT_RENEWED
from overspill_service.resources.threads import Pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from botocore.credentials import ReadOnlyCredentials

T = TypeVar("T")

ASK_SECONDS: Final = 5.0
"""Seconds between two questions to the chain, at least. Each question doubles them until the store accepts a
request: it may refuse for other reasons too.
"""
LONGEST_ASK_SECONDS: Final = 120.0
ANSWER_SECONDS: Final = 3.0
"""Seconds that a request waits for the chain: a program or a server that the chain asks may hang."""
_REFUSALS: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
"""S3 answers 400 if a token has expired, and HEAD gets no code that says so."""
_FAILURES: Final = (
    ClientError,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RuntimeError,
)
"""The errors that botocore raises besides its own.

A `credential_process` cannot be started or prints no JSON, or a role is refused or has expired.
"""

log = logging.getLogger(__name__)


def may_refuse_credentials(status: int) -> bool:
    """Return whether an answer of this status may mean that the credentials are not valid."""
    return status in _REFUSALS


class ChainCredentials(Credentials):
    """The last credentials from the chain. They sign all requests to one store, including those of boto3."""

    def __init__(self, profile: str | None, region: str | None) -> None:
        """Blocks while the chain looks, maybe for a role.

        `profile`: one of the AWS configuration. `region`: where roles are asked for; None as it says.
        """
        super().__init__("", "")
        self._profile, self._region = profile, region
        self._found = self._fetched()
        self._frozen = self._found.get_frozen_credentials() if self._found and not self._is_due() else None
        self._asked_at, self._pause = -math.inf, 0.0
        self._is_answered = asyncio.Event()
        self._is_answered.set()
        self._thread = Pool(1, "credentials")
        """Its own: a chain that hangs takes no common thread, and delays no stop."""

    @property
    def valid(self) -> ReadOnlyCredentials | None:
        """Return the credentials to sign with now. None if there are none, or if they have expired."""
        return None if self._is_due(before_end=0) else self._frozen

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        """Return the credentials to sign with now, for boto3.

        Raises `NoCredentialsError` if there are none.
        """
        if (known := self.valid) is None:
            raise NoCredentialsError
        return known

    def load_credentials(self) -> ChainCredentials:
        """Return these: a session of botocore asks its component for credentials in this way."""
        return self

    def close(self) -> None:
        self._thread.close()

    async def current(self) -> ReadOnlyCredentials:
        """Return the credentials to sign with. Credentials that end soon are renewed in the background.

        While there are none, the chain is asked as soon as it may be. Raises `StoreUnavailable` if there are
        none, or if they cannot be renewed.
        """
        if self.valid is None:  # there is nothing that the store could refuse
            self.were_accepted()
        if self._found is None or self._is_due():
            self._ask(lambda: self._found or self._fetched())
        if self.valid is None:
            await self._answer()
        if (known := self.valid) is None:
            raise StoreUnavailable(NOT_RENEWED if self._found else NO_CREDENTIALS)
        return known

    async def have_changed(self, refused: ReadOnlyCredentials) -> bool:
        """Return whether there are other credentials than those that the store refused."""
        if self.valid == refused:
            self._ask(self._fetched)
            await self._answer()
        return self.valid not in (refused, None)

    def were_accepted(self) -> None:
        """Let the chain be asked at once when the store refuses a request."""
        self._pause = min(self._pause, ASK_SECONDS)

    def _is_due(self, before_end: int | None = None) -> bool:
        """Return whether there are so many seconds until the end, None: so few that botocore renews them."""
        return isinstance(self._found, RefreshableCredentials) and self._found.refresh_needed(before_end)

    def _ask(self, source: Callable[[], Credentials | None]) -> None:
        """Have the credentials of `source` read, but not if that was so shortly before or still goes on."""
        now = time.monotonic()
        if self._is_answered.is_set() and now >= self._asked_at + self._pause:
            self._asked_at = now
            self._pause = min(max(ASK_SECONDS, 2 * self._pause), LONGEST_ASK_SECONDS)
            self._is_answered.clear()
            self._thread.start(lambda: self._read(source), self._is_answered.set)

    async def _answer(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._asked_at + ANSWER_SECONDS - time.monotonic()):
                await self._is_answered.wait()

    def _read(self, source: Callable[[], Credentials | None]) -> None:
        try:
            if (found := source()) is not None:
                self._frozen = _read_chain(found.get_frozen_credentials)  # a role is asked for only by this
                self._found = found
        except BotoCoreError as error:  # a file that is being written, a role that nobody gives now
            log.warning("credentials could not be read again, the former ones stay in use: %s", error)

    def _fetched(self) -> Credentials | None:
        session = botocore.session.Session(profile=self._profile)
        if self._region is not None:
            session.set_config_variable("region", self._region)
        return _read_chain(session.get_credentials)


def _read_chain(ask: Callable[[], T]) -> T:
    """Return the chain's credentials. Raises only `BotoCoreError`."""
    try:
        return ask()
    except _FAILURES as error:
        raise CredentialRetrievalError(provider="the AWS configuration", error_msg=str(error)) from error
