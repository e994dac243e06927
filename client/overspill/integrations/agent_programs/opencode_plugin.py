"""The plugin that opencode loads: it asks the hook about results that may be too long."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

FIRST_LINE: Final = "// Written by `overspill init opencode`, which replaces this file and takes it away."
_SMALL_CHARS: Final = 4_000
"""A result of at most this length is not too long by the default limits, whatever its characters are."""
_PLUGIN: Final = """
import { spawn } from "node:child_process"

const COMMAND = %(command)s
const SMALL_CHARS = %(small)d
const TIMEOUT_MS = 30_000

// Most results are short, and cost no process. One with an outputPath is the rest of a longer one.
const mayBeLong = (result) =>
  result.outputPath || process.env.OVERSPILL_POLICY || JSON.stringify(result).length > SMALL_CHARS

// Resolves to the hook's answer. Rejects if there is none in time.
const ask = (event) =>
  new Promise((resolve, reject) => {
    const hook = spawn(COMMAND[0], COMMAND.slice(1), {
      stdio: ["pipe", "pipe", "ignore"], timeout: TIMEOUT_MS, killSignal: "SIGKILL",
    })
    const chunks = []
    hook.on("error", reject)
    hook.stdin.on("error", () => {}) // it ended early: then it has no answer, which "close" tells
    hook.stdout.on("data", (chunk) => chunks.push(chunk))
    hook.on("close", () => {
      try {
        resolve(JSON.parse(Buffer.concat(chunks).toString()))
      } catch (error) {
        reject(error)
      }
    })
    hook.stdin.end(JSON.stringify(event))
  })

export const Overspill = async () => ({
  "tool.execute.after": async ({ tool, sessionID, callID }, output) => {
    try {
      const { output: text, content, isError, metadata } = output ?? {}
      const result = { output: text, content, isError, outputPath: metadata?.outputPath }
      if (mayBeLong(result)) Object.assign(output, await ask({ tool, sessionID, callID, result }))
    } catch {
      // Whatever goes wrong, the result stays as it is.
    }
  },
})
"""


def plugin_text(command: Sequence[str], small: int = _SMALL_CHARS) -> str:
    """Return the plugin which starts `command` for a result of more than `small` characters."""
    return FIRST_LINE + "\n" + _PLUGIN % {"command": json.dumps(list(command)), "small": small}


def is_ours(text: str) -> bool:
    """Return whether we wrote a file with this text."""
    return text.startswith(FIRST_LINE)
