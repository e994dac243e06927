"""The audit log: who did what, to what, from where, with which outcome. Nothing changes without a line."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import re
import socket
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from overspill.wire import Code, Header, Scope, State
from overspill_service.access import directory_of
from overspill_service.archive.captures import Captures
from overspill_service.archive.recovery.rebuild import rebuild
from overspill_service.audit.events import Action, Event, Outcome
from overspill_service.audit.log import MAX_FAILURES, MAX_WAITING, AuditLog
from overspill_service.audit.outputs import FileOutput, SyslogStream, open_output
from overspill_service.back_ends import open_archive
from overspill_service.catalog.records import Entry
from overspill_service.command_line import main
from overspill_service.errors import AuditUnavailable
from overspill_service.maintenance import Maintenance
from overspill_service.settings.errors import SettingError
from overspill_service.settings.sources import load
from overspill_service.tenants.directory import Tenant
from overspill_service.tenants.keys import hash_key, new_key
from overspill_service.web.registry import PUBLIC
from overspill_service.web.routes import ROUTES

from tests.faults.traffic import advance
from tests.web.conftest import Api, id_of, path_of, problem
from tests.web.test_bound_keys import Keys

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

LOG = b"evidence\n"
NOT_WRITTEN = {
    "POST /v1/observations",
    "POST /v1/captures/{ref}/append",
    "GET /v1/usage",
    "GET /v1/stats",
    "GET /v1/admin/stats",
    "GET /v1/overview",
    "GET /v1/admin/overview",
    "GET /v1/experiments",
    "GET /v1/page/session",
    "GET /metrics",
}
"""Routes of figures, and appends: of a live capture its beginning and its end are written."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again at once what has failed."""
    monkeypatch.setattr("overspill_service.audit.log.RETRY_SECONDS", 0.0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "audit.json"


@pytest.fixture
async def api(start_api: Callable[..., Any], file: Path) -> Api:
    started: Api = await start_api(audit_log=str(file))
    return started


def lines(file: Path) -> list[dict[str, Any]]:
    text = file.read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text[:-1].split("\n")]


def short(line: dict[str, Any]) -> tuple[str, str]:
    return line["event"]["action"], line["event"]["outcome"]


def test_every_route_that_needs_a_key_has_a_name_in_the_audit_log() -> None:
    needing = [route for route in ROUTES if route.scope is not PUBLIC]

    assert {route.name for route in needing if route.action is None} == NOT_WRITTEN
    assert {route.name for route in needing if route.action and route.action.is_read} == {
        route.name for route in needing if route.method == "GET"
    } - NOT_WRITTEN


async def test_a_line_says_who_did_what_to_what_and_what_became_of_it(api: Api, file: Path) -> None:
    key = await Keys(api).key(Scope.WRITE, Scope.DELETE, Scope.READ)
    stored = await api.put(LOG, Overspill_Session="s", **key)
    await api.send("DELETE", f"/v1/captures/{stored.id}", headers=key | {"Overspill-Request-Id": "mine"})
    written, removed = lines(file)

    assert short(written) == ("capture.store", "success")
    assert removed == {
        "@timestamp": removed["@timestamp"],
        "ecs": {"version": "8.17"},
        "service": {"name": "overspill-service"},
        "process": {"pid": os.getpid()},
        "event": {
            "kind": "event",
            "dataset": "overspill.audit",
            "category": ["file"],
            "type": ["deletion"],
            "action": "capture.delete",
            "outcome": "success",
        },
        "organization": {"id": "default"},
        "user": {"id": (await api.service.archive.keyring.keys())[0].id},
        "source": {"address": "127.0.0.1"},
        "http": {
            "request": {"id": removed["http"]["request"]["id"], "method": "DELETE"},
            "response": {"status_code": 200},
        },
        "url": {"path": "/v1/captures/{ref}"},
        "overspill": {"capture": stored.id, "captures": 1, "stored_size": stored.stored_size},
    }
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", removed["@timestamp"])
    assert file.stat().st_mode & 0o777 == 0o600


