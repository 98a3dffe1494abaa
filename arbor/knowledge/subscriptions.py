"""Subscriptions of agents to signals, as values: the sources, and signals coalesced for the next prompt."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field, StringConstraints

from arbor.errors import Invalid

#: The most subscriptions of one agent.
MAX_SUBSCRIPTIONS = 20
#: The most names or patterns of one subscription, and characters of one of them.
MAX_NAMES = 20
NAME_LENGTH = 80
#: The latest subjects that a line of the prompt names.
SUBJECTS_SHOWN = 3
#: The source of signals about what the agents of a tenant share, where a statement needs an id.
SHARED = UUID(int=0)
#: The fields of signals that name their subjects in words, the most descriptive first.
_SUBJECTS = ("title", "workflow", "step", "skill", "name", "action", "resource", "status")
#: The beginnings of the names of signals about what the agents of a tenant share.
SHARED_PREFIXES = ("document.", "workflow.")


class SignalSource(StrEnum):
    """The subject of the signals of a subscription."""

    #: The agent itself.
    OWN = "self"
    #: What the agents of the tenant share: documents and workflows.
    SHARED = "shared"
    #: Another agent.
    PEER = "peer"


class SubscriptionRequest(BaseModel, frozen=True, extra="forbid"):
    """A subscription that the agents of a template begin with. Peers are chosen later: a template knows none."""

    signals: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=NAME_LENGTH)], ...],
        Field(min_length=1, max_length=MAX_NAMES),
    ]
    source: Literal[SignalSource.OWN, SignalSource.SHARED] = SignalSource.SHARED


def check_names(names: Collection[str], source: SignalSource) -> None:
    """Check that signals of these names can come from the source. Raises Invalid."""
    for name in sorted(names):
        if name.startswith(SHARED_PREFIXES) is not (source is SignalSource.SHARED):
            raise Invalid(
                f"signals that begin with {' or '.join(SHARED_PREFIXES)} are about what agents share (source"
                f" {SignalSource.SHARED}), all others about one agent (source {SignalSource.OWN} or {SignalSource.PEER}); got {name}"
                f" with source {source}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadSignal:
    """A signal that a subscription found."""

    name: str
    #: The name of the agent that it is about, `you`, or empty for what the agents share.
    source: str
    at: datetime
    data: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class CoalescedSignals:
    """The signals of one name and source since the last prompt."""

    name: str
    source: str
    count: int
    #: The time of the latest signal, and the subjects of the latest signals, the latest first.
    at: datetime
    subjects: Sequence[str]


def coalesce(signals: Iterable[ReadSignal]) -> list[CoalescedSignals]:
    """Return one entry for each name and source: the source with the oldest signal first, its latest signals first.

    A prompt without room for all sources shows the first ones, so that no source waits forever.
    """
    groups: dict[tuple[str, str], list[ReadSignal]] = {}
    for found in signals:
        groups.setdefault((found.name, found.source), []).append(found)
    entries = []
    waiting_since: dict[str, datetime] = {}
    for (name, source), members in groups.items():
        latest_first = sorted(members, key=lambda found: found.at, reverse=True)
        oldest = latest_first[-1].at
        waiting_since[source] = min(waiting_since.get(source, oldest), oldest)
        subjects = dict.fromkeys(subject for found in latest_first if (subject := subject_of(found.data)))
        entries.append(
            CoalescedSignals(
                name=name,
                source=source,
                count=len(members),
                at=latest_first[0].at,
                subjects=list(subjects)[:SUBJECTS_SHOWN],
            )
        )
    entries.sort(key=lambda entry: (entry.at, entry.name), reverse=True)
    return sorted(entries, key=lambda entry: (waiting_since[entry.source], entry.source))


def subject_of(data: Mapping[str, Any]) -> str:
    """Return the subject of a signal in words, from the most descriptive field of its data; empty if no field has a text."""
    texts = (data.get(name) for name in _SUBJECTS)
    return next((text for text in texts if isinstance(text, str) and text), "")
