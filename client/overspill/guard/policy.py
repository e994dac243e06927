"""What spills, where it goes, and how much of it is shown in what form: limits per tool, frozen once built.

Knows no content. The profiles are other designs' exact settings: `persisted`, `clamped`, `token_limited`,
`file_based`, `capped`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from overspill.guard import checks
from overspill.previews.cut import ENDS, HEAD, PREVIEW, TAIL, Strategy
from overspill.previews.filling import CAPPED_BYTES
from overspill.previews.styles import CAPPED, CLAMPED, COUNTED, MARKED, PARTIAL, PERSISTED, TERSE
from overspill.text.limits import CHARS_PER_TOKEN, MAX_BYTES_PER_CHARACTER, UNLIMITED, Limits
from overspill.text.tokenizers import Tiktoken
from overspill.text.tokens import TokenCounter
from overspill.wire import DEFAULT_TTL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from overspill.previews.styles import Style
    from overspill.text.tokenizers import Tokenizer

DestinationName: TypeAlias = Literal["service", "spool"]

MAX_BYTES: Final = 50_000
MAX_LINES: Final = 2_000
PREVIEW_BYTES: Final = 2_048
LEAST_GAIN: Final = 0.33
INLINE_CHARS: Final = 5_000
INLINE_LINES: Final = 100
CONTEXT_SHARE: Final = 0.30
CONTEXT_TOKENS: Final = 128_000
MAX_STREAM_BYTES: Final = 1024**3
SLOWEST_UPLOAD: Final = 256 * 1024
"""Bytes a second that an upload is given time for on top of `Policy.wait`, where nothing else can keep it."""
CLAMP_BYTES: Final = 50 * 1024
SHARE_FLOOR: Final = 2_000
SHARE_CEILING: Final = 400_000
_SHARE_WORDS: Final = 1_000
"""Characters of a stand-in's own words for which the smallest share of a window has room."""
_TOKENS_KEPT: Final = 0.8
_LINE_SPARE: Final = 0.2

TOOL_BYTES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "grep_search": 20_000,
        "find_by_name": 20_000,
        "run_command": 50_000,
        "command_status": 50_000,
        "read_file": 100_000,
    }
)
READER: Final = 'inspect_output("{id}")'
MODES: Final = "modes: tail, range, grep, summary"
INSPECTION_TOOLS: Final = frozenset(
    {"inspect_output", "list_outputs", "get_terminal_output", "overspill_inspect"}
)
_STRATEGIES: Final = MappingProxyType({"PREVIEW": PREVIEW, "HEAD": HEAD, "TAIL": TAIL, "ENDS": ENDS})
_STYLES: Final = MappingProxyType(
    {
        "MARKED": MARKED,
        "TERSE": TERSE,
        "PERSISTED": PERSISTED,
        "CLAMPED": CLAMPED,
        "PARTIAL": PARTIAL,
        "COUNTED": COUNTED,
        "CAPPED": CAPPED,
    }
)
DESTINATIONS: Final[tuple[DestinationName, ...]] = ("service", "spool")


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """What becomes of outputs of more than `above` bytes: the destinations that are tried, in this order.

    Where none of them takes one, or there are none, it is truncated. `preview_bytes` None is the policy's.
    """

    above: int = 0
    destinations: tuple[DestinationName, ...] = DESTINATIONS
    preview_bytes: int | None = None

    def __post_init__(self) -> None:
        checks.whole("above", self.above)
        checks.whole("preview_bytes", self.preview_bytes, is_optional=True)
        if isinstance(self.destinations, str) or not set(self.destinations) <= set(DESTINATIONS):
            raise ValueError(f"destinations must be of {', '.join(DESTINATIONS)}, not {self.destinations!r}")
        object.__setattr__(self, "destinations", tuple(self.destinations))


