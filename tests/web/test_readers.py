"""The readers of a capture: which reads are noted, and who may see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec.structs import replace
from overspill import wire
from overspill.wire import Code, Header, Path, Scope
from overspill_service.archive import reader_notes
from overspill_service.archive.reader_notes import NOTE_SECONDS, ReaderNotes
from overspill_service.archive.sweep import sweep_all
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.readers import ReadNote
from overspill_service.errors import CatalogUnavailable
from overspill_service.tenants.directory import Limits, Principal, Tenant
from overspill_service.tenants.keys import hash_key

from tests.contracts.entries import NOW, entry
from tests.web.conftest import Api, path_of, problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overspill_service.catalog import Catalog

LOG = b"first\nsecond\n"
PAGE = {"Sec-Fetch-Site": "same-origin"}
"""What a browser sends."""
READERS = Path.READERS.replace(Path.CAPTURE, "")


class Key:
    def __init__(self, api: Api, key: str) -> None:
        self._api, self.id = api, hash_key(key)[:12]
        self.headers = {"Authorization": f"Bearer {key}"}

    async def read(self, mode: str = "head", **headers: str) -> None:
        answer = await self._api.get(f"{path_of(LOG)}/{mode}", headers=self.headers | headers)
        assert answer.status == 200


async def key_of(api: Api, *scopes: Scope, **options: Any) -> Key:
    now = api.service.archive.clock()
    return Key(api, (await api.service.issuer.issue("default", scopes, now=now, **options)).key)


async def readers(api: Api, key: Key) -> list[wire.Reader]:
    """Who has read it, once all that was noted is told."""
    await api.service.reader_notes.report()
    answer = await api.get(path_of(LOG) + READERS, headers=key.headers)
    assert answer.status == 200
    return msgspec.json.decode(await answer.read(), type=wire.Readers).readers


async def test_keys_that_read_a_capture_are_told_with_the_times_of_their_reads(api: Api) -> None:
    stored = await api.put(LOG)
    first, second = [await key_of(api, Scope.READ) for _ in range(2)]
    before = await readers(api, first)
    await first.read()
    await second.read("content")
    found = await readers(api, first)

    assert before == []
    assert [(each.name, each.on_page) for each in found] == [(second.id, False), (first.id, False)]
    for each in found:
        assert stored.created <= each.first_read == each.last_read


@pytest.mark.parametrize("mode", ["head", "tail", "lines", "grep?pattern=s", "summary", "content", "wait"])
async def test_every_way_to_read_has_a_reader_and_facts_have_none(api: Api, mode: str) -> None:
    await api.put(LOG)
    key = await key_of(api, Scope.READ)
    for path in ("", "/timeline", READERS):
        await api.get(path_of(LOG) + path, headers=key.headers)
    await api.send("HEAD", path_of(LOG) + "/content", headers=key.headers)
    before = await readers(api, key)
    await key.read(mode)

    assert before == []
    assert [each.name for each in await readers(api, key)] == [key.id]


async def test_who_looks_on_the_page_is_told_apart_and_counts_as_no_read_back(api: Api) -> None:
    await api.put(LOG)
    key = await key_of(api, Scope.READ)
    await key.read(**PAGE)
    found = await readers(api, key)
    await api.service.metrics.write_pending(api.service.archive.catalog, api.service.archive.clock())
    known = await api.get(path_of(LOG), headers=key.headers)

    assert [(each.name, each.on_page) for each in found] == [(key.id, True)]
    assert (await known.json())["first_read"] is None


async def test_where_no_key_is_needed_readers_have_no_name(api: Api) -> None:
    await api.put(LOG)
    await api.get(path_of(LOG) + "/head")
    await api.service.reader_notes.report()
    found = await (await api.get(path_of(LOG) + READERS)).json()

    assert [each["name"] for each in found["readers"]] == [""]


async def test_keys_of_some_sessions_are_not_told_who_reads(api: Api) -> None:
    await api.put(LOG, Overspill_Session="mine")
    await api.put(b"theirs", Overspill_Session="theirs")
    key = await key_of(api, Scope.READ, session="mine")
    answers = [
        await api.get(path_of(content) + READERS, headers=key.headers)
        for content in (LOG, b"theirs", b"never")
    ]

    assert [(each.status, (await problem(each)).code) for each in answers] == [(403, Code.FORBIDDEN)] * 3


async def test_a_follower_is_a_reader_from_the_beginning(api: Api) -> None:
    key = await key_of(api, Scope.READ, Scope.WRITE)
    producer = key.headers | {Header.PRODUCER: "me", Header.UPLOAD_OFFSET: "0"}
    await api.send("PUT", path_of(LOG) + "/live", headers=producer)
    await api.send("POST", path_of(LOG) + "/append", headers=producer, data=LOG)
    follow = api.url(path_of(LOG) + "/follow")
    async with api._session.get(follow, headers=key.headers) as answer:
        await answer.content.readany()
        found = await readers(api, key)
        while not found:
            found = await readers(api, key)

    assert [each.name for each in found] == [key.id]


REMOVALS: dict[str, Callable[[Api, Key], Any]] = {
    "deleted": lambda api, key: api.send("DELETE", path_of(LOG), headers=key.headers),
    "with its session": lambda api, key: api.send("DELETE", "/v1/sessions/mine", headers=key.headers),
    "with its tenant": lambda api, key: api.send(
        "DELETE", "/v1/captures?tenant=default", headers=key.headers
    ),
    "swept": lambda api, _: sweep_all(api.service.archive, ["default"]),
}


@pytest.mark.parametrize("how", REMOVALS)
async def test_the_readers_of_a_removed_capture_are_forgotten(
    api: Api, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = await api.put(LOG, Overspill_Session="mine", Overspill_Ttl="60")
    key = await key_of(api, *Scope)
    await key.read()
    assert await readers(api, key)
    if how == "swept":
        later = stored.expires.timestamp() + 1
        monkeypatch.setattr(api.service.archive, "clock", lambda: later)
    await REMOVALS[how](api, key)
    gone = await api.get(path_of(LOG) + READERS, headers=key.headers)

    assert gone.status == 410
    assert await api.service.archive.catalog.readers("default", stored.id) == []


# --- what is noted --------------------------------------------------------------------------------


class Told:
    """A catalog that can fail, and what it was told."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, list[ReadNote], int]] = []
        self.fails = False

    async def note_readers(self, tenant: str, notes: Sequence[ReadNote], *, max_bytes: int) -> None:
        if self.fails:
            raise CatalogUnavailable("it does not answer")
        self.batches.append((tenant, list(notes), max_bytes))

    async def readers(self, tenant: str, capture: str) -> list[Any]:
        raise NotImplementedError

    @property
    def notes(self) -> list[tuple[str, float]]:
        return [(note.name, note.at) for _, notes, _ in self.batches for note in notes]


