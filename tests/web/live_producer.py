"""The producer of a live capture over plain HTTP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
from overspill import wire
from overspill.wire import Header
from overspill.wire.checksums import encode_crc32c

if TYPE_CHECKING:
    from tests.web.conftest import Api

CAPTURE = "cap_" + "a" * 20


class Producer:
    """Appends to one capture over plain HTTP."""

    def __init__(self, api: Api, capture: str = CAPTURE, word: str = "me") -> None:
        self.api, self.path, self.word, self.offset = api, f"/v1/captures/{capture}", word, 0

    async def begin(self, expected: int = 201, **headers: str) -> Any:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        response = await self.api.send(
            "PUT", f"{self.path}/live", headers={Header.PRODUCER: self.word, **given}
        )
        assert response.status == expected, await response.text()
        return await response.json()

    async def append(self, data: bytes, expected: int = 200, **changed: str) -> Any:
        status, answer = await self.try_append(data, **changed)
        assert status == expected, answer
        return answer

    async def try_append(self, data: bytes, **changed: str) -> tuple[int, Any]:
        headers = {
            Header.PRODUCER: self.word,
            Header.UPLOAD_OFFSET: str(self.offset),
            Header.CONTENT_DIGEST: encode_crc32c(data),
            **{name.replace("_", "-"): value for name, value in changed.items()},
        }
        response = await self.api.send("POST", f"{self.path}/append", data=data, headers=headers)
        answer = await response.json()
        if response.status == 200:
            self.offset = answer["accepted"]
            assert response.headers[Header.UPLOAD_OFFSET] == str(self.offset)
        return response.status, answer

    async def complete(self, expected: int = 200, **changed: Any) -> Any:
        body = {"offset": self.offset, **changed}
        response = await self.api.send(
            "POST",
            f"{self.path}/complete",
            data=json.dumps(body).encode(),
            headers={Header.PRODUCER: self.word, "Content-Type": "application/json"},
        )
        assert response.status == expected, await response.text()
        return await response.json()

    async def entry(self) -> wire.Entry:
        response = await self.api.get(self.path)
        return msgspec.json.decode(await response.read(), type=wire.Entry)
