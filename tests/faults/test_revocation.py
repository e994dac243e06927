"""A key that is revoked ends on every replica within 15 seconds, however it was revoked."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from aiohttp import ClientSession
from overspill.wire import Path as Route
from overspill_service.tenants.keys import hash_key, new_key

from tests.servers.overspill import service_command

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.conftest import StartServices

WITHIN: Final = 15.0
"""Seconds that an operator is promised."""
LOOK_SECONDS: Final = 0.1


async def status(session: ClientSession, url: str, key: str) -> int:
    async with session.get(f"{url}{Route.USAGE}", headers={"Authorization": f"Bearer {key}"}) as response:
        return response.status


def tenants(*keys: str) -> str:
    lines = (f'[[tenants.keys]]\nhash = "{hash_key(key)}"\nscopes = ["read", "admin"]\n' for key in keys)
    return '[[tenants]]\nname = "a"\n' + "".join(lines)


async def seconds_until_refused(session: ClientSession, url: str, key: str, since: float) -> float:
    async with asyncio.timeout(4 * WITHIN):
        while await status(session, url, key) != 401:  # noqa: ASYNC110  (another process changes it)
            await asyncio.sleep(LOOK_SECONDS)
    return time.monotonic() - since


async def test_a_revoked_key_ends_on_every_replica_within_15_seconds(
    start_services: StartServices, redis_url: str, tmp_path: Path
) -> None:
    file, admin, in_file = tmp_path / "tenants.toml", new_key(), new_key()
    file.write_text(tenants(admin, in_file))
    back_ends: dict[str, Any] = {
        "store": f"file://{tmp_path}/objects",
        "catalog": redis_url,
        "anonymous": False,
    }
    urls = [each.url for each in start_services(2, tenants=file, **back_ends)]
    flags = [word for name in ("store", "catalog") for word in (f"--{name}", back_ends[name])]
    made = [service_command("keys", "create", "--tenant", "a", *flags).stdout.strip() for _ in range(2)]
    keys = dict(zip(("by command", "by endpoint", "from the file"), (*made, in_file), strict=True))

    async with ClientSession() as session:
        before = [await status(session, url, key) for url in urls for key in keys.values()]
        ended = {}
        file.write_text(tenants(admin))
        ended["from the file"] = time.monotonic()
        headers = {"Authorization": f"Bearer {admin}"}
        route = Route.KEY.replace("{id}", hash_key(keys["by endpoint"])[:12])
        async with session.delete(f"{urls[0]}{route}", headers=headers) as answer:
            assert answer.status == 200, await answer.text()
        ended["by endpoint"] = time.monotonic()
        revoked = service_command("keys", "revoke", hash_key(keys["by command"]), *flags)
        ended["by command"] = time.monotonic()
        took = await asyncio.gather(
            *(
                seconds_until_refused(session, url, key, ended[how])
                for url in urls
                for how, key in keys.items()
            )
        )
        still = [await status(session, url, admin) for url in urls]

    assert (revoked.returncode, before, still) == (0, [200] * 6, [200] * 2)
    assert max(took) < WITHIN, dict(zip([(url, how) for url in urls for how in keys], took, strict=True))
