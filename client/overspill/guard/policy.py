"""The settings of a guard: which outputs spill, where they are stored, and what the model sees of them.

A policy does not change once it is built. The profiles have the exact settings of other designs: `persisted`,
`clamped`, `clamped_to_share`, `token_limited`, `file_based` and `capped`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from overspill.advice.usual import MAX_BYTES, TOOL_BYTES
from overspill.guard import policy_defaults as defaults
from overspill.guard.band import Band
from overspill.guard.hosts import host_named
from overspill.guard.policy_checks import (
    by_name,
    check_policy,
    check_window,
    frozen_table,
    redaction_named,
    strategies_by_tool,
)
from overspill.guard.redacting import Masking
from overspill.guard.tool_limits import most_tokens, share_in_chars, whole_limits
from overspill.previews.cut import ENDS, HEAD, PREVIEW, STRATEGIES, Strategy
from overspill.previews.styles import CAPPED, CLAMPED, COUNTED, MARKED, PARTIAL, PERSISTED, STYLES
from overspill.redaction.masking import Redaction
from overspill.text.limits import CHARS_PER_TOKEN, UNLIMITED, Limits, stricter
from overspill.text.measure import MAX_BYTES_PER_CHARACTER
from overspill.text.tokenizers import Tiktoken
from overspill.text.tokens import TokenCounter
from overspill.wire import DEFAULT_TTL

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from overspill.previews.styles import Style
    from overspill.redaction.redactor import Redactor
    from overspill.text.tokenizers import Tokenizer

_DEFAULT_BAND: Final = Band()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The settings of a guard.

    Limits: an output spills if it has more than `max_bytes`, `max_lines`, `max_chars` or `max_tokens`, or
    more tokens than the share `context_share` of a context window of `context_tokens`. None is no limit.
    `tools` maps a tool's name to its limit in bytes, or to whole `Limits`; it is merged over `TOOL_BYTES`.
    The tools in `exempt` never spill: the host vouches for them. By default they are `inspect_output` and
    `list_captures`; under these names a result of more than 40,000 characters, which none has, spills too.
    An output stays if a notice would not be shorter by the share `least_gain` of the output; None lets it
    spill in any case. A stream of more than `max_stream_bytes` is ended there, and its notice says so.

    Tokens: `tokenizer` returns the tokens of a text, or their number. Without one, or if it fails, they are
    estimated, by `chars_per_token` or else from the text's characters; the estimate is never too low.

    The notice: `strategy` says which part of an output is shown, `strategies` has those of single tools, and
    `style` says which words stand around it. They also take a name, such as "HEAD". `preview_bytes` and
    `preview_lines` bound the preview, `lost_preview_bytes` bounds it if nothing could be stored (None: as
    `preview_bytes`). `reader` is the call that reads more; `{id}` in it becomes the capture id. With
    `identical`, the notice names an earlier output of the session that has the same bytes; from the third
    time on it has no preview.

    Secrets: `redaction` says what becomes of them in what is captured or previewed: "tag" puts their kind in
    their place, "mask" stars, and "off" leaves them. `redact_patterns` has patterns of your own by kind. With
    `redact_inline`, outputs that stay in the conversation are masked too.

    Storing: `bands` say where outputs go, by size. `ttl` is how many seconds a capture lives; None leaves it
    to the service. `wait` is how many seconds an agent waits for the service at most; see `deadline`.

    With `terminals`, `reading_tools` and every adapter give the agent `get_terminal_output` too.

    Raises `ValueError`, which names the setting, for a value that makes no sense.
    """

    max_bytes: int = MAX_BYTES
    max_lines: int = defaults.MAX_LINES
    max_chars: int | None = None
    max_tokens: int | None = None
    context_tokens: int | None = None
    context_share: float = defaults.CONTEXT_SHARE
    tokenizer: Tokenizer | None = None
    chars_per_token: float | None = None
    tools: Mapping[str, int | Limits] = field(default_factory=dict)
    exempt: frozenset[str] = defaults.READING_TOOLS
    strategy: Strategy | str = PREVIEW
    strategies: Mapping[str, Strategy | str] = field(default_factory=dict)
    style: Style | str = MARKED
    bands: tuple[Band, ...] = (_DEFAULT_BAND,)
    preview_bytes: int = defaults.PREVIEW_BYTES
    preview_lines: int = 100
    lost_preview_bytes: int | None = 4 * defaults.PREVIEW_BYTES
    least_gain: float | None = defaults.MIN_GAIN
    identical: bool = True
    max_stream_bytes: int = defaults.MAX_STREAM_BYTES
    ttl: int | None = None
    wait: float = 2.0
    reader: str = defaults.READER
    redaction: Redaction | str = Redaction.TAG
    redact_patterns: Mapping[str, str] = field(default_factory=dict)
    redact_inline: bool = False
    terminals: bool = False
    _usual: Limits = field(init=False, repr=False, compare=False)
    _limits: Mapping[str, Limits] = field(init=False, repr=False, compare=False)
    _masking: Masking = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "strategy", by_name("strategy", self.strategy, STRATEGIES))
        object.__setattr__(self, "style", by_name("style", self.style, STYLES))
        object.__setattr__(self, "strategies", strategies_by_tool(self.strategies))
        object.__setattr__(self, "redaction", redaction_named(self.redaction))
        object.__setattr__(self, "redact_patterns", frozen_table(self.redact_patterns))
        check_policy(self)
        object.__setattr__(self, "tools", frozen_table({**TOOL_BYTES, **self.tools}))
        object.__setattr__(self, "exempt", frozenset(self.exempt))
        object.__setattr__(self, "bands", tuple(self.bands))
        tokens = most_tokens(self.max_tokens, self.context_tokens, self.context_share)
        usual = Limits(self.max_bytes, self.max_lines, self.max_chars, tokens, self._own_counter())
        table = {tool: whole_limits(limit, usual) for tool, limit in self.tools.items()}
        object.__setattr__(self, "_usual", usual)
        object.__setattr__(self, "_limits", table)
        assert isinstance(self.redaction, Redaction)
        object.__setattr__(self, "_masking", Masking(self.redaction, self.redact_patterns))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settings: another process computes the limits again."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.init}
        values |= {"tools": dict(self.tools), "strategies": dict(self.strategies)}
        values |= {"redact_patterns": dict(self.redact_patterns)}
        return partial(type(self), **values), ()

    def cut_strategy(self, tool: str) -> Strategy:
        """Return the strategy for a tool's outputs: its own, or else the usual one."""
        strategy = self.strategies.get(tool, self.strategy)
        assert isinstance(strategy, Strategy)
        return strategy

    @property
    def notice_style(self) -> Style:
        """`style` as an object, even if it was given by name."""
        assert not isinstance(self.style, str)
        return self.style

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Return the policy of a TOML file, as `overspill advise` writes it; it is read once.

        Raises `OSError`, and `ValueError` that names the file and what is wrong in it.
        """
        from overspill.guard.policy_file import read_policy_file  # noqa: PLC0415  (loaded when it is needed)

        settings = read_policy_file(Path(path), [each.name for each in fields(cls) if each.init])
        try:
            return cls(**settings)
        except ValueError as error:
            raise ValueError(f"{path} is not a policy: {error}") from error

    @classmethod
    def persisted(cls, *, tools: Mapping[str, int] | None = None) -> Policy:
        """Return the policy of an output guard: limits in bytes by tool; show the beginning of an output."""
        return cls(
            max_lines=UNLIMITED,
            tools=tools or {},
            strategy=HEAD,
            style=PERSISTED,
            preview_lines=UNLIMITED,
            lost_preview_bytes=None,
            least_gain=None,
        )

    @classmethod
    def clamped(cls, *, max_bytes: int = defaults.CLAMP_BYTES, max_lines: int = defaults.MAX_LINES) -> Policy:
        """Return the policy of a hard clamp: one limit for all tools; keep the beginning, as much as fits."""
        return cls(strategy=HEAD, style=CLAMPED).uniform(Limits(max_bytes, max_lines))

    @classmethod
    def clamped_to_share(
        cls, context_tokens: int = defaults.CONTEXT_TOKENS, *, context_share: float = defaults.CONTEXT_SHARE
    ) -> Policy:
        """Return the policy of a clamp to a share of the context window: 2,000 to 400,000 characters.

        A token is 4 characters. Keep the beginning, up to a line's end if that costs no more than a fifth.
        """
        check_window(context_tokens, context_share)
        limits = share_in_chars(context_tokens, context_share)
        return cls(strategy=HEAD._replace(spare=defaults.LINE_SPARE), style=PARTIAL).uniform(limits)

    @classmethod
    def token_limited(
        cls,
        context_tokens: int = defaults.CONTEXT_TOKENS,
        *,
        context_share: float = defaults.CONTEXT_SHARE,
        tokenizer: Tokenizer | None = None,
    ) -> Policy:
        """Return the policy of a limit in tokens: a share of the context window. Keep 80 % of the limit.

        `tokenizer` counts. Without it tiktoken does if it is installed, else a token is 4 characters.
        """
        policy = cls(
            max_bytes=UNLIMITED,
            max_lines=UNLIMITED,
            context_tokens=context_tokens,
            context_share=context_share,
            tokenizer=Tiktoken() if tokenizer is None else tokenizer,
            chars_per_token=CHARS_PER_TOKEN,
            strategy=HEAD._replace(share=defaults.TOKENS_KEPT),
            style=COUNTED,
        )
        return replace(policy, tools=dict.fromkeys(TOOL_BYTES, policy.limits("")))

    @classmethod
    def file_based(
        cls, *, inline_chars: int = defaults.INLINE_CHARS, inline_lines: int = defaults.INLINE_LINES
    ) -> Policy:
        """Return the policy of file-based output management: one limit for all tools, a day of retention."""
        return cls(ttl=DEFAULT_TTL, least_gain=0.0).limited(inline_chars, inline_lines)

    @classmethod
    def capped(cls, max_bytes: int = defaults.CAPPED_BYTES) -> Policy:
        """Return the policy of one ceiling in bytes for all tools: keep head and tail, count the rest."""
        return cls(strategy=ENDS, style=CAPPED).uniform(Limits(max_bytes))

    def for_host(self, host: str) -> Policy:
        """Return the policy with limits that fit what an agent program, such as `claude-code`, shows whole.

        Raises `ValueError` for a program that is not in `overspill.guard.hosts.HOSTS`.
        """
        program = host_named(host)
        policy = self.uniform(stricter(self._usual, program.limits))
        tools = {tool: stricter(limits, program.limits) for tool, limits in self._limits.items()}
        return replace(policy, tools=tools).with_previews(program.answer_chars // 2)

    def limited(self, inline_chars: int, inline_lines: int) -> Policy:
        """Return the policy with the same limits in characters and lines for every tool."""
        return self.uniform(Limits(inline_chars * MAX_BYTES_PER_CHARACTER, inline_lines, inline_chars))

    def uniform(self, limits: Limits) -> Policy:
        """Return the policy with `limits` for every tool."""
        return replace(
            self,
            max_bytes=limits.max_bytes,
            max_lines=limits.max_lines,
            max_chars=limits.max_chars,
            max_tokens=limits.max_tokens,
            context_tokens=None,
            tools=dict.fromkeys(self.tools, limits),
        )

    def merged(self, tools: Mapping[str, int | Limits]) -> Policy:
        """Return the policy with `tools` merged over its own."""
        return replace(self, tools={**self.tools, **tools})

    def with_previews(self, most: int) -> Policy:
        """Return the policy with previews of at most `most` bytes, of lost outputs too."""
        shown, lost = min(self.preview_bytes, most), min(self.lost_preview, most)
        return replace(self, preview_bytes=shown, lost_preview_bytes=lost)

    @property
    def lost_preview(self) -> int:
        """The most bytes of a preview if nothing could be stored."""
        return self.preview_bytes if self.lost_preview_bytes is None else self.lost_preview_bytes

    def limits(self, tool: str) -> Limits:
        """Return the limits of a tool's outputs: its own, or else the usual ones."""
        return self._limits.get(tool, self._usual)

    @property
    def masks_inline(self) -> bool:
        """Whether secrets are masked in outputs that stay in the conversation."""
        return self.redact_inline and self.redaction is not Redaction.OFF

    def band(self, size: int) -> Band:
        """Return the band of an output of `size` bytes."""
        return next((band for band in reversed(self.bands) if size > band.above), _DEFAULT_BAND)

    def deadline(self, size: int) -> float:
        """Return the seconds that an upload of `size` bytes may take if there is no spool to keep it."""
        return self.wait + size / defaults.SLOWEST_UPLOAD

    def has_no_secret(self, text: str) -> bool:
        """Return whether nothing is masked in the text. It takes microseconds for a short one."""
        redactor = self._masking.redactor()
        return redactor is None or redactor.has_none(text)

    def redactor(self) -> Redactor | None:
        """Return what masks secrets, with those of the environment as it is now; None if nothing does."""
        return self._masking.redactor()

    def counter(self) -> TokenCounter:
        """Return what counts tokens: the tokenizer, or an estimate."""
        return TokenCounter(self.tokenizer, self.chars_per_token)

    def _own_counter(self) -> TokenCounter | None:
        return None if self.tokenizer is None and self.chars_per_token is None else self.counter()