async def test_what_is_refused_and_what_fails_is_written_too(api: Api, file: Path) -> None:
    keys = Keys(api)
    reader = await keys.key(Scope.READ)
    unknown = {"Authorization": f"Bearer {new_key()}"}
    await keys.send("DELETE", path_of(LOG), unknown)
    await keys.send("GET", path_of(LOG), unknown)
    await keys.send("DELETE", path_of(LOG), reader)
    await keys.send("DELETE", path_of(LOG), await keys.key(Scope.DELETE))
    told = [
        (*short(each), each["error"]["code"], "denied" in each["event"]["type"], "user" in each)
        for each in lines(file)
    ]

    assert told == [
        ("capture.delete", "failure", "unauthorized", True, False),
        ("capture.read", "failure", "unauthorized", True, False),
        ("capture.delete", "failure", "forbidden", True, True),
        ("capture.delete", "failure", "not_found", False, True),
    ]


async def test_a_refused_request_is_written_with_its_tenant_and_with_what_it_was_about(
    api: Api, file: Path
) -> None:
    keys = Keys(api)
    reader, admin = await keys.key(Scope.READ), await keys.key(Scope.ADMIN)
    page = {"Origin": "https://evil.example"}
    await keys.send("DELETE", path_of(LOG), reader)
    await keys.send("DELETE", "/v1/captures/call:c%201", reader)
    await keys.send("DELETE", "/v1/sessions/s%2F1", reader)
    await keys.send("DELETE", "/v1/keys/0123", admin)
    await keys.send("DELETE", f"/v1/keys/{new_key()}", admin)
    await keys.send("DELETE", path_of(LOG), admin, headers=page)
    await keys.send("DELETE", "/v1/sessions/%ED%A0%80" + "x" * 7000, {})
    *known, foreign, unknown = lines(file)

    assert {each["organization"]["id"] for each in known} == {"default"}
    assert [each["overspill"] for each in (*known, foreign)] == [
        {"capture": id_of(LOG)},
        {"ref": "call:c 1"},
        {"session": "s/1"},
        {"api_key": "0123"},
        {"api_key": "ovs_***"},
        {"capture": id_of(LOG)},
    ]
    assert (short(foreign), foreign["error"]["code"]) == (("capture.delete", "failure"), "foreign_origin")
    assert len(unknown["overspill"]["session"]) <= 256


async def test_reads_are_written_for_tenants_that_want_them(
    start_api: Callable[..., Any], file: Path, tmp_path: Path
) -> None:
    watched, usual = new_key(), new_key()
    tenants = tmp_path / "tenants.toml"
    tenants.write_text(
        f'[[tenants]]\nname = "watched"\naudit_reads = true\n'
        f'keys = [{{hash = "{hash_key(watched)}", scopes = ["read", "write"]}}]\n'
        f'[[tenants]]\nname = "usual"\nkeys = [{{hash = "{hash_key(usual)}", scopes = ["read", "write"]}}]\n'
    )
    api: Api = await start_api(audit_log=str(file), tenants=tenants)
    for key in (watched, usual):
        headers = {"Authorization": f"Bearer {key}"}
        await api.put(LOG, **headers)
        for path in ("/content", "/head", "/grep?pattern=e", "/summary", ""):
            await api.send("GET", path_of(LOG) + path, headers=headers)
        await api.send("GET", "/v1/captures", headers=headers)
    actions = [(each["organization"]["id"], each["event"]["action"]) for each in lines(file)]

    assert actions == [
        ("watched", "capture.store"),
        *[("watched", "capture.read")] * 5,
        ("watched", "capture.list"),
        ("usual", "capture.store"),
    ]


