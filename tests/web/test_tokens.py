"""Tokens of an OIDC issuer: what they open, and every way in which one can be wrong."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from overspill_service.settings.errors import SettingError
from overspill_service.web.issuer_keys import RSA_ALGORITHMS
from overspill_service.web.request_rates import UNKNOWN_KEYS_BURST

from tests.faults.traffic import until
from tests.web.conftest import Api, path_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

ISSUER = "https://issuer.example"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
STRANGER = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def jwks(**keys: Any) -> str:
    found = []
    for name, key in keys.items():
        algorithm = (
            jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
        )
        found.append(algorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": name, "use": "sig"})
    return json.dumps({"keys": found})


def token(
    key: Any = RSA,
    kid: str = "one",
    algorithm: str = "RS256",
    headers: dict[str, Any] | None = None,
    **claims: Any,
) -> str:
    whole = {
        "iss": ISSUER,
        "aud": "overspill",
        "exp": time.time() + 60,
        "tenant": "acme",
        "scope": "read write",
    }
    given = {name: value for name, value in (whole | claims).items() if value is not None}
    return jwt.encode(given, key, algorithm=algorithm, headers={"kid": kid} | (headers or {}))


@pytest.fixture
async def api(start_api: Callable[..., Any], tmp_path: Path) -> Api:
    file = tmp_path / "jwks.json"
    file.write_text(jwks(one=RSA, two=EC))
    started: Api = await start_api(jwt_issuer=ISSUER, jwt_keys=str(file))
    return started


async def status(api: Api, text: str, path: str = "/v1/usage") -> int:
    return (await api.get(path, headers={"Authorization": f"Bearer {text}"})).status


async def test_a_token_opens_its_tenant_with_its_scopes(api: Api) -> None:
    async def tenant(text: str) -> str:
        answer = await api.get("/v1/usage", headers={"Authorization": f"Bearer {text}"})
        found: str = (await answer.json())["tenant"]
        return found

    assert await tenant(token()) == "acme"
    assert await tenant(token(EC, "two", "ES256", tenant="globex", scope=["read"])) == "globex"
    assert await status(api, token(scope="write")) == 403
    assert await status(api, token(scope="")) == 403
    assert await status(api, token(scope=None)) == 403
    assert (await api.get("/v1/usage")).status == 401


async def test_a_token_of_a_session_is_bound_to_it(api: Api) -> None:
    await api.service.issuer.issue("acme", [], now=0)
    bound, whole = token(session="mine", scope="read write admin"), token()
    for session in ("mine", "theirs"):
        headers = {"Authorization": f"Bearer {whole}", "Overspill-Session": session}
        assert (
            await api.send("PUT", path_of(session.encode()), data=session.encode(), headers=headers)
        ).status == 201

    assert await status(api, bound, path_of(b"mine")) == 200
    assert await status(api, bound, path_of(b"theirs")) == 404
    assert await status(api, bound) == 403
    assert await status(api, bound, "/v1/keys") == 403


async def test_the_audit_log_says_for_whom_the_issuer_has_made_a_token(
    start_api: Callable[..., Any], tmp_path: Path
) -> None:
    file, keys = tmp_path / "audit.json", tmp_path / "jwks.json"
    keys.write_text(jwks(one=RSA))
    api: Api = await start_api(jwt_issuer=ISSUER, jwt_keys=str(keys), audit_log=str(file))
    for subject in ("alice", None, "x" * 1000):
        await status(api, token(sub=subject, scope=""), path_of(b"x"))
    named, unnamed, long = [json.loads(line)["user"] for line in file.read_text().splitlines()]

    assert (named, unnamed) == ({"id": "jwt", "name": "alice"}, {"id": "jwt"})
    assert len(long["name"]) == 256


async def test_a_capture_names_as_its_reader_whom_the_issuer_names(api: Api) -> None:
    service = api.service
    alice, unnamed = [{"Authorization": f"Bearer {token(sub=name)}"} for name in ("alice", None)]
    await api.put(b"x", **alice)
    for headers in (alice, unnamed):
        await api.get(path_of(b"x") + "/head", headers=headers)
    await service.reader_notes.report()
    await service.metrics.write_pending(service.archive.catalog, service.archive.clock())
    found = await (await api.get(path_of(b"x") + "/readers", headers=alice)).json()
    known = await (await api.get(path_of(b"x"), headers=alice)).json()

    assert {each["name"] for each in found["readers"]} == {"alice", "jwt"}
    assert known["first_reader"] == "alice"


@pytest.mark.parametrize("algorithm", RSA_ALGORITHMS)
async def test_a_key_that_names_no_algorithm_verifies_all_of_its_kind(api: Api, algorithm: str) -> None:
    assert await status(api, token(algorithm=algorithm)) == 200
    assert await status(api, token(EC, "one", "ES256")) == 401


async def test_a_key_that_names_an_algorithm_verifies_no_other(api: Api, tmp_path: Path) -> None:
    (tmp_path / "jwks.json").write_text(jwks(one=RSA).replace('"kid"', '"alg": "PS256", "kid"'))

    assert await status(api, token(algorithm="PS256")) == 200
    assert await status(api, token(algorithm="RS256")) == 401


def unsigned() -> str:
    def part(value: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims = {"iss": ISSUER, "aud": "overspill", "exp": time.time() + 60, "tenant": "acme", "scope": "read"}
    return f"{part({'alg': 'none', 'kid': 'one'})}.{part(claims)}.AA"


def signed_with_the_public_key() -> str:
    """A token that takes the public key for a shared secret: a verifier of HS256 would accept it."""
    secret = base64.urlsafe_b64decode(json.loads(jwks(one=RSA))["keys"][0]["n"] + "==")
    return token(secret, algorithm="HS256")


def with_a_null_session() -> str:
    claims = jwt.decode(token(), options={"verify_signature": False})
    return jwt.encode(claims | {"session": None}, RSA, algorithm="RS256", headers={"kid": "one"})


WRONG: dict[str, Callable[[], str]] = {
    "expired": lambda: token(exp=time.time() - 120),
    "not yet valid": lambda: token(nbf=time.time() + 3600),
    "without an end": lambda: token(exp=None),
    "an end that is not an instant": lambda: token(exp=10**400),
    "an end that is a text": lambda: token(exp="9999999999"),
    "a beginning that is true": lambda: token(nbf=True),
    "another issuer": lambda: token(iss="https://other.example"),
    "no issuer": lambda: token(iss=None),
    "another audience": lambda: token(aud="other"),
    "no audience": lambda: token(aud=None),
    "another's signature": lambda: token(STRANGER),
    "a key that the issuer has not": lambda: token(kid="three"),
    "no key": lambda: token(kid=""),
    "the key of another kind": lambda: token(RSA, kid="two"),
    "no signature": unsigned,
    "a shared secret": signed_with_the_public_key,
    "no tenant": lambda: token(tenant=None),
    "a tenant that is none": lambda: token(tenant="../acme"),
    "a tenant that is a list": lambda: token(tenant=["acme"]),
    "a session that is none": lambda: token(session=7),
    "a session that nobody has filled in": with_a_null_session,
    "a changed claim": lambda: ".".join(
        [token().split(".")[0], token(tenant="x").split(".")[1], token().split(".")[2]]
    ),
    "with a field that must be understood": lambda: token(headers={"crit": ["x-only"], "x-only": True}),
    "too long": lambda: token(junk="x" * 9000),
    "not a token": lambda: "a.b.c",
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
async def test_a_wrong_token_opens_nothing(api: Api, make: Callable[[], str]) -> None:
    assert await status(api, make()) == 401


async def test_tokens_begin_and_end_by_the_clock_that_all_replicas_share(
    start_api: Callable[..., Any], tmp_path: Path
) -> None:
    file, ahead = tmp_path / "jwks.json", 3600.0
    file.write_text(jwks(one=RSA))
    api: Api = await start_api(jwt_issuer=ISSUER, jwt_keys=str(file), clock=lambda: time.time() + ahead)

    assert await status(api, token()) == 401
    later = time.time() + ahead
    assert await status(api, token(exp=later + 60, nbf=later - 60, iat=later)) == 200
    assert await status(api, token(exp=later - 20)) == 200
    assert await status(api, token(exp=later - 40)) == 401
    assert await status(api, token(exp=later + 90, nbf=later + 60)) == 401
    assert await status(api, token(exp=later + 90, iat=later + 60)) == 401


@pytest.mark.parametrize("jump", [86_400, -86_400])
async def test_a_token_is_neither_late_nor_early_when_the_clock_of_the_machine_is_set(
    start_api: Callable[..., Any], tmp_path: Path, jump: int
) -> None:
    file, lead = tmp_path / "jwks.json", 0
    file.write_text(jwks(one=RSA))
    api: Api = await start_api(
        jwt_issuer=ISSUER, jwt_keys=str(file), clock=lambda: time.time() + lead, steady=time.monotonic
    )
    known, now = token(), time.time()
    ended = token(exp=now - 60)
    assert await status(api, known) == 200
    lead = jump

    assert await status(api, known) == 200
    assert await status(api, token(nbf=now, iat=now)) == 200
    assert await status(api, ended) == 401


class Issuer:
    """An issuer's server: `keys` is what it serves, `asked` how often."""

    def __init__(self) -> None:
        self.keys, self.asked, self.redirects = "", 0, False
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        await self.may_answer.wait()
        if self.redirects:
            raise web.HTTPFound(f"{request.path}?elsewhere")
        if not self.keys:
            return web.Response(status=500)
        response = web.StreamResponse()
        await response.prepare(request)
        for half in (self.keys[:100], self.keys[100:]):  # as a long answer comes
            await response.write(half.encode())
            await asyncio.sleep(0.01)
        return response


