"""The errors that say that a request was too large, from real answers of providers and gateways."""

from __future__ import annotations

import json
import tomllib
import urllib.error
from email.message import Message
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx2
import pytest
from aiohttp import ClientResponseError, RequestInfo
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy
from overspill.errors import error_for
from overspill.histories.overflow import Overflow, OverflowKind, is_overflow, overflow
from overspill.wire import Code, Problem
from yarl import URL

from tests.lazy import LazyModule

if TYPE_CHECKING:
    import anthropic
    import openai
    from langchain_core import exceptions as chain
else:
    chain = LazyModule("langchain_core.exceptions")
    anthropic, openai = LazyModule("anthropic"), LazyModule("openai")

CONTEXT: Final = OverflowKind.CONTEXT
PAYLOAD: Final = OverflowKind.PAYLOAD

ANSWERS: Final = tomllib.loads(Path(__file__).with_name("provider_errors.toml").read_text())
TOO_LARGE: Final[list[dict[str, Any]]] = ANSWERS["too_large"]
SOMETHING_ELSE: Final[list[dict[str, Any]]] = ANSWERS["something_else"]
LONG: Final = "This model's maximum context length is 5 tokens. However, you requested 7 tokens"


@pytest.mark.parametrize("answer", TOO_LARGE, ids=itemgetter("by"))
def test_what_providers_say_of_requests_that_are_too_large_is_understood(answer: dict[str, Any]) -> None:
    kind = OverflowKind(answer["kind"])
    said, expected = answer["said"], Overflow(kind, answer.get("limit"), answer.get("actual"))

    assert overflow(RuntimeError(said)) == expected
    assert overflow({"error": {"message": said, "type": "invalid_request_error"}}) == expected
    assert overflow(json.dumps({"error": {"message": said}})) == expected


@pytest.mark.parametrize("answer", SOMETHING_ELSE, ids=itemgetter("by"))
def test_limits_of_rate_quotas_and_refused_parameters_are_no_overflow(answer: dict[str, Any]) -> None:
    assert overflow(RuntimeError(answer["said"])) is None
    assert overflow({"error": {"message": answer["said"]}}) is None


# --- real exceptions ------------------------------------------------------------------------------


def response(status: int, body: Any) -> httpx2.Response:
    request = httpx2.Request("POST", "https://api.example.com/v1/chat/completions")
    content = body if isinstance(body, str) else json.dumps(body)
    return httpx2.Response(status, content=content, request=request)


def from_openai(status: int, body: Any) -> openai.APIStatusError:
    client = openai.OpenAI(api_key="k", base_url="https://api.example.com/v1")
    return client._make_status_error_from_response(response(status, body))


def from_anthropic(status: int, body: Any) -> anthropic.APIStatusError:
    client = anthropic.Anthropic(api_key="k")
    return client._make_status_error_from_response(response(status, body))


def test_openais_exceptions_are_understood() -> None:
    body = {
        "error": {"message": "Too much.", "type": "invalid_request_error", "code": "context_length_exceeded"}
    }

    assert overflow(from_openai(400, body)) == Overflow(CONTEXT)
    assert overflow(from_openai(413, "<html>413 Request Entity Too Large</html>")) == Overflow(PAYLOAD)
    assert overflow(from_openai(413, "")) == Overflow(PAYLOAD)


def test_a_rate_limit_of_openai_is_none_whatever_it_says() -> None:
    body = {"error": {"message": LONG, "code": "rate_limit_exceeded"}}

    assert overflow(from_openai(429, body)) is None
    assert overflow(from_openai(429, {"error": {"message": "Too many tokens"}})) is None


def test_one_request_above_the_whole_minutes_tokens_is_one_though_it_comes_as_a_rate_limit() -> None:
    said = "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 30601."
    body = {"error": {"message": said, "type": "tokens", "code": "rate_limit_exceeded"}}

    assert overflow(from_openai(429, body)) == Overflow(CONTEXT, 30_000, 30_601)
    assert overflow(from_openai(413, body)) == Overflow(CONTEXT, 30_000, 30_601)


def test_one_request_below_the_minutes_tokens_only_has_to_wait() -> None:
    said = "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 30000."

    assert overflow(RuntimeError(said)) is None


def test_openais_streamed_errors_are_understood() -> None:
    request = httpx2.Request("POST", "https://api.example.com/v1/responses")
    body = {"code": "context_length_exceeded", "message": "Your input is too much."}

    assert overflow(openai.APIError("An error occurred", request, body=body)) == Overflow(CONTEXT)


def test_anthropics_exceptions_are_understood() -> None:
    said = {"type": "invalid_request_error", "message": "prompt is too long: 205668 tokens > 200000 maximum"}
    large = {"type": "request_too_large", "message": "Request exceeds the maximum size"}

    assert overflow(from_anthropic(400, {"type": "error", "error": said})) == Overflow(
        CONTEXT, 200_000, 205_668
    )
    assert overflow(from_anthropic(413, {"type": "error", "error": large})) == Overflow(PAYLOAD)
    assert (
        overflow(from_anthropic(429, {"error": {"type": "rate_limit_error", "message": "Slow down"}})) is None
    )
    assert (
        overflow(from_anthropic(529, {"error": {"type": "overloaded_error", "message": "Overloaded"}}))
        is None
    )


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 422, 500, 502, 503, 504])
def test_no_status_but_413_is_one_by_itself(status: int) -> None:
    assert overflow(from_openai(status, {"error": {"message": "No."}})) is None


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_is_none_whatever_it_says(status: int) -> None:
    assert overflow(from_openai(status, {"error": {"message": LONG}})) is None


