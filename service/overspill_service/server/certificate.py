"""The certificate of the service: read from files, tested, and read again when the files change."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import stat
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from overspill_service.access import stamp_of
from overspill_service.resources.attempts import Attempts
from overspill_service.settings.errors import SettingError
from overspill_service.telemetry import logs

if TYPE_CHECKING:
    from pathlib import Path

    from overspill_service.settings.settings import Settings

POLL_SECONDS: Final = 5.0
"""How often the files are looked at."""
PROOF_ROUNDS: Final = 4
"""Turns of both ends until a handshake has ended: TLS 1.2 needs the most."""
WARNING_TIME: Final = timedelta(days=7)
"""Seconds before a certificate's end when a warning is logged.

For short-lived ones it is their last quarter.
"""
NOT_FOR_GROUP: Final = stat.S_IWGRP | stat.S_IXGRP | stat.S_IRWXO
NOT_FOR_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO

log = logging.getLogger("overspill_service.start")


class Validity(NamedTuple):
    """The time from which, and the time until which, a certificate is valid."""

    begins: datetime
    ends: datetime

    def warning(self, now: datetime) -> str:
        """Return a warning for the operator. Empty while the certificate is valid for long enough."""
        if now >= self.ends:
            return "has expired: clients refuse it, and the service would not start with it"
        is_late = self.ends - now <= min(WARNING_TIME, (self.ends - self.begins) / 4)
        return "expires soon" if is_late else ""

    def __str__(self) -> str:
        return self.ends.isoformat(timespec="seconds")


class Certificate:
    """The service's certificate with its private key. `context` is for the next connection."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Raises `SettingError` if the files cannot be used, or the certificate has expired."""
        self._certificate, self._key = certificate, key
        self._stamp = self._stamps()
        self.context, self.validity = read_certificate(certificate, key)
        self._warning = ""

    async def reread(self) -> None:
        """Use what the files hold from the next connection on.

        Raises `SettingError`; then nothing has changed.
        """
        self._stamp = await asyncio.to_thread(self._stamps)
        self.context, self.validity = await asyncio.to_thread(read_certificate, self._certificate, self._key)

    async def reread_if_changed(self) -> None:
        """Read the files again if they have changed. A mistake in them is reported, and changes nothing."""
        if await asyncio.to_thread(self._stamps) == self._stamp:
            return
        try:
            await self.reread()
        except SettingError as error:
            log.error("the changed certificate is wrong, and the former one stays in use: %s", error)  # noqa: TRY400  (no traceback for a wrong file)
        else:
            log.info("the certificate has changed and is in use", extra=self._fields)

    def warn_once(self, now: datetime) -> None:
        """Log once that the certificate expires soon, and once that it has expired."""
        previous, self._warning = self._warning, self.validity.warning(now)
        if self._warning not in ("", previous):
            log.warning("the certificate %s; replace its files", self._warning, extra=self._fields)

    @property
    def _fields(self) -> dict[str, Any]:
        return logs.fields(expires=str(self.validity))

    def _stamps(self) -> tuple[tuple[int, ...], ...]:
        return stamp_of(self._certificate), stamp_of(self._key)


def certificate_of(settings: Settings) -> Certificate | None:
    """Return the certificate of the settings, None for plain HTTP. Raises `SettingError`."""
    if settings.tls_certificate is None:
        if settings.tls_key is not None:
            raise SettingError("tls_key is set, and tls_certificate is not: name the certificate's file too")
        return None
    return Certificate(settings.tls_certificate, settings.tls_key or settings.tls_certificate)


async def run_rereads(certificate: Certificate) -> None:
    """Read the files again whenever they change, until cancelled."""
    attempts = Attempts(log)
    while True:
        await asyncio.sleep(POLL_SECONDS)
        await attempts.make("reading the certificate", certificate.reread_if_changed())
        certificate.warn_once(datetime.now(UTC))


def read_certificate(certificate: Path, key: Path) -> tuple[ssl.SSLContext, Validity]:
    """Return the context of connections that show the certificate, and when it is valid.

    Raises `SettingError` that says what is wrong with which file.
    """
    try:
        _require_readable("tls_certificate", certificate)
        _require_private(key)
        return _context_of(certificate, key)
    except ssl.SSLError as error:
        raise SettingError(_reason(error, certificate, key)) from error
    except OSError as error:  # it has just been replaced
        raise SettingError(f"tls_certificate: {certificate} with {key}: {error.strerror}") from error


def _context_of(certificate: Path, key: Path) -> tuple[ssl.SSLContext, Validity]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(certificate, key, password=lambda: _refuse_passphrase(key))
    return context, _proved_validity(context, certificate)


def _require_readable(setting: str, file: Path) -> None:
    try:
        os.close(os.open(file, os.O_RDONLY | os.O_NONBLOCK))  # a pipe would wait for a writer
        is_file = file.is_file()
    except OSError as error:
        raise SettingError(f"{setting}: {file} cannot be read: {error.strerror}") from error
    if not is_file:
        raise SettingError(f"{setting}: {file} is not a file")


def _require_private(key: Path) -> None:
    """Raise `SettingError` if others may read the key. The group may if the superuser owns the file."""
    _require_readable("tls_key", key)
    status = key.stat()
    if status.st_uid not in {os.geteuid(), 0}:
        raise SettingError(f"tls_key: {key} belongs to another user, who can read it: chown it")
    forbidden = NOT_FOR_OTHERS if status.st_uid == os.geteuid() else NOT_FOR_GROUP
    if status.st_mode & forbidden:
        mode = stat.S_IMODE(status.st_mode)
        raise SettingError(f"tls_key: others can read {key} (its mode is {mode:04o}): chmod 600 it")


def _refuse_passphrase(key: Path) -> str:
    """Raise an error: OpenSSL would ask for a passphrase at the terminal."""
    raise SettingError(f"tls_key: {key} has a passphrase, which nobody could give: store it without one")


def _reason(error: ssl.SSLError, certificate: Path, key: Path) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"tls_key: {key} is not the key of the certificate in {certificate}"
    if error.reason == "NO_START_LINE" or not error.reason:
        return f"tls_certificate: {certificate} and {key} must hold a certificate and its key, as PEM"
    return (
        f"tls_certificate: {certificate} with {key} cannot be used: {error.reason.lower().replace('_', ' ')}"
    )


def _proved_validity(server: ssl.SSLContext, certificate: Path) -> Validity:
    """Connect in memory as a client that trusts this very certificate. Return when it is valid.

    Raises `SettingError` if the client refuses it: it has expired, is not valid yet, or is not for servers.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(certificate)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking, answering = client.wrap_bio(down, up), server.wrap_bio(up, down, server_side=True)
    try:
        for _ in range(PROOF_ROUNDS):
            for end in (asking, answering):
                with suppress(ssl.SSLWantReadError):
                    end.do_handshake()
    except ssl.SSLCertVerificationError as error:
        raise SettingError(f"tls_certificate: {certificate}: {error.verify_message}") from error
    facts = asking.getpeercert() or {}
    instants = (ssl.cert_time_to_seconds(str(facts[name])) for name in ("notBefore", "notAfter"))
    return Validity(*(datetime.fromtimestamp(each, UTC) for each in instants))
