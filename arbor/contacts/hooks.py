"""Hooks as values: their kinds, the mapping of a JSON body to a message, and the state of a delivery."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any
from uuid import UUID

from arbor.contacts.hook_templates import TextTemplate
from arbor.errors import Invalid, SignatureRefused
from arbor.quotations import clip, clip_line

#: The path of a hook on the API's process, before its key.
HOOKS_PATH = "/hooks/"
EVENT_LENGTH, TITLE_LENGTH, TEXT_LENGTH, SENDER_LENGTH, LINK_LENGTH = 100, 300, 6_000, 100, 300
MAX_EVENTS = 50
#: The importance of a message whose delivery gives none.
USUAL_IMPORTANCE = 0.5
#: The importance of words that systems use.
IMPORTANCE_WORDS: Mapping[str, float] = MappingProxyType(
    {
        **dict.fromkeys(("low", "minor", "debug", "trivial"), 0.25),
        **dict.fromkeys(("normal", "medium", "info", "moderate"), USUAL_IMPORTANCE),
        **dict.fromkeys(("high", "major", "warning", "error"), 0.8),
        **dict.fromkeys(("critical", "urgent", "emergency", "fatal"), 1.0),
    }
)


class HookKind(StrEnum):
    """The kind of requests that a hook receives."""

    #: GitHub's webhooks.
    GITHUB = "github"
    #: Any JSON, which a mapping turns into a message.
    JSON = "json"


class HookDeliveryStatus(StrEnum):
    """The state of a delivery: at a hook, or of a webhook."""

    #: Became a percept of the agent.
    PERCEIVED = "perceived"
    #: Had an event that the hook does not want.
    IGNORED = "ignored"
    #: Was confirmed by its receiver.
    CONFIRMED = "confirmed"
    #: Was not confirmed, and is retried automatically.
    RETRYING = "retrying"
    #: Waits to be sent again, because a person asked for it.
    RESENDING = "resending"
    #: Gave no message, or was not confirmed when a person had it sent again.
    FAILED = "failed"


#: Deliveries that are sent again.
UNSENT = frozenset({HookDeliveryStatus.RETRYING, HookDeliveryStatus.RESENDING})


@dataclass(frozen=True, kw_only=True)
class HookMessage:
    """A delivery's message for the agent: a text of others, which is data."""

    event: str
    title: str
    text: str = ""
    sender: str = ""
    importance: float = USUAL_IMPORTANCE
    #: An address that the message is about.
    link: str = ""
    #: Faults that did not prevent the message: fields that the body does not have, an importance that cannot be read.
    warnings: tuple[str, ...] = ()

    @property
    def content(self) -> str:
        """The title and the text, as the percept has them."""
        return "\n".join(part for part in (self.title, self.text) if part)


@dataclass(frozen=True, kw_only=True)
class HookMapping:
    """The templates that turn a JSON body into a message."""

    event: str = "{type}"
    title: str = ""
    text: str = "{}"
    sender: str = ""
    importance: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> HookMapping:
        """Return a mapping from its fields; missing fields have their defaults. Raises Invalid."""
        names = [field.name for field in fields(cls)]
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise Invalid(f"a mapping has {', '.join(names)}, not {', '.join(map(repr, unknown))}")
        for name, text in given.items():
            if not isinstance(text, str):
                raise Invalid(f"the mapping of {name} is a text with placeholders, got {type(text).__name__}")
            TextTemplate.parse(text, name=f"the mapping of {name}")
        return cls(**given)

    def as_json(self) -> dict[str, str]:
        """Return the mapping's fields."""
        return asdict(self)

    def message(self, body: Any) -> HookMessage:
        """Turn a body into a message. Raises Invalid where neither title nor text has anything."""
        filled = {
            name: TextTemplate.parse(template, name=name).fill(body)
            for name, template in asdict(self).items()
        }
        # An event is optional: its default names a field that many bodies do not have.
        warnings = [
            f"{name}: the body has no {path}"
            for name, text in filled.items()
            for path in text.missing
            if name != "event"
        ]
        title, text = clip_line(filled["title"].text, TITLE_LENGTH), filled["text"].text.strip()
        if not title and not text:
            raise Invalid(
                "the mapping gives neither a title nor a text; " + ("; ".join(warnings) or "it has none")
            )
        importance, fault = read_importance(filled["importance"].text)
        return HookMessage(
            event=clip_line(filled["event"].text, EVENT_LENGTH),
            title=title,
            text=clip(text, TEXT_LENGTH),
            sender=clip_line(filled["sender"].text, SENDER_LENGTH),
            importance=importance,
            warnings=(*warnings, *([fault] if fault else ())),
        )


def read_importance(text: str) -> tuple[float, str]:
    """Return an importance from a number or a word, and a fault where it is neither."""
    word = text.strip().casefold()
    if not word:
        return USUAL_IMPORTANCE, ""
    if word in IMPORTANCE_WORDS:
        return IMPORTANCE_WORDS[word], ""
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if 0 <= number <= 1:
        return number, ""
    known = "low, normal, high, critical"
    return (
        USUAL_IMPORTANCE,
        f"importance: 0 to 1 or one of {known} is expected, got {clip(text.strip(), 40)!r}",
    )


def wants_event(wanted: Sequence[str], event: str) -> bool:
    """Return whether a hook wants an event: `issues` also matches `issues.opened`; without names it wants all events."""
    return not wanted or any(event == name or event.startswith(f"{name}.") for name in wanted)


def valid_events(names: Sequence[str]) -> list[str]:
    """Return the names of wanted events without blanks. Raises Invalid."""
    stripped = [name.strip() for name in names]
    if len(stripped) > MAX_EVENTS:
        raise Invalid(f"a hook has at most {MAX_EVENTS} names of events, got {len(stripped)}")
    for name in stripped:
        if not name or len(name) > EVENT_LENGTH or not name.isprintable():
            raise Invalid(
                f"the name of an event has 1 to {EVENT_LENGTH} printable characters, got {name[:200]!r}"
            )
    return stripped


def hook_key(tenant_id: UUID, hook_id: UUID) -> str:
    """Return the key in a hook's address: it names the tenant, so that the look-up runs under row-level security."""
    return base64.urlsafe_b64encode(tenant_id.bytes + hook_id.bytes).decode().rstrip("=")


def parse_hook_key(key: str) -> tuple[UUID, UUID]:
    """Return the ids of the tenant and of the hook in a key. Raises SignatureRefused for a text that is no key."""
    try:
        parts = base64.b64decode(f"{key}=", altchars=b"-_", validate=True) if key.isascii() else b""
    except binascii.Error:
        parts = b""
    if len(parts) != 32:
        raise SignatureRefused
    return UUID(bytes=parts[:16]), UUID(bytes=parts[16:])
