"""A service that speaks https: its files, what it refuses, and a certificate that changes under it."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import socket
import ssl
import warnings
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import trustme
from overspill_service.server.certificate import Certificate, read_certificate, run_rereads
from overspill_service.settings.errors import SettingError

from tests.client.shell import Shell
from tests.faults.traffic import MIB, noise, until
from tests.servers.overspill import service_command
from tests.web.conftest import path_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.conftest import StartServices
    from tests.servers.overspill import ServiceProcess

CONTENT = noise(MIB)


class Files:
    """A certificate and its key, issued by an authority of the test."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.certificate, self.key = folder / "service.pem", folder / "service.key"
        self.bundle = folder / "authority.pem"
        self.authority.cert_pem.write_to_path(str(self.bundle))
        self.issue()

    def issue(self, **options: Any) -> str:
        """Write a new certificate. Return it."""
        issued = self.authority.issue_cert("127.0.0.1", **options)
        self.key.touch(0o600)
        self.key.write_bytes(issued.private_key_pem.bytes())
        self.certificate.write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
        return self.written()

    def written(self) -> str:
        return self.certificate.read_text()

    @property
    def settings(self) -> dict[str, Any]:
        return {"tls_certificate": self.certificate, "tls_key": self.key}

    def client(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.bundle))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def shown(service: ServiceProcess, context: ssl.SSLContext) -> str:
    """The certificate that a new connection is shown, as the file has it."""
    host, port = service.url.removeprefix("https://").split(":")
    with (
        socket.create_connection((host, int(port)), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname=host) as connection,
    ):
        der = connection.getpeercert(binary_form=True)
        assert der is not None
        return ssl.DER_cert_to_PEM_cert(der)


async def until_logged(service: ServiceProcess, words: str, times: int = 1) -> None:
    async def is_there() -> bool:
        return service.logged().count(words) >= times

    await until(is_there)


async def test_a_client_that_does_not_trust_the_certificate_is_told_so_and_what_to_do(
    start_services: StartServices, files: Files
) -> None:
    (service,) = await asyncio.to_thread(start_services, **files.settings)
    result = await asyncio.to_thread(Shell(service.url), "usage")

    assert result.code == 5
    assert "its certificate is not trusted: " in result.err
    assert result.err.endswith("; name the file of its authority in SSL_CERT_FILE\n")