async def test_hostile_names_cannot_forge_a_line(api: Api, file: Path) -> None:
    session = '"}\n{"event":{"action":"forged"}}\u2028\r\x9b2J\u202e'
    answer = await api.send("DELETE", f"/v1/sessions/{quote(session)}")
    assert answer.status == 200, await answer.text()
    (line,) = lines(file)

    assert line["overspill"] == {"session": session, "captures": 0, "stored_size": 0}
    assert file.read_text().removesuffix("\n").isprintable()
    assert line["event"]["action"] == "session.delete"


async def test_keys_are_never_in_a_line(api: Api, file: Path) -> None:
    made = await (await api.send("POST", "/v1/keys", json={"scopes": ["read", "admin"]})).json()
    headers = {"Authorization": f"Bearer {made['key']}", Header.REQUEST_ID: made["key"]}
    path = f"/v1/keys/{made['about']['id']}/rotate"
    second = await (await api.send("POST", path, json={}, headers=headers)).json()
    await api.send("DELETE", f"/v1/keys/{made['about']['id']}", headers=headers)
    created, rotated, revoked = lines(file)

    assert [short(each) for each in (created, rotated, revoked)] == [
        ("key.create", "success"),
        ("key.rotate", "success"),
        ("key.revoke", "success"),
    ]
    assert rotated["overspill"] == {"api_key": made["about"]["id"], "new_api_key": second["about"]["id"]}
    assert created["overspill"]["api_key"] == revoked["overspill"]["api_key"] == made["about"]["id"]
    assert created["event"]["category"] == ["iam"]
    assert made["key"] not in file.read_text(encoding="utf-8")


