"""Translate a provider's error response into one of Arbor's errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import httpx

from arbor.adapters.exchange import ApiEndpoint, HttpReply
from arbor.errors import ModelError, ModelRefused, ModelRejected, ModelUnavailable
from arbor.models.retry import parse_retry_after

#: Codes with which providers refuse the content, not the request.
_REFUSALS = {"content_filter", "content_policy_violation", "responsible_ai_policy_violation"}
#: Codes of a 429 that waiting does not end: the account has no money.
_EXHAUSTED = {"insufficient_quota", "billing_not_active", "billing_hard_limit_reached"}
#: 4xx that pass by themselves: time-out, conflict, too early.
_TRANSIENT = {408, 409, 425}
_TOO_MANY = 429
#: The most tokens of one call: far above any window, and below the limit of the ledger's columns.
_MAX_TOKENS = 100_000_000


@dataclass(frozen=True, kw_only=True)
class ProviderFault:
    """The parts of a provider's error response."""

    status: int
    code: str = ""
    #: The field of the request that the error is about, where the provider names one.
    param: str = ""
    message: str = ""

    @property
    def words(self) -> str:
        """Return all texts of the error in lower case, for searches."""
        return f"{self.code} {self.param} {self.message}".lower()


def fault_in(answer: HttpReply) -> ProviderFault | None:
    """Return the fault that a response reports, or None for a success."""
    if answer.status >= 300:
        return read_fault(answer)
    body = answer.json()
    if isinstance(body, dict) and body.get("error") and not body.get("choices"):
        # OpenRouter reports an upstream's failure inside a 200, with the upstream's status as the code.
        fault = read_fault(answer)
        is_status = len(fault.code) == 3 and fault.code.isdecimal()
        return replace(fault, status=int(fault.code) if is_status else 502)
    return None


def read_fault(answer: HttpReply) -> ProviderFault:
    """Parse an error response of any of the shapes in use; missing parts stay empty.

    The shapes: `{"error": {"message", "code", "type", "param"}}`, `{"error": "text"}`, `{"detail": …}`, text.
    """
    body = answer.json()
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        return ProviderFault(
            status=answer.status,
            code=str(error.get("code") or error.get("type") or ""),
            param=str(error.get("param") or ""),
            message=str(error.get("message") or error.get("detail") or ""),
        )
    text = error if isinstance(error, str) else answer.content[:2000].decode("utf-8", errors="replace")
    return ProviderFault(status=answer.status, message=text)


def error_for(
    fault: ProviderFault, *, endpoint: ApiEndpoint, model: str, headers: httpx.Headers
) -> ModelError:
    """Return Arbor's error for a fault; the provider's message is cut and has no keys."""
    quote = endpoint.scrub(f"{fault.status} {fault.message or fault.code or _phrase(fault.status)}")
    if fault.code in _REFUSALS:
        return ModelRefused(f"{endpoint.provider} declined the content: {quote}")
    if fault.status == _TOO_MANY and fault.code not in _EXHAUSTED:
        return ModelUnavailable(
            f"{endpoint.provider} limits the rate of calls: {quote}",
            retry_after_s=_retry_after_s(headers),
            provider_fault=False,
        )
    if fault.status >= 500 or fault.status in _TRANSIENT:
        return ModelUnavailable(f"{endpoint.provider} failed: {quote}", retry_after_s=_retry_after_s(headers))
    return ModelRejected(f"{endpoint.provider} rejected {model}: {quote}; check {endpoint.settings}")


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in HTTPStatus else ""


def _retry_after_s(headers: httpx.Headers) -> float | None:
    """Return the wait that the provider asks for, in seconds; some give it more exactly, in milliseconds."""
    milliseconds = parse_retry_after(headers.get("retry-after-ms"), now=datetime.now(UTC))
    if milliseconds is not None:
        return milliseconds / 1000
    return parse_retry_after(headers.get("retry-after"), now=datetime.now(UTC))


def malformed_reply_error(endpoint: ApiEndpoint, answer: HttpReply) -> ModelError:
    """Return the error for a success without a reply: the server is broken, or serves no model."""
    quote = endpoint.scrub(answer.content[:2000].decode("utf-8", errors="replace"))
    if answer.json() is None and "json" not in answer.headers.get("content-type", ""):
        return ModelRejected(
            f"what answers at {endpoint.where} is not a model's server: {quote!r}; check {endpoint.settings}"
        )
    return ModelUnavailable(f"{endpoint.provider} sent a reply that cannot be read: {quote!r}")


def as_count(value: Any) -> int:
    """Return a token count; 0 for a value that is not a count, or is above the limit of a call."""
    return value if isinstance(value, int) and 0 < value <= _MAX_TOKENS else 0