def test_a_body_that_only_the_response_has_is_read() -> None:
    bad = response(400, {"code": "1261", "message": "?"})
    error = httpx2.HTTPStatusError("Bad Request", request=bad.request, response=bad)

    assert overflow(error) == Overflow(CONTEXT)


def test_a_response_that_nobody_has_read_is_left_alone() -> None:
    class Unread(httpx2.SyncByteStream):
        def __iter__(self) -> Any:
            raise AssertionError("the network was read")

    large = httpx2.Response(413, stream=Unread(), request=httpx2.Request("POST", "https://example.com"))
    error = httpx2.HTTPStatusError("Too large", request=large.request, response=large)

    assert overflow(error) == Overflow(PAYLOAD)


def test_botocores_errors_are_understood() -> None:
    said: Any = {
        "Error": {"Code": "ValidationException", "Message": "Input is too long for requested model."}
    }
    rate: Any = {"Error": {"Code": "ThrottlingException", "Message": "Too many tokens, please wait"}}

    assert overflow(ClientError(said, "Converse")) == Overflow(CONTEXT)
    assert overflow(ClientError(rate, "Converse")) is None


def test_http_errors_of_aiohttp_and_of_the_standard_library_are_understood() -> None:
    headers: CIMultiDictProxy[str] = CIMultiDictProxy(CIMultiDict())
    info = RequestInfo(URL("https://example.com"), "POST", headers)

    assert overflow(ClientResponseError(info, (), status=413)) == Overflow(PAYLOAD)
    with urllib.error.HTTPError("https://example.com", 413, "?", Message(), None) as error:
        assert overflow(error) == Overflow(PAYLOAD)


def test_langchains_own_error_is_understood() -> None:
    assert overflow(chain.ContextOverflowError("too much")) == Overflow(CONTEXT)


def test_llama_cpps_numbers_are_found_beside_its_text() -> None:
    body = {
        "code": 400,
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 1407,
        "n_ctx": 256,
        "message": "?",
    }

    assert overflow({"error": body}) == Overflow(CONTEXT, 256, 1_407)


def test_error_classes_tell_by_their_names() -> None:
    class ContextWindowExceededError(Exception):
        pass

    class RequestEntityTooLarge(Exception):
        pass

    class RequestHeaderFieldsTooLarge(Exception):
        pass

    assert overflow(ContextWindowExceededError()) == Overflow(CONTEXT)
    assert overflow(RequestEntityTooLarge()) == Overflow(PAYLOAD)
    assert overflow(RequestHeaderFieldsTooLarge()) is None


def test_what_is_too_large_for_overspill_itself_is_none() -> None:
    problem = Problem(
        type="about:blank",
        status=413,
        code=Code.CAPTURE_TOO_LARGE,
        title="Too large",
        detail="capture too large",
    )

    assert not is_overflow(error_for(problem))


# --- causes, groups, and hostile errors -----------------------------------------------------------


def wrapped(outer: Exception, inner: Exception, *, explicit: bool) -> Exception:
    """`outer` as raised while `inner` is handled."""
    outer.__context__ = inner
    outer.__cause__ = inner if explicit else None
    outer.__suppress_context__ = explicit
    return outer


@pytest.mark.parametrize("explicit", [True, False])
def test_a_wrapper_is_looked_into(explicit: bool) -> None:
    inner = from_anthropic(400, {"error": {"message": "prompt is too long: 3 tokens > 2 maximum"}})

    assert overflow(wrapped(RuntimeError("the model failed"), inner, explicit=explicit)) == Overflow(
        CONTEXT, 2, 3
    )


def test_an_overflow_that_was_merely_being_handled_is_not_the_error_of_the_next_call() -> None:
    inner = from_openai(400, {"error": {"message": "?", "code": "context_length_exceeded"}})

    assert overflow(wrapped(from_openai(429, {"error": {"message": "slow"}}), inner, explicit=False)) is None
    assert overflow(wrapped(from_openai(500, {"error": {"message": "oops"}}), inner, explicit=False)) is None
    assert overflow(wrapped(ConnectionResetError(), inner, explicit=False)) is None


def test_one_of_a_group_is_enough() -> None:
    group = ExceptionGroup("tasks", [ValueError("?"), ExceptionGroup("more", [RuntimeError(LONG)])])

    assert overflow(group) == Overflow(CONTEXT, 5, 7)


def test_a_wrapper_with_a_telling_name_leaves_the_numbers_to_its_cause() -> None:
    inner = RuntimeError("prompt is too long: 205668 tokens > 200000 maximum")

    assert overflow(wrapped(chain.ContextOverflowError("?"), inner, explicit=True)) == Overflow(
        CONTEXT, 200_000, 205_668
    )


def test_errors_that_cause_each_other_end() -> None:
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first

    assert overflow(first) is None


def test_a_hostile_error_is_none() -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

        def __getattribute__(self, name: str) -> Any:
            if name.startswith("__"):
                return super().__getattribute__(name)
            raise RuntimeError(name)

    assert overflow(Hostile()) is None


def test_a_request_repeated_behind_the_message_is_not_taken_for_the_message() -> None:
    said = "invalid request: " + "x" * 10_000 + "maximum context length is 5 tokens"

    assert overflow(RuntimeError(said)) is None


nested = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["error", "message", "code", "type", "body", "status"]), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@given(nested)
def test_whatever_a_body_is_nothing_is_raised(body: Any) -> None:
    error = RuntimeError("?")
    error.body = body  # type: ignore[attr-defined]

    assert overflow(error) == overflow(error)
    assert overflow(body) == overflow(body)