async def test_nothing_changes_while_the_log_cannot_be_written(
    api: Api, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.put(LOG)
    is_full = [True]
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        if is_full[0] and b"overspill.audit" in data:
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    told_late = await api.send("DELETE", path_of(LOG))
    refused = await api.send("PUT", path_of(b"other"), data=b"other", headers={"Overspill-Call-Id": "call_0"})
    read = await api.get("/v1/captures")
    is_full[0] = False
    again = await api.send("PUT", path_of(b"other"), data=b"other", headers={"Overspill-Call-Id": "call_0"})

    assert (told_late.status, read.status, again.status) == (200, 200, 201)
    assert (refused.status, (await problem(refused)).code) == (503, Code.AUDIT_UNAVAILABLE)
    assert refused.headers["Retry-After"]
    assert [short(each) for each in lines(file)] == [
        ("capture.store", "success"),
        ("capture.delete", "success"),
        ("capture.store", "failure"),
        ("capture.store", "success"),
    ]


async def test_what_expires_by_itself_has_a_line_each(api: Api, file: Path) -> None:
    kept, first, second = (
        await api.put(LOG),
        await api.put(b"1", "c1", Overspill_Ttl="60", Overspill_Session="s"),
        await api.put(b"2", "c2", Overspill_Ttl="60"),
    )
    advance([api], 61)
    await Maintenance(api.service).sweep_once()
    expired = [each for each in lines(file) if each["event"]["action"] == "capture.expire"]
    about = {each["overspill"]["capture"]: each for each in expired}

    assert set(about) == {first.id, second.id} - {kept.id}
    assert about[first.id]["user"] == {"id": "service"}
    assert about[first.id]["organization"] == {"id": "default"}
    assert about[first.id]["event"]["type"] == ["deletion"]
    assert about[first.id]["overspill"] == {
        "capture": first.id,
        "session": "s",
        "stored_size": first.stored_size,
        "expires": first.expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


async def test_captures_expire_while_the_log_cannot_be_written_and_their_lines_wait(
    api: Api, file: Path
) -> None:
    expiring = await api.put(LOG, Overspill_Ttl="60")
    kept = file.rename(file.with_suffix(".1"))
    file.mkdir()
    advance([api], 61)
    await Maintenance(api.service).sweep_once()
    gone = await api.get(path_of(LOG))
    file.rmdir()
    await api.put(b"other", "c1")

    assert gone.status == 410
    assert [short(each) for each in lines(kept)] == [("capture.store", "success")]
    assert [short(each) for each in lines(file)] == [
        ("capture.expire", "success"),
        ("capture.store", "success"),
    ]
    assert lines(file)[0]["overspill"]["capture"] == expiring.id


async def test_a_capture_that_has_lost_its_objects_has_a_line(api: Api, file: Path) -> None:
    lost = await api.put(LOG)
    archive = api.service.archive
    entry = await archive.catalog.get("default", lost.id)
    assert isinstance(entry, Entry)
    await archive.store.delete(entry.keys)
    await rebuild(archive)

    assert [short(each) for each in lines(file)] == [
        ("capture.store", "success"),
        ("capture.drop", "success"),
    ]


def test_a_sweep_by_command_has_a_line_for_each_capture_between_its_own(file: Path, tmp_path: Path) -> None:
    folder = ["--store", f"file://{tmp_path}/objects", "--catalog", f"sqlite://{tmp_path}/catalog.db"]
    options = [*folder, "--audit-log", str(file)]

    async def stored() -> None:
        settings = load({"store": folder[1], "catalog": folder[3]}, {})
        async with open_archive(settings) as archive:
            tenant = Tenant(name="acme", limits=directory_of(settings).tenant("acme").limits)
            entry = Entry(
                tenant="acme",
                id=id_of(LOG),
                upload="a" * 16,
                state=State.COMPLETE,
                size=0,
                lines=0,
                sha256=b"",
                content_type="text/plain",
                kind="text",
                created=archive.clock() - 60,
                expires=archive.clock() - 1,
                segments=[],
            )
            await archive.catalog.commit(entry, Captures(archive, tenant).quota)

    asyncio.run(stored())
    assert main(["sweep", *options]) == 0
    assert [short(each) for each in lines(file)] == [
        ("sweep", "unknown"),
        ("capture.expire", "success"),
        ("sweep", "success"),
    ]


async def test_a_file_that_is_rotated_is_made_again(api: Api, file: Path) -> None:
    await api.put(LOG)
    file.rename(file.with_suffix(".1"))
    await api.put(b"other", "c1")

    assert [len(lines(each)) for each in (file.with_suffix(".1"), file)] == [1, 1]


async def test_many_requests_at_once_write_whole_lines(api: Api, file: Path) -> None:
    await asyncio.gather(*(api.put(b"%d" % number, f"c{number}") for number in range(200)))

    assert len({each["overspill"]["capture"] for each in lines(file)}) == 200


def event() -> Event:
    return Event(action=Action.CAPTURE_DELETE, outcome=Outcome.SUCCESS, tenant="t", status=200)


async def test_lines_that_come_together_are_written_together() -> None:
    batches: list[int] = []
    begun, may_end = threading.Event(), threading.Event()

    class Slow:
        def write(self, lines: Sequence[bytes]) -> None:
            batches.append(len(lines))
            begun.set()
            may_end.wait(10)

        def close(self) -> None:
            pass

    log = AuditLog(Slow())
    writing = [asyncio.create_task(log.write(event(), 0))]
    await asyncio.to_thread(begun.wait)
    writing += [asyncio.create_task(log.write(event(), number)) for number in range(50)]
    await asyncio.sleep(0)
    may_end.set()
    await asyncio.gather(*writing)

    assert batches == [1, 50]


async def test_an_output_that_hangs_is_tried_once_for_many_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overspill_service.audit.log.RETRY_SECONDS", 3600.0)
    tries: list[int] = []

    class Hanging:
        def write(self, lines: Sequence[bytes]) -> None:
            tries.append(len(lines))
            raise TimeoutError("timed out")

        def close(self) -> None:
            pass

    log = AuditLog(Hanging())
    for _ in range(3):
        await asyncio.gather(*(log.write(event(), number) for number in range(50)))
        with pytest.raises(AuditUnavailable):
            await log.require_working()
    await log.close()

    assert tries == [50, 150]


async def test_refused_requests_displace_no_change_that_waits_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.audit.log.RETRY_SECONDS", 3600.0)
    path = tmp_path / "a"
    path.mkdir()
    log = AuditLog(FileOutput(path))
    refused = Event(action=Action.CAPTURE_DELETE, outcome=Outcome.FAILURE)
    for number in range(MAX_WAITING + 10):
        await log.write(refused, number)
    for number in range(100):
        await log.write(event(), number)
    path.rmdir()
    await log.close()
    outcomes = [each["event"]["outcome"] for each in lines(path)]

    assert (outcomes.count("failure"), outcomes.count("success")) == (MAX_FAILURES, 100)


@pytest.mark.parametrize("other", [FileOutput, open])
def test_a_line_that_another_process_left_torn_spoils_no_other(tmp_path: Path, other: Any) -> None:
    path = tmp_path / "a"
    FileOutput(path).write([b"one\n"])
    if other is open:
        with path.open("ab") as file:
            file.write(b"to")
    else:
        write = os.write
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:2]))
            with pytest.raises(OSError, match="only 2"):
                FileOutput(path).write([b"torn\n"])
    FileOutput(path).write([])
    FileOutput(path).write([b"three\n"])

    assert path.read_bytes() == b"one\nto\nthree\n"


