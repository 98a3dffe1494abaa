"""Read the body of a delivery as a message for an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

import orjson

from arbor.contacts.github_events import github_message
from arbor.contacts.hook_signatures import GITHUB_EVENT
from arbor.contacts.hooks import EVENT_LENGTH, HookKind, HookMapping, HookMessage
from arbor.errors import Invalid

_FORM = "application/x-www-form-urlencoded"


def read_message(
    *, kind: HookKind, mapping: HookMapping, headers: Mapping[str, str], body: bytes
) -> HookMessage:
    """Return the message of a delivery; `headers` has lower-case names. Raises Invalid."""
    if kind is HookKind.JSON:
        return mapping.message(parse_body(body))
    event = headers.get(GITHUB_EVENT, "").strip()
    if not event or len(event) > EVENT_LENGTH or not event.isprintable():
        raise Invalid(
            f"a delivery of GitHub names its event in the header {GITHUB_EVENT}, by 1 to {EVENT_LENGTH} printable characters,"
            f" got {event[:200]!r}"
        )
    if headers.get("content-type", "").partition(";")[0].strip().lower() == _FORM:
        body = _payload_of_form(body)
    return github_message(event, parse_body(body))


def parse_body(body: bytes) -> Any:
    """Parse a JSON body. Raises Invalid."""
    if not body.strip():
        raise Invalid("the body is empty; it must be JSON")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Invalid(f"the body is not JSON: {error}") from error


def _payload_of_form(body: bytes) -> bytes:
    """Return the JSON in a form, which is how GitHub sends bodies unless the webhook says otherwise."""
    try:
        fields = parse_qs(body.decode("ascii"), max_num_fields=10, strict_parsing=True)
    except ValueError as error:
        raise Invalid("the body is not the form that GitHub sends, payload=JSON") from error
    if "payload" not in fields:
        raise Invalid("the form has no field payload; GitHub sends payload=JSON")
    return fields["payload"][0].encode()