_DEFAULT_BAND: Final = Band()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The guard's decisions, as values.

    An output spills that has strictly more than `max_bytes`, `max_lines`, `max_chars` or `max_tokens`, or
    more tokens than `context_share` of a context window of `context_tokens`; None is no limit. `tools` maps a
    tool's name to its byte limit (or to whole `Limits`) and merges over `TOOL_BYTES`. Tools in `exempt` are
    never spilled: the ones that read captures, or the model could never see one.

    `tokenizer` gives the tokens of a text or their number. Without one, or where it fails, they are
    estimated: by `chars_per_token`, else from the text's characters, so that a limit holds.

    `strategy` is how an output is cut, `style` the form of what stands in for it; both may be given by their
    names, as "HEAD". `preview_bytes` and `preview_lines` bound what a notice shows. `lost_preview_bytes` is
    what it shows where nothing could be stored; None is as much as else. An output stays unless what stands
    in for it is shorter by `least_gain` of it; None lets it spill whatever that brings. `bands` say where
    outputs go, by size. With `identical`, an output like an earlier one of its session is said to be.

    A stream of more than `max_stream_bytes` is ended there, and its notice says so.

    `ttl` in seconds, None leaves it to the service. `wait` is how many seconds an output makes the
    agent wait for the service at most; see `deadline`. `reader` is the call that reads more; `{id}` in it
    becomes the capture id. Raises `ValueError` for what cannot be meant.
    """

    max_bytes: int = MAX_BYTES
    max_lines: int = MAX_LINES
    max_chars: int | None = None
    max_tokens: int | None = None
    context_tokens: int | None = None
    context_share: float = CONTEXT_SHARE
    tokenizer: Tokenizer | None = None
    chars_per_token: float | None = None
    tools: Mapping[str, int | Limits] = field(default_factory=dict)
    exempt: frozenset[str] = INSPECTION_TOOLS
    strategy: Strategy | str = PREVIEW
    style: Style | str = MARKED
    bands: tuple[Band, ...] = (_DEFAULT_BAND,)
    preview_bytes: int = PREVIEW_BYTES
    preview_lines: int = 100
    lost_preview_bytes: int | None = 4 * PREVIEW_BYTES
    least_gain: float | None = LEAST_GAIN
    identical: bool = True
    max_stream_bytes: int = MAX_STREAM_BYTES
    ttl: int | None = None
    wait: float = 2.0
    reader: str = READER
    _usual: Limits = field(init=False, repr=False, compare=False)
    _limits: Mapping[str, Limits] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "strategy", _named("strategy", self.strategy, _STRATEGIES))
        object.__setattr__(self, "style", _named("style", self.style, _STYLES))
        _check(self)
        object.__setattr__(self, "tools", MappingProxyType({**TOOL_BYTES, **self.tools}))
        object.__setattr__(self, "exempt", frozenset(self.exempt))
        object.__setattr__(self, "bands", tuple(self.bands))
        usual = Limits(self.max_bytes, self.max_lines, self.max_chars, self._most_tokens(), self._counter())
        table = {tool: self._whole(limit, usual) for tool, limit in self.tools.items()}
        object.__setattr__(self, "_usual", usual)
        object.__setattr__(self, "_limits", table)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes the policy again, in another process too."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.init}
        return _policy, (type(self), {**given, "tools": dict(self.tools)})

    @property
    def cut_strategy(self) -> Strategy:
        """Return `strategy`, which may have been given by name."""
        assert isinstance(self.strategy, Strategy)
        return self.strategy

    @property
    def notice_style(self) -> Style:
        """Return `style`, which may have been given by name."""
        assert not isinstance(self.style, str)
        return self.style

    # --- profiles ---------------------------------------------------------------------------------

    @classmethod
    def persisted(cls, *, tools: Mapping[str, int] | None = None) -> Policy:
        """An output guard: limits in bytes by tool, the beginning shown, `tools` merged over the table."""
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
    def clamped(cls, *, max_bytes: int = CLAMP_BYTES, max_lines: int = MAX_LINES) -> Policy:
        """One hard clamp for all tools, line cap first: as much of the beginning is kept as fits."""
        return cls(strategy=HEAD, style=CLAMPED).uniform(Limits(max_bytes, max_lines))

    @classmethod
    def clamped_to_share(
        cls, context_tokens: int = CONTEXT_TOKENS, *, context_share: float = CONTEXT_SHARE
    ) -> Policy:
        """A clamp to a share of the context window, at 4 characters a token: 2,000 to 400,000 characters.

        The beginning is kept, up to the end of a line where that costs no more than a fifth.
        """
        _check_window(context_tokens, context_share)
        share = min(int(context_tokens * context_share) * CHARS_PER_TOKEN, SHARE_CEILING)
        limits = Limits(UNLIMITED, max_chars=max(share, SHARE_FLOOR + _SHARE_WORDS))
        return cls(strategy=HEAD._replace(spare=_LINE_SPARE), style=PARTIAL).uniform(limits)

    @classmethod
    def token_limited(
        cls,
        context_tokens: int = CONTEXT_TOKENS,
        *,
        context_share: float = CONTEXT_SHARE,
        tokenizer: Tokenizer | None = None,
    ) -> Policy:
        """A share of the context window in tokens; of what exceeds it, the first 80 % of the limit is kept.

        Counted by `tokenizer`, else by tiktoken where that is at hand, else at 4 characters a token.
        """
        policy = cls(
            max_bytes=UNLIMITED,
            max_lines=UNLIMITED,
            context_tokens=context_tokens,
            context_share=context_share,
            tokenizer=Tiktoken() if tokenizer is None else tokenizer,
            chars_per_token=CHARS_PER_TOKEN,
            strategy=HEAD._replace(share=_TOKENS_KEPT),
            style=COUNTED,
        )
        return replace(policy, tools=dict.fromkeys(TOOL_BYTES, policy.limits("")))

    @classmethod
    def file_based(cls, *, inline_chars: int = INLINE_CHARS, inline_lines: int = INLINE_LINES) -> Policy:
        """File-based output management: the same limits for all tools, and a day of retention."""
        return cls(ttl=DEFAULT_TTL, least_gain=0.0).limited(inline_chars, inline_lines)

    @classmethod
    def capped(cls, max_bytes: int = CAPPED_BYTES) -> Policy:
        """A registry's ceiling in bytes: head and tail are kept around a count of what is not."""
        return cls(strategy=ENDS, style=CAPPED).uniform(Limits(max_bytes))

    # --- changes ----------------------------------------------------------------------------------

    def limited(self, inline_chars: int, inline_lines: int) -> Policy:
        """The policy with these limits for every tool alike."""
        size = inline_chars * MAX_BYTES_PER_CHARACTER
        return self.uniform(Limits(size, inline_lines, inline_chars))

    def uniform(self, limits: Limits) -> Policy:
        """The policy with `limits` for every tool."""
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
        """The policy with `tools` merged over its table."""
        return replace(self, tools={**self.tools, **tools})

    def with_short_notices(self) -> Policy:
        """The policy with no more in the notice of what is lost than in any other."""
        return replace(self, lost_preview_bytes=min(self.lost_preview, self.preview_bytes))

    # --- questions --------------------------------------------------------------------------------

    @property
    def lost_preview(self) -> int:
        """Return how many bytes a notice shows where nothing could be stored."""
        return self.preview_bytes if self.lost_preview_bytes is None else self.lost_preview_bytes

    def limits(self, tool: str) -> Limits:
        """The limits of a tool's outputs: those of its name, or the usual ones."""
        return self._limits.get(tool, self._usual)

    def band(self, size: int) -> Band:
        """What becomes of an output of `size` bytes."""
        return next((band for band in reversed(self.bands) if size > band.above), _DEFAULT_BAND)

    def deadline(self, size: int) -> float:
        """Return the seconds that an upload of `size` bytes may take where no spool can keep them."""
        return self.wait + size / SLOWEST_UPLOAD

    def counter(self) -> TokenCounter:
        """What counts tokens under this policy: its tokenizer, or an estimate."""
        return TokenCounter(self.tokenizer, self.chars_per_token)

    def _counter(self) -> TokenCounter | None:
        return None if self.tokenizer is None and self.chars_per_token is None else self.counter()

    def _most_tokens(self) -> int | None:
        if self.context_tokens is None:
            return self.max_tokens
        share = int(self.context_tokens * self.context_share)
        return share if self.max_tokens is None else min(share, self.max_tokens)

    def _whole(self, limit: int | Limits, usual: Limits) -> Limits:
        if not isinstance(limit, Limits):
            return usual._replace(max_bytes=limit)
        return limit._replace(counter=usual.counter) if limit.counter is None else limit