@pytest.mark.parametrize("workers", [1, 2])
async def test_the_service_speaks_https_and_says_so(
    start_services: StartServices, files: Files, workers: int
) -> None:
    (service,) = await asyncio.to_thread(start_services, workers=workers, **files.settings)

    assert service.url.startswith("https://127.0.0.1:")
    connector = aiohttp.TCPConnector(ssl=files.client())
    async with aiohttp.ClientSession(service.url, connector=connector) as session:
        async with session.put(path_of(CONTENT), data=CONTENT) as response:
            assert response.status == 201, await response.text()
        async with session.get(path_of(CONTENT) + "/content") as response:
            assert await response.read() == CONTENT
    assert f"url={service.url}" in service.logged()
    assert "certificate_expires=" in service.logged()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_only_versions_of_tls_that_are_safe_are_spoken(
    start_services: StartServices, files: Files, version: ssl.TLSVersion
) -> None:
    (service,) = await asyncio.to_thread(start_services, **files.settings)
    context = files.client()
    context.set_ciphers("DEFAULT@SECLEVEL=0")  # or this client would not offer the old version
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = version

    if version is ssl.TLSVersion.TLSv1_1:
        with pytest.raises(ssl.SSLError):
            await asyncio.to_thread(shown, service, context)
    else:
        assert await asyncio.to_thread(shown, service, context) in files.written()


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_renewed_certificate_is_shown_within_seconds_and_running_requests_go_on(
    start_services: StartServices, files: Files, workers: int
) -> None:
    (service,) = await asyncio.to_thread(start_services, workers=workers, **files.settings)
    go_on = asyncio.Event()

    async def body() -> Any:
        yield CONTENT[: MIB // 2]
        await go_on.wait()
        yield CONTENT[MIB // 2 :]

    connector = aiohttp.TCPConnector(ssl=files.client())
    async with aiohttp.ClientSession(service.url, connector=connector) as session:
        upload = asyncio.create_task(session.put(path_of(CONTENT), data=body()))
        files.issue()
        await until_logged(service, "the certificate has changed and is in use", workers)
        seen = {await asyncio.to_thread(shown, service, files.client()) for _ in range(8)}
        go_on.set()
        async with await upload as response:
            assert response.status == 201

    assert [each for each in seen if each not in files.written()] == []


async def test_sighup_reads_the_certificate_at_once_and_a_wrong_one_changes_nothing(
    start_services: StartServices, files: Files
) -> None:
    (service,) = await asyncio.to_thread(start_services, **files.settings)
    files.issue()
    os.kill(service.pid, signal.SIGHUP)
    await until_logged(service, "reloaded")
    before = await asyncio.to_thread(shown, service, files.client())
    files.certificate.write_text("no certificate")
    os.kill(service.pid, signal.SIGHUP)
    await until_logged(service, "must hold a certificate and its key")

    assert await asyncio.to_thread(shown, service, files.client()) == before


async def test_a_client_that_never_shakes_hands_keeps_nobody_waiting(
    start_services: StartServices, files: Files
) -> None:
    (service,) = await asyncio.to_thread(start_services, **files.settings)
    host, port = service.url.removeprefix("https://").split(":")
    with ExitStack() as stack:
        for _ in range(20):
            silent = stack.enter_context(socket.create_connection((host, int(port))))
        silent.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")

        assert await asyncio.to_thread(shown, service, files.client()) in files.written()


# --- files that cannot be used --------------------------------------------------------------------


def refusal(files: Files) -> str:
    with pytest.raises(SettingError) as raised:
        read_certificate(files.certificate, files.key)
    return str(raised.value)


def test_a_missing_file_is_named(files: Files) -> None:
    files.key.unlink()

    assert refusal(files) == f"tls_key: {files.key} cannot be read: No such file or directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser can read every file")
def test_an_unreadable_file_is_named(files: Files) -> None:
    files.certificate.chmod(0)

    assert refusal(files) == f"tls_certificate: {files.certificate} cannot be read: Permission denied"


def test_a_folder_is_no_certificate(files: Files) -> None:
    files.certificate.unlink()
    files.certificate.mkdir()

    assert refusal(files) == f"tls_certificate: {files.certificate} is not a file"


def test_what_is_no_certificate_behind_one_is_refused(files: Files) -> None:
    revoked = b"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"
    files.certificate.write_bytes(files.certificate.read_bytes() + revoked)

    assert "must hold a certificate and its key, as PEM" in refusal(files)


@pytest.mark.parametrize("name", ["certificate", "key"])
def test_a_pipe_is_no_certificate_and_nobody_waits_for_its_end(files: Files, name: str) -> None:
    file: Path = getattr(files, name)
    file.unlink()
    os.mkfifo(file, 0o600)

    assert refusal(files) == f"tls_{name}: {file} is not a file"


async def test_a_certificate_that_fails_unexpectedly_is_read_again_after_its_next_change(
    files: Files, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("overspill_service.server.certificate.POLL_SECONDS", 0.01)
    certificate = Certificate(files.certificate, files.key)
    rereading = asyncio.create_task(run_rereads(certificate))
    first = certificate.context
    with monkeypatch.context() as patch:
        patch.setattr("overspill_service.server.certificate._context_of", lambda *_: 1 // 0)
        files.issue()
        await until(lambda: asyncio.sleep(0, "failed unexpectedly" in caplog.text))
    files.issue()
    await until(lambda: asyncio.sleep(0, certificate.context is not first))
    rereading.cancel()


def test_another_certificate_s_key_is_refused(files: Files) -> None:
    key = files.key.read_bytes()
    files.issue()
    files.key.write_bytes(key)

    assert refusal(files) == f"tls_key: {files.key} is not the key of the certificate in {files.certificate}"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622])
def test_a_key_that_others_can_read_is_refused(files: Files, mode: int) -> None:
    files.key.chmod(mode)

    assert refusal(files) == f"tls_key: others can read {files.key} (its mode is {mode:04o}): chmod 600 it"


def test_a_key_with_a_passphrase_is_refused_and_nobody_is_asked_for_it(files: Files) -> None:
    from cryptography.hazmat.primitives import serialization as forms  # noqa: PLC0415

    key = forms.load_pem_private_key(files.key.read_bytes(), None)
    encrypted = key.private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.BestAvailableEncryption(b"passphrase")
    )
    files.key.write_bytes(encrypted)

    assert "has a passphrase" in refusal(files)


