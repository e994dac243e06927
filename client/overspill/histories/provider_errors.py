"""Understands what model providers and gateways say when a request is too large for them.

Text in, values out; `overflow` knows where in an exception the text is. Providers document few of these
messages, so the patterns come from reports of their users. The tests name the provider of each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MAX_TEXT: Final = 8 * 1024
"""Characters of a message that are searched. Some providers repeat the whole request after that."""


class OverflowKind(StrEnum):
    """The thing that is too large according to an error: the model's context, or the request itself."""

    CONTEXT = "context window"
    PAYLOAD = "payload"


@dataclass(frozen=True, slots=True)
class Overflow:
    """A provider's refusal of a call that is too large.

    `limit` and `actual` are None if the provider does not say them. They are tokens for the context window
    and bytes for a payload (characters for a single string). `actual` is more than `limit`; it includes the
    room for the answer if the provider counts that.
    """

    kind: OverflowKind
    limit: int | None = None
    actual: int | None = None


def overflow_in(text: str) -> Overflow | None:
    """Return the overflow that `text` speaks of. None for rate limits, quotas, parameters and all else."""
    text = text[:MAX_TEXT].lower()
    if _RATE.search(text):
        return single_request(text)
    if _OTHER.search(text):
        return None
    for kind, patterns in _WORDINGS.items():
        for pattern in patterns:
            if found := pattern.search(text):
                return _overflow(kind, found)
    return _one_string(text)


def is_rate_limit(text: str) -> bool:
    """Return whether `text` speaks of a rate or a quota: then waiting or paying helps."""
    return _RATE.search(text[:MAX_TEXT].lower()) is not None


def overflow_of_code(code: str) -> OverflowKind | None:
    """Return the kind of overflow that a provider's error code or type stands for, or None."""
    return _CODES.get(code.lower())


_CODES: Final = {
    "context_length_exceeded": OverflowKind.CONTEXT,  # OpenAI and those that are compatible with it
    "context_window_exceeded": OverflowKind.CONTEXT,
    "exceed_context_size_error": OverflowKind.CONTEXT,  # llama.cpp
    "model_max_prompt_tokens_exceeded": OverflowKind.CONTEXT,  # GitHub Copilot
    "tokens_limit_reached": OverflowKind.CONTEXT,  # GitHub Models
    "prompt_too_long": OverflowKind.CONTEXT,
    "1261": OverflowKind.CONTEXT,  # Zhipu
    "3051": OverflowKind.CONTEXT,  # Mistral
    "request_too_large": OverflowKind.PAYLOAD,  # Anthropic
    "payload_too_large": OverflowKind.PAYLOAD,
    "tool_output_too_large": OverflowKind.PAYLOAD,
    "tool_result_too_large": OverflowKind.PAYLOAD,
    "request_entity_too_large": OverflowKind.PAYLOAD,
}

_RATE: Final = re.compile(
    r"rate.?limit|too many requests|tokens? per (?:min|day|hour|second)|\b[tr]p[md]\b|throttl|\bquota\b"
    r"|resource.?exhausted|wait before trying|(?:try again|retry) (?:later|in \d|after \d)"
    r"|more credits|credit balance|insufficient.?(?:funds|balance|credits)"
)

# One request above the tokens of a whole minute. OpenAI and Groq call it a rate limit, but waiting is no use.
_SINGLE_REQUEST: Final = re.compile(r"request too large for .{1,300}limit:? ([\d,]+), requested:? ([\d,]+)")

# Here the answer is too long, not the request.
_OTHER: Final = re.compile(
    r"supports at most [\d,]+ (?:completion|output) tokens|maximum allowed number of output tokens"
    r"|max_tokens or model output limit was reached|length limit was reached"
    r"|maximum tokens you requested exceeds"
)

# OpenAI limits single strings. Names and ids have small limits, which no result that spills could meet.
_STRING: Final = re.compile(r"string too long.{1,40}maximum length ([\d,]+)(?:.{1,40}length ([\d,]+))?")
_MIN_STRING: Final = 10_000