def _policy(kind: type[Policy], given: dict[str, Any]) -> Policy:
    return kind(**given)


def _named(what: str, given: Any, choices: Mapping[str, Any]) -> Any:
    """Return what a name stands for, and anything else as it is. Raises `ValueError` for other names."""
    if not isinstance(given, str):
        return given
    if given.upper() not in choices:
        raise ValueError(f"{what} must be {', '.join(choices)} or one of your own; it is {given!r}")
    return choices[given.upper()]


# --- checks ---------------------------------------------------------------------------------------


def _check(policy: Policy) -> None:
    for name in ("max_bytes", "max_lines", "preview_bytes", "preview_lines", "max_stream_bytes"):
        checks.whole(name, getattr(policy, name))
    for name in ("max_chars", "max_tokens", "ttl", "lost_preview_bytes"):
        checks.whole(name, getattr(policy, name), is_optional=True)
    checks.finite("wait", policy.wait)
    if policy.least_gain is not None and policy.least_gain != 0:
        checks.share("least_gain", policy.least_gain)
    if policy.chars_per_token is not None:
        checks.positive("chars_per_token", policy.chars_per_token)
    _check_window(policy.context_tokens, policy.context_share)
    for tool, limit in policy.tools.items():
        for name, number in _numbers(tool, limit):
            checks.whole(name, number, is_optional=isinstance(limit, Limits))
    _check_kinds(policy)
    _check_bands(policy.bands)


