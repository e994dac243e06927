"""Storing, looking up, listing, extending and removing, over plain HTTP."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from typing import Any

import msgspec
import pytest
import zstandard
from overspill import wire

from tests.web.conftest import Api, id_of, path_of, problem

LOG = b"".join(b"line %d\n" % number for number in range(5000))


async def test_a_new_capture_answers_201_and_its_entry(api: Api) -> None:
    response = await api.send(
        "PUT",
        path_of(LOG),
        data=LOG,
        headers={
            "Overspill-Session": wire.encode_header("séance 1"),
            "Overspill-Tool": "grep",
            "Overspill-Label-Team": "blue",
            "Overspill-Ttl": "60",
            "Content-Type": "text/x-log",
        },
    )

    assert response.status == 201
    entry = msgspec.json.decode(await response.read(), type=wire.Entry)
    assert (entry.size, entry.lines, entry.session) == (len(LOG), 5000, "séance 1")
    assert (entry.tool, entry.labels, entry.content_type) == ("grep", {"team": "blue"}, "text/x-log")
    assert entry.sha256 == hashlib.sha256(LOG).hexdigest()
    assert 58 <= (entry.expires - entry.created).total_seconds() <= 62


async def test_the_same_capture_again_answers_200_and_stores_nothing(api: Api) -> None:
    await api.put(LOG)
    again = await api.send("PUT", path_of(LOG), data=LOG)

    assert again.status == 200
    usage = await (await api.get("/v1/usage")).json()
    assert (usage["captures"], usage["size"]) == (1, len(LOG))


async def test_another_content_under_a_taken_id_is_refused(api: Api) -> None:
    await api.put(LOG)
    response = await api.send("PUT", path_of(LOG), data=b"something else")

    assert response.status == 409
    assert (await problem(response)).code == wire.Code.ID_CONFLICT


async def test_of_many_equal_puts_at_once_all_succeed_and_one_is_stored(api: Api) -> None:
    answers = await asyncio.gather(*(api.send("PUT", path_of(LOG), data=LOG) for _ in range(20)))

    assert {answer.status for answer in answers} <= {200, 201}
    assert sum(answer.status == 201 for answer in answers) == 1
    keys = [each.key async for each in api.service.archive.store.list("v1/")]
    assert len(keys) == 1


async def test_of_two_contents_for_one_id_at_once_one_wins_whole(api: Api) -> None:
    contents = [b"a" * 3_000_000, b"b" * 3_000_000]
    answers = await asyncio.gather(*(api.send("PUT", path_of(LOG), data=content) for content in contents))

    assert sorted(answer.status for answer in answers) == [201, 409]
    stored = await (await api.get(path_of(LOG) + "/content")).read()
    assert stored in contents


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [("gzip", gzip.compress), ("zstd", zstandard.ZstdCompressor().compress), ("identity", bytes)],
)
async def test_an_encoded_body_is_stored_decoded(api: Api, encoding: Any, encode: Any) -> None:
    digest = wire.encode_digest(hashlib.sha256(LOG).digest())
    response = await api.send(
        "PUT", path_of(LOG), data=encode(LOG), headers={"Content-Encoding": encoding, "Repr-Digest": digest}
    )

    assert response.status == 201
    assert await (await api.get(path_of(LOG) + "/content")).read() == LOG


async def test_a_digest_of_the_encoded_body_is_right_too(api: Api) -> None:
    body = gzip.compress(LOG)
    digest = wire.encode_digest(hashlib.sha256(body).digest())
    response = await api.send(
        "PUT", path_of(LOG), data=body, headers={"Content-Encoding": "gzip", "Repr-Digest": digest}
    )

    assert response.status == 201


async def test_a_wrong_digest_is_refused_and_nothing_is_stored(api: Api) -> None:
    digest = wire.encode_digest(hashlib.sha256(b"else").digest())
    response = await api.send("PUT", path_of(LOG), data=LOG, headers={"Repr-Digest": digest})

    assert (response.status, (await problem(response)).code) == (400, wire.Code.DIGEST_MISMATCH)
    assert (await api.get(path_of(LOG))).status == 404
    assert [each async for each in api.service.archive.store.list("v1/")] == []


@pytest.mark.parametrize("content", [b"", b"\n", b"no newline", b"\0" * 100, b"\xff\xfe\n", b"a\r\nb\r\n"])
async def test_every_content_comes_back_byte_for_byte(api: Api, content: Any) -> None:
    entry = await api.put(content)

    assert entry.lines == content.count(b"\n") + bool(content.rpartition(b"\n")[2])
    assert await (await api.get(f"/v1/captures/{entry.id}/content")).read() == content


async def test_a_capture_is_found_by_its_call_id_the_newest_first(api: Api) -> None:
    call_id = "call/ö?#%" * 100
    await api.put(b"first", call_id)
    newest = await api.put(b"second", call_id)
    response = await api.get(f"/v1/captures/call:{wire.encode_path(call_id)}")

    assert (await response.json())["id"] == newest.id


async def test_a_session_narrows_a_call_id(api: Api) -> None:
    first = await api.put(b"first", "call_0", Overspill_Session="s1")
    await api.put(b"second", "call_0", Overspill_Session="s2")
    response = await api.get("/v1/captures/call:call_0?session=s1")

    assert (await response.json())["id"] == first.id
    assert (await api.get("/v1/captures/call:call_0?session=s3")).status == 404


async def test_head_of_a_capture_tells_size_state_and_digest(api: Api) -> None:
    entry = await api.put(LOG)
    response = await api.send("HEAD", f"/v1/captures/{entry.id}")

    assert response.status == 200
    assert response.headers["Overspill-Size"] == str(len(LOG))
    assert response.headers["Overspill-Sha256"] == entry.sha256
    assert response.headers["Overspill-State"] == "complete"


async def test_the_list_pages_newest_first_without_gaps(api: Api) -> None:
    ids = [(await api.put(b"%d" % number, f"call_{number}")).id for number in range(7)]
    seen, cursor = [], None
    while True:
        query = {"limit": "3"} | ({"cursor": cursor} if cursor else {})
        page = await (await api.get("/v1/captures", params=query)).json()
        seen += [each["id"] for each in page["captures"]]
        cursor = page["cursor"]
        if cursor is None:
            break

    assert seen == ids[::-1]


async def test_the_list_filters_by_tool_and_time(api: Api) -> None:
    first = await api.put(b"1", "a", Overspill_Tool="grep")
    await api.put(b"2", "b", Overspill_Tool="cat")
    page = await (await api.get("/v1/captures", params={"tool": "grep"})).json()
    later = await (await api.get("/v1/captures", params={"until": first.created.isoformat()})).json()

    assert [each["id"] for each in page["captures"]] == [first.id]
    assert later["captures"] == []


async def test_a_ttl_can_be_changed_and_is_kept_in_the_object_store(api: Api) -> None:
    entry = await api.put(LOG)
    response = await api.send("PATCH", f"/v1/captures/{entry.id}", json={"ttl": 3600})

    changed = msgspec.json.decode(await response.read(), type=wire.Entry)
    assert 3598 <= (changed.expires - entry.created).total_seconds() <= 3602
    keys = [each.key async for each in api.service.archive.store.list("v1/")]
    assert any("-expires-" in key for key in keys)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"ttl": 0}', b'{"ttl": "1"}', b'{"ttl": 5, "x": 1}', b"[]", b"\xff"]
)
async def test_a_wrong_amendment_says_what_is_wrong(api: Api, body: Any) -> None:
    entry = await api.put(LOG)
    response = await api.send("PATCH", f"/v1/captures/{entry.id}", data=body)

    assert (response.status, (await problem(response)).code) == (422, wire.Code.INVALID_BODY)


async def test_a_ttl_outside_the_bounds_says_the_bounds(api: Api) -> None:
    entry = await api.put(LOG)
    response = await api.send("PATCH", f"/v1/captures/{entry.id}", json={"ttl": 10**9})

    assert response.status == 422
    assert "7776000" in (await problem(response)).detail


async def test_a_deleted_capture_is_gone_with_its_bytes(api: Api) -> None:
    entry = await api.put(LOG)
    removed = await api.send("DELETE", f"/v1/captures/{entry.id}")

    assert (await removed.json())["captures"] == 1
    assert (await problem(await api.get(f"/v1/captures/{entry.id}"))).code == wire.Code.DELETED
    assert [each async for each in api.service.archive.store.list("v1/")] == []


async def test_deleting_twice_is_no_error(api: Api) -> None:
    entry = await api.put(LOG)
    await api.send("DELETE", f"/v1/captures/{entry.id}")
    again = await api.send("DELETE", f"/v1/captures/{entry.id}")

    assert (again.status, (await again.json())["captures"]) == (200, 0)


async def test_a_deleted_capture_can_be_stored_again(api: Api) -> None:
    entry = await api.put(LOG)
    await api.send("DELETE", f"/v1/captures/{entry.id}")
    response = await api.send("PUT", path_of(LOG), data=LOG)

    assert response.status == 201
    assert await (await api.get(path_of(LOG) + "/content")).read() == LOG


async def test_a_session_is_erased_whole(api: Api) -> None:
    for number in range(5):
        await api.put(b"%d" % number, f"c{number}", Overspill_Session="s/1")
    kept = await api.put(b"kept", "c", Overspill_Session="s2")
    removed = await api.send("DELETE", "/v1/sessions/s%2F1")

    assert (await removed.json())["captures"] == 5
    page = await (await api.get("/v1/captures")).json()
    assert [each["id"] for each in page["captures"]] == [kept.id]


async def test_storing_again_renews_a_life_that_is_nearly_over(api: Api) -> None:
    first = await api.put(LOG, Overspill_Ttl="100")
    again = await api.put(LOG, Overspill_Ttl="10000")

    assert (again.expires - first.expires).total_seconds() > 9000


async def test_the_usage_tells_totals_and_limits(api: Api) -> None:
    entry = await api.put(LOG)
    usage = msgspec.json.decode(await (await api.get("/v1/usage")).read(), type=wire.Usage)

    assert (usage.tenant, usage.captures, usage.stored_size) == ("default", 1, entry.stored_size)
    assert usage.oldest == entry.created


async def test_an_observation_batch_counts_once(api: Api) -> None:
    batch = wire.Observations(
        batch="batch-00001",
        observations=[
            wire.Observation(
                tool="grep", outcome=wire.Outcome.INLINE, count=3, bytes_before=30, bytes_after=30
            )
        ],
    )
    answers = [await api.send("POST", "/v1/observations", data=msgspec.json.encode(batch)) for _ in range(2)]

    assert [(await answer.json())["counted"] for answer in answers] == [True, False]
    figures = await (await api.get("/metrics")).text()
    assert 'overspill_tool_outputs_total{outcome="inline",tenant="default",tool="grep"} 3.0' in figures


def one_observation(**fields: object) -> bytes:
    seen = {"tool": "grep", "outcome": "inline", "count": 3, "bytes_before": 70_000, "bytes_after": 70_000}
    return msgspec.json.encode({"batch": "batch-00001", "observations": [seen | fields]})


async def test_sizes_of_tool_outputs_become_a_histogram(api: Api) -> None:
    sizes = [2] + [0] * (wire.SIZE_CLASSES - 2) + [1]
    await api.send("POST", "/v1/observations", data=one_observation(sizes=sizes))
    figures = await (await api.get("/metrics")).text()

    for line in (
        '_bucket{le="256.0",tenant="default"} 2.0',
        '_bucket{le="1.073741824e+09",tenant="default"} 2.0',
        '_bucket{le="+Inf",tenant="default"} 3.0',
        '_count{tenant="default"} 3.0',
        '_sum{tenant="default"} 70000.0',
    ):
        assert f"overspill_tool_output_size_bytes{line}\n" in figures


async def test_an_observation_without_sizes_is_in_no_histogram(api: Api) -> None:
    answer = await api.send("POST", "/v1/observations", data=one_observation())
    figures = await (await api.get("/metrics")).text()

    assert await answer.json() == {"counted": True}
    assert 'overspill_tool_outputs_total{outcome="inline",tenant="default",tool="grep"} 3.0' in figures
    assert 'overspill_tool_output_size_bytes_count{tenant="default"} 0.0' in figures


@pytest.mark.parametrize(
    "sizes",
    [
        [],
        [3],
        [3] + [0] * wire.SIZE_CLASSES,
        [2] + [0] * (wire.SIZE_CLASSES - 1),
        [4, -1] + [0] * (wire.SIZE_CLASSES - 2),
        [3.5] + [0] * (wire.SIZE_CLASSES - 1),
        "3",
    ],
)
async def test_sizes_that_make_no_sense_are_refused_and_nothing_is_counted(api: Api, sizes: object) -> None:
    answer = await api.send("POST", "/v1/observations", data=one_observation(sizes=sizes))
    figures = await (await api.get("/metrics")).text()

    assert (await problem(answer)).code == wire.Code.INVALID_BODY
    assert "overspill_tool_outputs_total{" not in figures


async def test_an_id_of_another_capture_is_not_found(api: Api) -> None:
    response = await api.get(f"/v1/captures/{id_of(b'never stored')}")

    assert (response.status, (await problem(response)).code) == (404, wire.Code.NOT_FOUND)


async def test_an_expired_capture_is_erased_at_once_when_asked(api: Api) -> None:
    entry = await api.put(LOG, Overspill_Session="s", Overspill_Ttl="60")
    other = await api.put(b"other", "c", Overspill_Session="s", Overspill_Ttl="60")
    real = api.service.archive.clock
    api.service.archive.clock = lambda: real() + 120

    assert (await problem(await api.get(f"/v1/captures/{entry.id}"))).code == wire.Code.EXPIRED
    removed = await api.send("DELETE", f"/v1/captures/{entry.id}")
    assert (await removed.json())["captures"] == 1
    erased = await api.send("DELETE", "/v1/sessions/s")
    assert (await erased.json())["captures"] == 1
    assert [each async for each in api.service.archive.store.list("v1/")] == []
    assert (await problem(await api.get(f"/v1/captures/{other.id}"))).code == wire.Code.DELETED


async def test_binary_content_without_a_type_is_not_called_text(api: Api) -> None:
    entry = await api.put(bytes(range(256)) * 10)

    assert (entry.kind, entry.content_type) == ("binary", "application/octet-stream")