@pytest.fixture
async def issuer() -> AsyncIterator[tuple[Issuer, str]]:
    served, app = Issuer(), web.Application()
    app.router.add_get("/jwks", served.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield served, f"http://127.0.0.1:{runner.addresses[0][1]}/jwks"
    await runner.cleanup()


async def test_keys_are_fetched_again_when_the_issuer_has_new_ones(
    start_api: Callable[..., Any], issuer: tuple[Issuer, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, url = issuer
    api: Api = await start_api(jwt_issuer=ISSUER, jwt_keys=url)
    assert await status(api, token()) == 503
    monkeypatch.setattr("overspill_service.web.issuer_keys.RETRY_SECONDS", 0.0)
    served.keys = jwks(one=RSA)
    assert await status(api, token()) == 200
    served.keys = jwks(new=STRANGER)
    assert await status(api, token(STRANGER, "new")) == 200
    served.keys = ""
    assert await status(api, token(STRANGER, "new", jti="2")) == 200


ODD: dict[str, str] = {
    "a redirection": "",
    "no object": f"[{jwks(one=RSA)}]",
    "no list of keys": '{"keys": {"one": 1}}',
    "no keys": '{"keys": []}',
    "nesting without end": '{"keys":' + "[" * 3000 + "]" * 3000 + "}",
    "a shared secret": '{"keys": [{"kty": "oct", "kid": "one", "k": "AAAA"}]}',
    "an id that is a list": jwks(one=RSA).replace('"one"', '["one"]'),
    "an algorithm without a signature": jwks(one=RSA).replace('"kid"', '"alg": "none", "kid"'),
    "an algorithm that is a list": jwks(one=RSA).replace('"kid"', '"alg": ["RS256"], "kid"'),
    "more than a MiB": " " * 2**20 + jwks(one=RSA),
}


@pytest.mark.parametrize("served", ODD.values(), ids=ODD)
async def test_an_issuer_that_serves_no_keys_is_an_issuer_that_does_not_answer(
    start_api: Callable[..., Any],
    issuer: tuple[Issuer, str],
    served: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    issuer[0].keys = served
    issuer[0].redirects = not served
    api: Api = await start_api(jwt_issuer=ISSUER, jwt_keys=issuer[1])
    before = await status(api, token())
    monkeypatch.setattr("overspill_service.web.issuer_keys.RETRY_SECONDS", 0.0)
    issuer[0].keys, issuer[0].redirects = jwks(one=RSA), False

    assert (before, await status(api, token())) == (503, 200)
    issuer[0].keys = served
    assert await status(api, token(STRANGER, "three")) == 401
    assert await status(api, token(jti="still")) == 200
    assert "the issuer's public keys cannot be read" in caplog.text


async def test_a_key_that_verifies_nothing_spoils_none_beside_it(api: Api, tmp_path: Path) -> None:
    good = json.loads(jwks(one=RSA))["keys"]
    odd = [None, 7, {"kty": "oct", "k": "AAAA"}, good[0] | {"kid": "two", "n": "!"}, good[0] | {"kid": 1}]
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [*odd, *good]}))

    assert await status(api, token()) == 200
    assert await status(api, token(kid="two")) == 401


async def test_a_pipe_in_the_place_of_the_keys_keeps_no_thread(
    start_api: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.web.issuer_keys.RETRY_SECONDS", 0.0)
    file = tmp_path / "jwks.json"
    os.mkfifo(file)
    api: Api = await start_api(jwt_issuer=ISSUER, jwt_keys=str(file))
    assert await status(api, token()) == 503
    file.unlink()
    file.write_text(jwks(one=RSA))

    assert await status(api, token()) == 200


async def test_tokens_with_invented_keys_make_no_flood_of_requests(
    start_api: Callable[..., Any], issuer: tuple[Issuer, str]
) -> None:
    served, url = issuer
    served.keys = jwks(one=RSA)
    api: Api = await start_api(jwt_issuer=ISSUER, jwt_keys=url)

    for number in range(20):
        assert await status(api, token(kid=f"invented-{number}")) == 401
    assert served.asked == 1


@pytest.mark.parametrize("trusted", [10.0, 0.0], ids=["just verified", "verified again"])
async def test_an_address_that_sends_forged_tokens_is_slowed_and_known_tokens_are_not(
    api: Api, trusted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.web.tokens.CACHE_SECONDS", trusted)
    good, late = token(), token(exp=time.time() - 120)
    assert await status(api, good) == 200
    expired = [await status(api, late) for _ in range(UNKNOWN_KEYS_BURST + 20)]
    forged = [await status(api, token(STRANGER)) for _ in range(UNKNOWN_KEYS_BURST + 20)]

    assert set(expired) == {401}
    assert set(forged[:UNKNOWN_KEYS_BURST]) == {401}
    assert 429 in forged[UNKNOWN_KEYS_BURST:]
    assert await status(api, good) == 200


async def test_who_names_a_known_key_waits_for_nobody_who_invents_one(
    start_api: Callable[..., Any], issuer: tuple[Issuer, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, url = issuer
    served.keys = jwks(one=RSA)
    api: Api = await start_api(jwt_issuer=ISSUER, jwt_keys=url)
    assert await status(api, token()) == 200
    monkeypatch.setattr("overspill_service.web.issuer_keys.RETRY_SECONDS", 0.0)
    served.may_answer.clear()
    inventing = asyncio.create_task(status(api, token(kid="invented")))
    await until(lambda: asyncio.sleep(0, served.asked == 2))

    assert await status(api, token(jti="another")) == 200
    assert not inventing.done()
    served.may_answer.set()
    assert await inventing == 401


async def hang_up_while_keys_are_read(api: Api, served: Issuer, text: str) -> None:
    served.may_answer.clear()
    asked = served.asked
    _, writer = await asyncio.open_connection("127.0.0.1", api.port)
    writer.write(
        f"GET /v1/usage HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {text}\r\n\r\n".encode()
    )
    await until(lambda: asyncio.sleep(0, served.asked == asked + 1))
    writer.close()
    assert await status(api, "") == 401  # on a later connection: the service has seen that this one is closed
    served.may_answer.set()


async def test_who_hangs_up_keeps_nobody_from_the_keys_of_the_issuer(
    start_api: Callable[..., Any], issuer: tuple[Issuer, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, url = issuer
    served.keys = jwks(one=RSA)
    api: Api = await start_api(jwt_issuer=ISSUER, jwt_keys=url)
    await hang_up_while_keys_are_read(api, served, token(kid="invented"))
    assert await status(api, token()) == 200
    monkeypatch.setattr("overspill_service.web.issuer_keys.RETRY_SECONDS", 0.0)
    served.keys = jwks(new=STRANGER)
    await hang_up_while_keys_are_read(api, served, token(kid="invented"))
    monkeypatch.undo()
    assert await status(api, token(STRANGER, "new")) == 200
    assert served.asked == 2


async def test_a_token_that_comes_while_keys_are_read_waits_for_them(
    start_api: Callable[..., Any], issuer: tuple[Issuer, str]
) -> None:
    served, url = issuer
    served.keys = jwks(one=RSA)
    served.may_answer.clear()
    api: Api = await start_api(jwt_issuer=ISSUER, jwt_keys=url)
    waiting = [asyncio.create_task(status(api, token(jti=str(number)))) for number in range(3)]
    await until(lambda: asyncio.sleep(0, served.asked == 1 and api.service.in_flight.count == 3))
    served.may_answer.set()

    assert await asyncio.gather(*waiting) == [200, 200, 200]
    assert served.asked == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "jwt_keys"),
        ({"jwt_keys": "http://issuer.example/jwks"}, "https"),
        ({"jwt_keys": "x", "jwt_audience": ""}, "jwt_audience"),
    ],
)
async def test_settings_that_would_be_unsafe_are_refused(
    start_api: Callable[..., Any], settings: dict[str, str], said: str
) -> None:
    with pytest.raises(SettingError, match=said):
        await start_api(jwt_issuer=ISSUER, **settings)
