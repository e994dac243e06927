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

from overspill_service.resources.threads import Pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from botocore.credentials import ReadOnlyCredentials

T = TypeVar("T")

ASK_SECONDS: Final = 5.0
"""Seconds between two questions to the chain, at least: a store may refuse for other reasons too."""
ANSWER_SECONDS: Final = 3.0
"""How long a request waits for the chain: a program or a server that it asks may hang."""
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
"""What botocore raises besides its own errors: a `credential_process` cannot be started or prints no JSON, or
a role is refused or has expired.
"""

log = logging.getLogger(__name__)


def may_refuse_credentials(status: int) -> bool:
    """Return whether an answer of this status may mean that the credentials are not valid."""
    return status in _REFUSALS


class ChainCredentials(Credentials):
    """What the chain gave last. All requests to one store are signed with it, those of boto3 too."""

    def __init__(self, profile: str | None, region: str | None) -> None:
        """Blocks while the chain looks, maybe for a role.

        `profile`: one of the AWS configuration. `region`: where roles are asked for; None as it says.
        """
        super().__init__("", "")
        self._profile, self._region = profile, region
        self._found = self._asked()
        self._asked_at = -math.inf
        self._is_answered = asyncio.Event()
        self._is_answered.set()
        self._thread = Pool(1, "credentials")
        """Its own: a chain that hangs takes no common thread, and delays no stop."""

    @property
    def are_there(self) -> bool:
        return self._found is not None

    @property
    def must_be_renewed(self) -> bool:
        """Return whether `get_frozen_credentials` blocks until somebody has renewed them."""
        return isinstance(self._found, RefreshableCredentials) and self._found.refresh_needed()

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        """Return what to sign with now. Raises `BotoCoreError`: `NoCredentialsError` if there is nothing."""
        if self._found is None:
            raise NoCredentialsError
        found: ReadOnlyCredentials = _told(self._found.get_frozen_credentials)
        return found

    def load_credentials(self) -> ChainCredentials:
        """Return these: a session of botocore asks its component for credentials in this way."""
        return self

    def close(self) -> None:
        self._thread.close()

    async def have_changed(self, refused: ReadOnlyCredentials | None) -> bool:
        """Return whether there are others than those that were refused. None: there were none."""
        now = time.monotonic()
        if self.known == refused:
            if self._is_answered.is_set() and now >= self._asked_at + ASK_SECONDS:
                self._asked_at = now
                self._is_answered.clear()
                self._thread.start(self._ask, self._is_answered.set)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._asked_at + ANSWER_SECONDS - now):
                    await self._is_answered.wait()
        return self.known not in (refused, None)

    @property
    def known(self) -> ReadOnlyCredentials | None:
        """Return what to sign with, None if that has to be found out."""
        return self.get_frozen_credentials() if self.are_there and not self.must_be_renewed else None

    def _ask(self) -> None:
        try:
            found = self._asked()
            if found is not None:
                _told(found.get_frozen_credentials)  # a role is asked for only by this
        except BotoCoreError as error:  # a file that is being written, a role that nobody gives now
            log.warning("credentials could not be read again, the former ones stay in use: %s", error)
            return
        self._found = found or self._found

    def _asked(self) -> Credentials | None:
        session = botocore.session.Session(profile=self._profile)
        if self._region is not None:
            session.set_config_variable("region", self._region)
        return _told(session.get_credentials)


def _told(ask: Callable[[], T]) -> T:
    """Return what the chain tells. Raises `BotoCoreError` only."""
    try:
        return ask()
    except _FAILURES as error:
        raise CredentialRetrievalError(provider="the AWS configuration", error_msg=str(error)) from error
