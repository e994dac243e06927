"""Requests that schemathesis makes from the API's own description, with keys of every kind.

Whatever is asked: an answer as described, never an error of the service, nothing beyond the key's scopes, and
nothing of another tenant.
"""

from __future__ import annotations

import os
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, Final

import hypothesis
import pytest
import requests
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from overspill.wire import Scope
from overspill_service.tenants.keys import KEY_LENGTH, hash_key, new_key
from overspill_service.web.registry import PUBLIC, Route
from overspill_service.web.routes import ROUTES

from tests.lazy import LazyModule
from tests.servers.overspill import ForkedService, ServiceProcess, running, service_command
from tests.web.conftest import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

EXAMPLES: Final = int(os.environ.get("OVERSPILL_FUZZ_ROUNDS", "3"))
"""Requests of each operation with each key; more for a longer search."""
SCHEMATHESIS: Final = LazyModule("schemathesis")
CHECKS: Final = LazyModule("schemathesis.specs.openapi.checks")
SECRET: Final = b"what only the other tenant may read\n"
EVERYTHING: Final = tuple(Scope)
KEYS: Final[Mapping[str, tuple[Scope, ...] | None]] = {
    **{scope.value: (scope,) for scope in Scope},
    "everything": EVERYTHING,
    "reading and writing of one session": (Scope.READ, Scope.WRITE),
    "reading and writing of some sessions": (Scope.READ, Scope.WRITE),
    "unknown": None,
    "expired": None,
    "revoked": None,
}
OF_SESSIONS: Final = {
    "reading and writing of one session": 'session = "theirs"\n',
    "reading and writing of some sessions": 'session = "theirs/"\nis_prefix = true\n',
}
"""Kinds of keys that are bound, and how the tenants' file says so."""
OPERATIONS: Final = {route.name: route for route in ROUTES}


class Tenants:
    """A service with the keys of one tenant, by their kinds, and with a capture of it and one of another."""

    def __init__(self, service: ServiceProcess, keys: Mapping[str, str], schema: Any) -> None:
        self.url, self.keys = service.url, keys
        self.operations = [result.ok() for result in schema.get_all_operations()]
        self.cases = {each.label: each.as_strategy() for each in self.operations}
        self.session = requests.Session()  # one connection, and one look at the environment's proxies
        self.session.trust_env = False
        self.session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))  # a key is all that it shows
        self.own, self.other = path_of(b"own\n"), path_of(SECRET)

    def store(self) -> None:
        """Store what requests may have removed."""
        self.put(self.own, b"own\n", self.keys["everything"])

    def put(self, path: str, content: bytes, key: str) -> None:
        headers = {"Authorization": f"Bearer {key}", "Overspill-Call-Id": "call_0"}
        response = self.session.put(self.url + path, data=content, headers=headers, timeout=60)
        assert response.status_code in (200, 201, 409), response.text


def table(name: str, keys: Mapping[str, tuple[Scope, ...] | None], made: Mapping[str, str]) -> str:
    rows = [f'[[tenants]]\nname = "{name}"']
    for kind, scopes in keys.items():
        if scopes is not None or kind == "expired":
            listed = ", ".join(f'"{scope}"' for scope in scopes or EVERYTHING)
            more = OF_SESSIONS.get(kind, "") if scopes is not None else "expires = 1\n"
            rows.append(f'[[tenants.keys]]\nhash = "{hash_key(made[kind])}"\nscopes = [{listed}]\n{more}')
    return "\n".join(rows) + "\n"


def revoked_key(service: ServiceProcess) -> str:
    """Return a key with every scope that is in the catalog no more, and that no process has seen before."""
    flags = "--data", service.data
    words = "keys", "create", "--tenant", "own", "--scopes", ",".join(EVERYTHING)
    key = service_command(*words, *flags).stdout.strip()
    revoked = service_command("keys", "revoke", hash_key(key), *flags)
    assert (len(key), revoked.returncode) == (KEY_LENGTH, 0), revoked.stderr
    return key


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    folder: Path = tmp_path_factory.mktemp("described")
    keys, others = {kind: new_key() for kind in KEYS}, {"everything": new_key()}
    file = folder / "tenants.toml"
    file.write_text(table("own", KEYS, keys) + table("other", {"everything": EVERYTHING}, others))
    with running(ForkedService(folder, tenants=file, anonymous=False)) as service:
        document = requests.get(f"{service.url}/openapi.json", timeout=60).json()
        keys["revoked"] = revoked_key(service)
        found = Tenants(service, keys, SCHEMATHESIS.openapi.from_dict(document))
        with found.session:
            found.put(found.other, SECRET, others["everything"])
            yield found
            headers = {"Authorization": f"Bearer {others['everything']}"}
            answer = found.session.get(f"{found.url}{found.other}/content", headers=headers, timeout=60)
            assert answer.content == SECRET


def is_allowed(route: Route, kind: str) -> bool:
    """Whether a key of this kind may use the route at all."""
    if route.scope is PUBLIC:
        return True
    scopes = KEYS[kind]
    if scopes is None or (kind in OF_SESSIONS and not route.is_of_session):
        return False
    return route.needed is None or route.needed in scopes


def conformance() -> list[Any]:
    return [
        SCHEMATHESIS.checks.not_a_server_error,
        CHECKS.content_type_conformance,
        CHECKS.response_headers_conformance,
        CHECKS.response_schema_conformance,
        CHECKS.status_code_conformance,
    ]


def ask(tenants: Tenants, operation: Any, kind: str) -> None:
    """Send requests of one operation: for made-up captures, own ones, and those of the other tenant."""
    route, headers = OPERATIONS[operation.label], {"Authorization": f"Bearer {tenants.keys[kind]}"}
    paths = ["", tenants.own] if route.method == "PUT" else ["", tenants.own, tenants.other]

    @hypothesis.settings(
        max_examples=EXAMPLES, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(case=tenants.cases[operation.label], path=st.sampled_from(paths))
    def answered(case: Any, path: str) -> None:
        is_of_capture = "ref" in (case.path_parameters or {})
        if path and is_of_capture:
            case.path_parameters["ref"] = path.rpartition("/")[2]
        response = case.call(base_url=tenants.url, session=tenants.session, headers=headers, timeout=60)
        case.validate_response(response, checks=conformance())
        is_good = response.status_code < 400

        assert is_allowed(route, kind) or not is_good, response.status_code
        assert not (is_good and is_of_capture and path == tenants.other)
        assert SECRET not in response.content

    answered()


@pytest.mark.parametrize("kind", KEYS)
def test_every_answer_is_as_described_and_nothing_goes_beyond_the_key(tenants: Tenants, kind: str) -> None:
    for operation in tenants.operations:
        tenants.store()
        ask(tenants, operation, kind)