_NUMBER: Final = "[0-9,]+"


def _pattern(wording: str) -> re.Pattern[str]:
    """Compile a message: `<limit>`, `<actual>` and `<extra>` stand for numbers; `extra` adds to `actual`."""
    return re.compile(re.sub(r"<(limit|actual|extra)>", rf"(?P<\1>{_NUMBER})", wording))


_MAXIMUM: Final = r"maximum context (?:length|window|limit)(?: of [\w./:-]{1,100})? (?:is|of)"

_CONTEXT: Final = (
    # Anthropic, also through Bedrock and Vertex
    r"prompt is too long: <actual> tokens > <limit> maximum",
    r"input length and .{0,3}max_tokens.{0,3} exceed context limit(?:: <actual> \+ <extra> > <limit>)?",
    # Fireworks
    r"prompt is too long: <actual>, model maximum context length: <limit>",
    r"(?:prompt|query) (?:is )?too long",
    # vLLM in its newer wordings
    r"too large: <extra>\..{1,20} maximum context length is <limit> tokens.{1,20} has <actual> input tokens",
    r"maximum context length is <limit> tokens\..{1,160} for a total of at least <actual> tokens",
    # Mistral
    r"contains <actual> tokens.{0,40} too large for model with <limit> maximum context length",
    # OpenAI and most that are compatible with it; SambaNova, Cloudflare and SGLang
    rf"{_MAXIMUM} <limit>\b.{{0,80}}?(?:requested(?: about| a total of)?|in|request has|will take) <actual>",
    rf"{_MAXIMUM} <limit>\b",
    r"\(<actual>\) exceeded maximum context length \(<limit>\)",
    r"maximum context (?:length|window|limit)",
    r"input tokens exceed the configured limit of <limit> tokens\.(?: your messages resulted in <actual>)?",
    r"exceeds? the (?:model.{0,3}s )?context (?:window|length)",
    # Google, AI Studio and Vertex
    r"input token count \(<actual>\) exceeds the maximum number of tokens allowed \(<limit>\)",
    r"input token count is <actual> but (?:the )?model only supports up to <limit>",
    r"input token count.{0,20} exceeds the maximum",
    # Amazon Bedrock
    r"input is too long for requested model",
    r"number of input tokens exceeds maximum length",
    # xAI
    r"maximum prompt length is <limit> but the request contains <actual>",
    # GitHub Copilot, GitHub Models
    r"prompt token count of <actual> exceeds the limit of <limit>",
    r"request body too large for .{1,100} model\. max size: <limit> tokens",
    # llama.cpp and its Python binding
    r"request(?: \(<actual> tokens\))? exceeds the available context size(?: \(<limit> tokens\))?",
    r"requested tokens \(<actual>\) exceed context window of <limit>",
    # LM Studio
    r"greater than the context length(?: \(n_keep: <actual>\s*>=\s*n_ctx: <limit>\))?",
    r"keep the first <actual> tokens when context .{1,80} context length of only <limit>",
    r"input length <actual> exceeds context length <limit>",
    # Ollama
    r"input length exceeds the context length",
    r"exceeded max context length",
    # Kimi
    r"exceeded model token limit: <limit> \(re ?quested: <actual>\)",
    r"input token length too long",
    # Cerebras, Groq
    r"current length is <actual> while limit is <limit>",
    r"reduce the length of (?:the |your )?(?:messages|prompt|input)",
    # Hugging Face TGI, Together
    r"must be <= <limit>\. given: <actual> .{0,3}inputs.{0,3} tokens and <extra>",
    r"inputs.{0,3} must have less than <limit> tokens\. given: <actual>",
    # SGLang and older vLLM
    r"input \(<actual> tokens\) is longer than the model.{0,3}s context length \(<limit> tokens\)",
    r"input length \(<actual> tokens\) exceeds the maximum allowed length \(<limit> tokens\)",
    r"total length <actual>\) is too long to fit into the model \(context length <limit>\)",
    r"prompt \(<actual> tokens\) is too long and exceeds limit of <limit>",
    # Alibaba, Zhipu, MiniMax (whose number in brackets is a code), Volcengine
    r"range of input length should be \[\d+, ?<limit>\]",
    r"prompt exceeds max(?:imum)? length",
    r"context window exceeds limit",
    r"exceed max message tokens",
    # Cohere
    r"number of tokens .{0,40}cannot exceed <limit> - received <actual>",
    # in general, and type names of LiteLLM and LangChain in a proxy's text
    r"context[ _]?(?:length|window|size|limit)[ _]?(?:limit[ _]?)?(?:was |is |has been )?(?:exceed|overflow)",
    r"exceeds? (?:the )?(?:maximum )?token limit",
)

