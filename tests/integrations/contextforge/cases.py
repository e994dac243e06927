"""ContextForge's own plugin manager, with its policies, reads the entry of the page and calls the plugin."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cpex.framework import GlobalContext, PluginManager, ToolHookType, ToolPostInvokePayload
from mcpgateway.common.models import ToolResult
from mcpgateway.plugins.policy import HOOK_PAYLOAD_POLICIES
from overspill import SyncClient

from tests.integrations.kit import tools

if TYPE_CHECKING:
    from collections.abc import Iterator

URL = os.environ["OVERSPILL_URL"]
MANY = 20_000
PAGE = Path(__file__).parents[3] / "client" / "docs" / "integrations" / "gateways.md"
PICTURE = {"type": "image", "data": tools.png(), "mimeType": "image/png"}


@pytest.fixture
def config(tmp_path: Path) -> str:
    """Return a file with the entry of the page."""
    [entry] = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    path = tmp_path / "config.yaml"
    path.write_text(entry)
    return str(path)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Let no manager be that of a test before: all of a process share their state."""
    PluginManager.reset()
    yield
    PluginManager.reset()


def after(config: str, *results: dict[str, Any], user: Any = "ada@example.com") -> list[dict[str, Any]]:
    """Do what the gateway does with the results of a tool."""

    async def run() -> list[dict[str, Any]]:
        manager = PluginManager(config, hook_policies=HOOK_PAYLOAD_POLICIES)
        await manager.initialize()
        context = GlobalContext(request_id="1", user=user, server_id="files")
        shown = []
        for result in results:
            wire = ToolResult.model_validate(result).model_dump(by_alias=True)
            found, _ = await manager.invoke_hook(
                ToolHookType.TOOL_POST_INVOKE, ToolPostInvokePayload(name="logs", result=wire), context
            )
            assert found.continue_processing
            new = found.modified_payload.result if found.modified_payload else wire
            shown.append(ToolResult.model_validate(new).model_dump(by_alias=True, exclude_none=True))
        await manager.shutdown()
        return shown

    return asyncio.run(run())


def text(content: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": content}], **more}


def test_a_long_result_becomes_a_notice_and_is_stored_whole(config: str) -> None:
    given = text(tools.lines(MANY), isError=True)
    given["content"].append(PICTURE)
    [shown] = after(config, given)
    capture = re.findall(r"cap_[a-z2-7]{20}", shown["content"][0]["text"])[0]
    with SyncClient(URL) as client:
        entry = client.get(capture)
        stored = client.content(capture).decode()

    assert stored == tools.lines(MANY)
    assert (entry.tool, entry.session) == ("logs", "ada@example.com/files")
    assert shown["isError"] is True
    assert shown["content"][1]["data"] == PICTURE["data"]


def test_a_short_result_stays_the_same(config: str) -> None:
    [shown] = after(config, text("short"))

    assert shown["content"][0]["text"] == "short"


def test_structured_content_stays_an_object(config: str) -> None:
    rows = tools.query(5_000)
    [shown] = after(config, text(json.dumps(rows), structuredContent=rows))

    assert shown["structuredContent"]["count"] == 5_000
    assert len(json.dumps(shown)) < 60_000


@pytest.mark.parametrize("user", [None, {"email": "ada@example.com"}, "ada"])
def test_whoever_asks_is_served(config: str, user: Any) -> None:
    [shown] = after(config, text(tools.lines(MANY)), user=user)

    assert "[overspill]" in shown["content"][0]["text"]


def test_without_a_service_the_result_stays(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERSPILL_URL", "http://127.0.0.1:1")
    [shown] = after(config, text(tools.lines(MANY)))

    assert shown["content"][0]["text"] == tools.lines(MANY)


def test_a_policy_that_is_wrong_is_told_at_the_start(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "policy.toml").write_text("version = 1\nmax_bites = 3\n")
    monkeypatch.setenv("OVERSPILL_POLICY", str(tmp_path / "policy.toml"))
    [shown] = after(config, text(tools.lines(MANY)))

    assert "do you mean 'max_bytes'" in caplog.text
    assert shown["content"][0]["text"] == tools.lines(MANY)


def test_results_at_once_keep_their_own(config: str) -> None:
    shown = after(config, *(text(tools.lines(MANY + number)) for number in range(5)))
    captures = [re.findall(r"cap_[a-z2-7]{20}", each["content"][0]["text"])[0] for each in shown]
    with SyncClient(URL) as client:
        assert [client.get(each).lines for each in captures] == [MANY + number for number in range(5)]