def test_an_expired_certificate_is_refused(files: Files) -> None:
    files.issue(not_after=datetime.now(UTC) - timedelta(hours=1))

    assert refusal(files) == f"tls_certificate: {files.certificate}: certificate has expired"


def test_a_certificate_and_its_key_may_stand_in_one_file(files: Files) -> None:
    files.key.write_bytes(files.certificate.read_bytes() + files.key.read_bytes())

    _, validity = read_certificate(files.key, files.key)

    assert validity.ends > datetime.now(UTC)


def test_the_end_of_a_certificate_is_warned_of_once_before_it_and_once_after_it(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    end = datetime.now(UTC) + timedelta(days=30)
    files.issue(not_after=end)
    certificate = Certificate(files.certificate, files.key)
    for days in (-8, -6, -5, 0.1, 1):
        certificate.warn_once(end + timedelta(days=days))

    said = [line.getMessage() for line in caplog.records]
    assert ["expires soon" in each for each in said] == [True, False]
    assert "has expired" in said[1]


@pytest.mark.parametrize(("hours", "is_warned_of"), [(7, False), (5, True)])
def test_a_certificate_of_a_day_is_warned_of_in_its_last_quarter(
    files: Files, hours: int, is_warned_of: bool
) -> None:
    end = datetime.now(UTC) + timedelta(days=1)
    files.issue(not_before=end - timedelta(days=1), not_after=end)
    _, validity = read_certificate(files.certificate, files.key)

    assert bool(validity.warning(end - timedelta(hours=hours))) is is_warned_of


async def test_a_renewed_certificate_ends_the_warning_and_the_next_one_is_warned_of_again(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    soon = datetime.now(UTC) + timedelta(days=1)
    files.issue(not_after=soon)
    certificate = Certificate(files.certificate, files.key)
    for ends in (soon, soon + timedelta(days=30), soon):
        files.issue(not_after=ends)
        await certificate.reread()
        certificate.warn_once(datetime.now(UTC))

    assert caplog.text.count("expires soon") == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_a_service_with_a_wrong_certificate_does_not_start(
    files: Files, tmp_path: Path, workers: int
) -> None:
    words = ["--tls-certificate", files.certificate, "--data", tmp_path / "data", "--workers", workers]

    done = service_command("serve", "--listen", "127.0.0.1:0", "--anonymous", "true", *words)

    assert done.returncode == 2
    assert "tls_certificate" in done.stderr or "tls_key" in done.stderr


def test_a_key_without_a_certificate_is_a_mistake(files: Files, tmp_path: Path) -> None:
    done = service_command("serve", "--tls-key", files.key, "--data", tmp_path / "data")

    assert (done.returncode, "tls_certificate is not" in done.stderr) == (2, True)


async def test_a_client_that_takes_nothing_is_cut_off_over_tls_too(
    start_services: StartServices, files: Files
) -> None:
    (service,) = await asyncio.to_thread(start_services, write_timeout=1, **files.settings)
    large = noise(16 * MIB)
    connector = aiohttp.TCPConnector(ssl=files.client())
    async with (
        aiohttp.ClientSession(service.url, connector=connector) as session,
        session.put(path_of(large), data=io.BytesIO(large)) as response,
    ):
        assert response.status == 201

    host, port = service.url.removeprefix("https://").split(":")
    with (
        socket.create_connection((host, int(port))) as plain,
        files.client().wrap_socket(plain, server_hostname=host) as connection,
    ):
        request = f"GET {path_of(large)}/content HTTP/1.1\r\nHost: {host}\r\n\r\n"
        await asyncio.to_thread(connection.sendall, request.encode())

        await until_logged(service, "cut off a client that took nothing")