def principal(name: str, tenant: str = "acme", most: int = 800) -> Principal:
    limits = Limits(
        max_capture_size=1,
        max_stored_size=0,
        max_captures=0,
        default_ttl=1,
        max_ttl=1,
        max_metadata_size=most,
    )
    return Principal(tenant=Tenant(name=tenant, limits=limits), scopes=frozenset(), key_id=name)


async def test_a_reader_of_a_capture_is_noted_once_in_two_minutes() -> None:
    told = Told()
    notes = ReaderNotes(told)
    for at in (0, 1, NOTE_SECONDS - 1, NOTE_SECONDS):
        notes.note(entry(), principal("one"), NOW + at, on_page=False)
        await notes.report()
    for other in ({"on_page": True}, {"on_page": False}):
        notes.note(entry(2), principal("one"), NOW, **other)
    await notes.report()

    assert told.notes[:2] == [("one", NOW), ("one", NOW + NOTE_SECONDS)]
    assert [(note.capture, note.on_page) for note in told.batches[-1][1]] == [
        (entry(2).id, True),
        (entry(2).id, False),
    ]


async def test_what_a_failing_catalog_was_not_told_is_told_later() -> None:
    told = Told()
    notes, told.fails = ReaderNotes(told), True
    notes.note(entry(), principal("one"), NOW, on_page=False)
    with pytest.raises(CatalogUnavailable):
        await notes.report()
    told.fails = False
    await notes.report()
    await notes.report()

    assert told.notes == [("one", NOW)]


async def test_the_readers_of_a_tenant_have_an_eighth_of_its_room() -> None:
    told = Told()
    notes = ReaderNotes(told)
    for tenant, most in (("eighth", 800), ("little", 1), ("any", 0)):
        notes.note(
            replace(entry(), tenant=tenant, upload=tenant), principal("one", tenant, most), NOW, on_page=False
        )
    await notes.report()

    assert {tenant: most for tenant, _, most in told.batches} == {"eighth": 100, "little": 1, "any": 0}


async def test_a_tenant_that_floods_a_process_with_reads_leaves_room_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = Told()
    monkeypatch.setattr(reader_notes, "MAX_WAITING", 200)
    notes = ReaderNotes(told)
    for number in range(1_000):
        notes.note(entry(number), principal("flood"), NOW, on_page=False)
    for number in range(10):
        other = replace(entry(number), tenant="other", upload=f"other{number}")
        notes.note(other, principal("one", "other"), NOW, on_page=False)
    await notes.report()
    by_tenant = {tenant: 0 for tenant, _, _ in told.batches}
    for tenant, batch, _ in told.batches:
        by_tenant[tenant] += len(batch)

    assert by_tenant == {"acme": 100, "other": 10}
    assert max(len(batch) for _, batch, _ in told.batches) == reader_notes.BATCH


async def test_all_that_was_noted_at_once_is_in_the_catalog(api: Api) -> None:
    catalog: Catalog = api.service.archive.catalog
    notes = ReaderNotes(catalog)
    entries = [entry(number) for number in range(3 * reader_notes.BATCH)]
    for each in entries:
        await catalog.commit(each, Quota())
        notes.note(each, principal("one", most=0), NOW, on_page=False)
    await notes.report()

    for each in entries:
        assert [reader.name for reader in await catalog.readers("acme", each.id)] == ["one"]
