"""Find the agents that a message mentions, and decide when a failed delivery is retried."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from arbor.contacts.values import DeliveryStatus

#: Maximum number of attempts. After the last one a person decides.
MAX_TRIES = 8
_FIRST_WAIT, _FACTOR, _MAX_WAIT = timedelta(minutes=1), 4, timedelta(hours=6)
#: Time from each failed attempt to the next: 1, 4, 16, 64, 256 minutes, then 6 hours.
WAITS = tuple(min(_FIRST_WAIT * _FACTOR**retries, _MAX_WAIT) for retries in range(MAX_TRIES - 1))
#: The most agents that receive one message.
MAX_MENTIONS = 5
#: The most `@` signs that are examined in one message, because a text may contain many addresses.
_MAX_AT_SIGNS = 50
_MAX_NAME_WORDS = 3
# An `@` after a letter is part of an e-mail address.
_MENTION = re.compile(r"(?<![\w@.])@(\w[\w.'-]*(?:[ ]\w[\w.'-]*){0,2})")


@dataclass(frozen=True, kw_only=True)
class DeliveryDecision:
    """The decision about a failed delivery; `wait` is set when the delivery is retried."""

    status: DeliveryStatus
    wait: timedelta | None = None


def decide_delivery_retry(*, tries: int, final: bool) -> DeliveryDecision:
    """Decide whether a message is delivered again after `tries` failed attempts (1 or more); a `final` failure is not retried."""
    if final or tries >= MAX_TRIES:
        return DeliveryDecision(status=DeliveryStatus.FAILED)
    return DeliveryDecision(status=DeliveryStatus.PENDING, wait=WAITS[tries - 1])


def possible_names(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the possible names after each `@` of a text, in lower case, the longest first."""
    names: list[tuple[str, ...]] = []
    for match in _MENTION.finditer(text):
        words = match[1].lower().split(" ")
        runs = [" ".join(words[:count]) for count in range(min(len(words), _MAX_NAME_WORDS), 0, -1)]
        # A full stop after a name ends the sentence; a full stop within a name is part of the name, and "'s" may be.
        names.append(
            tuple(
                dict.fromkeys(
                    form for run in runs for form in (run, run.rstrip(".'-"), run.removesuffix("'s"))
                )
            )
        )
        if len(names) == _MAX_AT_SIGNS:
            break
    return tuple(names)


def mentioned_ids(text: str, known: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the ids of the mentioned agents, at most `MAX_MENTIONS`, each once, in order.

    `known` maps names in lower case to ids; None: the name of an agent that is not written to.
    """
    ids = (next((known[name] for name in names if name in known), None) for names in possible_names(text))
    return tuple(dict.fromkeys(agent_id for agent_id in ids if agent_id is not None))[:MAX_MENTIONS]
