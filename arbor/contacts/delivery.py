"""Address messages to agents that they mention, and decide when a failed delivery is retried."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from arbor.contacts.values import DeliveryStatus

#: Attempts in all. After the last one a person decides.
MAX_TRIES = 8
_FIRST, _FACTOR, _LONGEST = timedelta(minutes=1), 4, timedelta(hours=6)
#: Time from each failed attempt to the next: 1, 4, 16, 64, 256 minutes, then 6 hours.
WAITS = tuple(min(_FIRST * _FACTOR**tried, _LONGEST) for tried in range(MAX_TRIES - 1))
#: At most this many agents receive one message.
MAX_MENTIONS = 5
#: `@` signs examined in one message: it may mention strangers, and addresses.
_LOOKED_AT = 50
_LONGEST_NAME = 3
# No letter before it: that is an e-mail address.
_MENTION = re.compile(r"(?<![\w@.])@(\w[\w.'-]*(?:[ ]\w[\w.'-]*){0,2})")


@dataclass(frozen=True, kw_only=True)
class AfterFailure:
    """The decision about a failed delivery; `wait` is set when the delivery is retried."""

    status: DeliveryStatus
    wait: timedelta | None = None


def after_failure(*, tries: int, final: bool) -> AfterFailure:
    """Decide about a message after `tries` attempts, 1 or more; `final`: a retry does not help."""
    if final or tries >= MAX_TRIES:
        return AfterFailure(status=DeliveryStatus.FAILED)
    return AfterFailure(status=DeliveryStatus.PENDING, wait=WAITS[tries - 1])


def possible_names(text: str) -> tuple[tuple[str, ...], ...]:
    """Return for each `@` in a text the possible names after it, in lower case, the longest first."""
    found: list[tuple[str, ...]] = []
    for match in _MENTION.finditer(text):
        words = match[1].lower().split(" ")
        runs = [" ".join(words[:count]) for count in range(min(len(words), _LONGEST_NAME), 0, -1)]
        # A full stop after a name ends a sentence; one within it belongs to it.
        found.append(tuple(dict.fromkeys(form for run in runs for form in (run, run.rstrip(".'-")))))
        if len(found) == _LOOKED_AT:
            break
    return tuple(found)


def named(text: str, known: dict[str, str]) -> tuple[str, ...]:
    """Return the ids of mentioned agents by `known` (lower-case name to id), each once, in order, at most five."""
    ids = (next((known[name] for name in names if name in known), None) for names in possible_names(text))
    return tuple(dict.fromkeys(agent_id for agent_id in ids if agent_id is not None))[:MAX_MENTIONS]
