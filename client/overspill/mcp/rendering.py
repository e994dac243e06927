"""The reading tools and their answers as the protocol writes them, in the form of each revision."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from overspill.agent_tools.inspect_request import MAX_CHARS

if TYPE_CHECKING:
    from overspill.agent_tools.agent_tool import AgentTool, Answer

MAX_RESULT_CHARS: Final = "anthropic/maxResultSizeChars"
"""The longest result that Claude Code leaves whole."""
VERSION: Final = "io.modelcontextprotocol/protocolVersion"
"""The field of `_meta` in which a request names its revision, from 2026-07-28 on."""
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
"""The field of `_meta` in which a request says who its client is, from 2026-07-28 on."""
SDK_REVISION: Final = "2025-11-25"
"""The revision whose form the types of the SDK and of FastMCP have."""
STRUCTURED_SINCE: Final = "2025-06-18"
_RESULT_TYPE_SINCE: Final = "2026-07-28"
_ANNOTATIONS_SINCE: Final = "2025-03-26"

OUTPUT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "error": {"type": "string", "description": "What is wrong, and what to do."},
        "code": {"type": "string", "description": "The stable name of the error."},
    },
    "additionalProperties": True,
}
"""The JSON Schema of every answer. Its other fields depend on the mode."""


def definition(tool: AgentTool, revision: str, *, name: str | None = None) -> dict[str, Any]:
    """Return the entry of `tools/list`. `revision` is the protocol's, such as `2025-11-25`."""
    fields: dict[str, Any] = {
        "name": name or tool.name,
        "description": tool.description,
        "inputSchema": dict(tool.parameters),
        "_meta": {MAX_RESULT_CHARS: MAX_CHARS},
    }
    if revision >= _ANNOTATIONS_SINCE:
        fields["annotations"] = {
            "title": tool.name.replace("_", " ").capitalize(),
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        }
    if revision >= STRUCTURED_SINCE:
        fields["outputSchema"] = OUTPUT_SCHEMA
    return fields


def result(answer: Answer, revision: str) -> dict[str, Any]:
    """Return the result of a call of a reading tool."""
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    fields: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": "error" in answer}
    if revision >= STRUCTURED_SINCE:
        fields["structuredContent"] = answer
    if revision >= _RESULT_TYPE_SINCE:
        fields["resultType"] = "complete"
    return fields