_RESULT: Final = r"(?:tool|function)[ _-]?(?:call[ _-]?)?(?:output|result|response|message)s?(?: content)?"

_PAYLOAD: Final = (
    r"too many total text bytes: <actual> > <limit>",  # Anthropic
    r"request exceeds the maximum (?:allowed )?(?:size|number of bytes)",  # Anthropic
    r"request_too_large",
    r"maximum request body size <limit> exceeded, actual body size <actual>",
    r"(?:request|payload|body) size exceeds the limit: <limit> bytes",  # Google
    r"value at 'body' .{1,60}length less than or equal to <limit>",  # Amazon Bedrock
    r"(?:request|payload|content|body|entity) (?:entity |body )?(?:is )?too large",  # HTTP servers
    # gateways and agents' servers, of one result of a tool
    rf"{_RESULT} (?:is |are |was |were )?(?:too (?:large|long|big)|oversized)",
    rf"(?:oversized|too (?:large|long|big)) (?:a )?{_RESULT}",
    (
        rf"{_RESULT}(?: size| length)? (?:of <actual> \w+ )?"
        r"(?:exceeds?|exceeded|is (?:above|over|larger than)) (?:the |its )?"
        r"(?:maximum|max|limit|allowed|size|length|token)(?:[^.]{0,40}? (?:of )?<limit>)?"
    ),
)

_WORDINGS: Final = {
    OverflowKind.CONTEXT: tuple(map(_pattern, _CONTEXT)),
    OverflowKind.PAYLOAD: tuple(map(_pattern, _PAYLOAD)),
}


def _overflow(kind: OverflowKind, found: re.Match[str]) -> Overflow:
    groups = found.groupdict()
    limit, actual, extra = (_int(groups.get(name)) for name in ("limit", "actual", "extra"))
    return sized(kind, limit, None if actual is None else actual + (extra or 0))


def sized(kind: OverflowKind, limit: int | None, actual: int | None) -> Overflow:
    """Return an overflow. Drop `actual` if it is not above the limit: then it counts something else."""
    return Overflow(kind, limit, actual if limit is None or actual is None or actual > limit else None)


def single_request(text: str) -> Overflow | None:
    """Return the overflow in what looks like a rate limit, if one request alone is above that limit."""
    found = _SINGLE_REQUEST.search(text[:MAX_TEXT].lower())
    if found is None:
        return None
    limit, requested = _int(found.group(1)), _int(found.group(2))
    if limit is None or requested is None or requested <= limit:
        return None
    return Overflow(OverflowKind.CONTEXT, limit, requested)


def _one_string(text: str) -> Overflow | None:
    found = _STRING.search(text)
    limit = None if found is None else _int(found.group(1))
    if found is None or limit is None or limit < _MIN_STRING:
        return None
    return sized(OverflowKind.PAYLOAD, limit, _int(found.group(2)))


def _int(digits: str | None) -> int | None:
    """Read a number as providers write it. None if there is none, or if no model could have it."""
    digits = (digits or "").replace(",", "")
    return int(digits) if 0 < len(digits) <= len(str(2**63)) else None