def _numbers(tool: str, limit: int | Limits) -> Iterator[tuple[str, Any]]:
    if isinstance(limit, Limits):
        yield from ((f"{name} of {tool}", getattr(limit, name)) for name in Limits._fields[:4])
    else:
        yield f"the limit of {tool}", limit


def _check_window(context_tokens: Any, context_share: Any) -> None:
    if context_tokens is not None:
        checks.whole("context_tokens", context_tokens)
        checks.positive("context_tokens", context_tokens)
    checks.share("context_share", context_share)


def _check_kinds(policy: Policy) -> None:
    kinds = (
        ("tokenizer", policy.tokenizer, policy.tokenizer is None or callable(policy.tokenizer), "a function"),
        (
            "strategy",
            policy.strategy,
            isinstance(policy.strategy, Strategy),
            "of overspill.previews.cut, as PREVIEW",
        ),
        (
            "style",
            policy.style,
            callable(getattr(policy.style, "notice", None)),
            "of overspill.previews.styles, as MARKED",
        ),
        ("exempt", policy.exempt, not isinstance(policy.exempt, str), "names of tools"),
    )
    for name, value, is_right, what in kinds:
        if not is_right:
            raise ValueError(f"{name} must be {what}, not {value!r}")


def _check_bands(bands: Any) -> None:
    if not all(isinstance(band, Band) for band in bands):
        raise ValueError(f"bands must be of Band, not {bands!r}")
    edges = [band.above for band in bands]
    if edges != sorted(set(edges)):
        raise ValueError(f"bands must rise, each above the one before, not {edges}")