def test_a_pipe_that_nobody_reads_takes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OSError, match=r".+"):
        FileOutput(path).write([b"one\n"])
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    FileOutput(path).write([b"one\n"])

    assert os.read(reader, 100) == b"one\n"
    os.close(reader)


async def test_lines_that_were_cut_short_leave_the_others_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None that is there whole comes twice."""
    monkeypatch.setattr("overspill_service.audit.log.RETRY_SECONDS", 3600.0)
    write, size = os.write, len(event().line(0))
    log = AuditLog(FileOutput(tmp_path / "a"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[: size + 40]))
        await asyncio.gather(*(log.write(event(), second) for second in range(3)))
    await log.close()
    first, torn, *others = (tmp_path / "a").read_text().splitlines()

    assert len(torn) == 40
    assert [json.loads(each)["@timestamp"][17:19] for each in (first, *others)] == ["00", "01", "02"]


def test_syslog_gets_framed_messages_and_is_reached_again(tmp_path: Path) -> None:
    """Messages of RFC 5424, behind their lengths (RFC 6587)."""
    line = event().line(0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        output = open_output(f"syslog://127.0.0.1:{server.getsockname()[1]}")
        assert isinstance(output, SyslogStream)
        for _ in range(2):
            output.write([line, line])
            connection, _ = server.accept()
            with connection:
                received = b""
                while received.count(b"overspill.audit") < 2:
                    received += connection.recv(65536)
            length, _, rest = received.partition(b" ")
            message = rest[: int(length)]
            head = rb"<109>1 \S+Z \S+ overspill-service \d+ audit - "
            assert re.match(head, message)
            assert json.loads(re.sub(head, b"", message)) == json.loads(line)
            assert rest[int(length) :].startswith(length + b" <109>1 ")
    with pytest.raises(OSError, match=r".+"):
        output.write([line])
    output.close()


def test_syslog_on_this_machine_gets_a_datagram_for_each_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.bind(str(path))
        daemon.settimeout(10)
        open_output(f"syslog:{path}").write([event().line(0)] * 2)
        received = [daemon.recv(65536) for _ in range(2)]

    head = rb"<109>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d overspill-service\[\d+\]: "
    assert {json.loads(re.sub(head, b"", each))["service"]["name"] for each in received} == {
        "overspill-service"
    }
    assert all(re.match(head, each) and not each.endswith(b"\n") for each in received)


@pytest.mark.parametrize("given", ["/dev/null/audit", "/", "syslog://host/path", "syslog://a:b@h"])
async def test_an_output_that_cannot_be_used_is_said_at_the_start(
    given: str, start_api: Callable[..., Any]
) -> None:
    with pytest.raises(SettingError, match="audit_log"):
        await start_api(audit_log=given)


def own_name() -> str:
    """The name of the user who runs the tests, or the number if there is none, as in some containers."""
    names = {each.pw_uid: each.pw_name for each in pwd.getpwall()}
    return names.get(os.getuid(), str(os.getuid()))


def test_commands_are_written_with_the_user_who_ran_them(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("overspill_service.telemetry.logs.configure", lambda *_: None)
    monkeypatch.setenv("LOGNAME", "somebody else")
    common = ["--data", str(tmp_path / "data"), "--audit-log", str(file)]
    for words in (
        ["rebuild"],
        ["keys", "create", "--tenant", "acme"],
        ["keys", "list"],
        ["access"],
        ["erase", "--tenant", "acme"],
    ):
        assert main([*words, *common]) == 0
    written = lines(file)
    begun, ended = written[::2], written[1::2]
    created = ended[1]

    assert [short(each) for each in begun] == [
        ("catalog.rebuild", "unknown"),
        ("key.create", "unknown"),
        ("tenant.erase", "unknown"),
    ]
    assert [short(each) for each in ended] == [(short(each)[0], "success") for each in begun]
    assert {each["event"]["type"][-1] for each in begun} == {"start"}
    assert {each["event"]["type"][-1] for each in ended} == {"end"}
    assert {each["user"]["id"] for each in written} == {own_name()}
    key = created["overspill"].pop("api_key")
    assert created["overspill"] == {"command": "keys create", "scopes": "write,read,observe"}
    assert ended[2]["overspill"] == {
        "command": "erase",
        "api_keys": 1,
        "captures": 0,
        "stored_size": 0,
        "held": 0,
    }
    assert re.fullmatch("[0-9a-f]{12}", key)
    assert "ovs_" in capsys.readouterr().out
    assert "ovs_" not in file.read_text()


def test_a_key_in_the_place_of_its_id_is_not_in_the_line_of_the_command(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("overspill_service.telemetry.logs.configure", lambda *_: None)
    common = ["--data", str(tmp_path / "data"), "--audit-log", str(file)]
    assert main(["keys", "create", "--tenant", "acme", *common]) == 0
    key = capsys.readouterr().out.strip()
    for command in ("revoke", "rotate"):
        assert main(["keys", command, key, *common]) == 1

    assert key not in file.read_text() + capsys.readouterr().err


def test_a_command_does_nothing_if_its_line_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("overspill_service.telemetry.logs.configure", lambda *_: None)
    with socket.create_server(("127.0.0.1", 0)) as server:
        nobody = f"syslog://127.0.0.1:{server.getsockname()[1]}"
    common = ["--data", str(tmp_path / "data"), "--audit-log", nobody]
    assert main(["keys", "create", "--tenant", "acme", *common]) == 1
    assert "audit log" in capsys.readouterr().err
    assert main(["keys", "list", *common]) == 0

    assert "acme" not in capsys.readouterr().out


async def test_a_service_whose_syslog_is_away_serves_reads_and_changes_nothing(
    start_api: Callable[..., Any],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    api: Api = await start_api(audit_log=f"syslog://127.0.0.1:{address[1]}")
    key = {"Overspill-Call-Id": "call_0"}
    refused = await api.send("PUT", path_of(LOG), data=LOG, headers=key)
    read = await api.get("/v1/captures")
    with socket.create_server(address):
        stored = await api.send("PUT", path_of(LOG), data=LOG, headers=key)

    assert (refused.status, (await problem(refused)).code) == (503, Code.AUDIT_UNAVAILABLE)
    assert (read.status, stored.status) == (200, 201)
