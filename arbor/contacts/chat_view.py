"""The view that an agent has at a turn of a conversation: the only input of its prompt."""

from __future__ import annotations

from datetime import datetime
from operator import not_
from typing import Annotated

from pydantic import AliasChoices, BaseModel, Field

from arbor.contacts.values import Speaker
from arbor.heartbeat.situation import MemoryView
from arbor.heartbeat.views import (
    AspectView,
    BeliefView,
    MoodView,
    PassageView,
    PreferenceView,
    SkillView,
    Sparse,
)
from arbor.heartbeat.working_memory import WorkingMemory


class ChatViewPart(BaseModel, frozen=True):
    """A part of the view that an agent has at a turn."""


class TurnView(ChatViewPart):
    """An earlier turn of the conversation."""

    id: str = ""
    speaker: Speaker
    text: str
    at: datetime


class TurnSummary(ChatViewPart):
    """A summary of turns that are not shown, and its origin."""

    text: str
    #: The number of turns, and their tokens.
    turns: int
    tokens: int = 0
    #: The times of the first and the last turn, and their ids, if known.
    started_at: datetime
    last_at: datetime
    first_id: str = ""
    last_id: str = ""
    #: The episode whose summary it is; empty: summarized for this prompt.
    episode_id: str = ""
    #: A model, or the rule.
    by: str


class CodeView(ChatViewPart):
    """A code snippet that the agent stored."""

    language: str
    title: str
    code: str


class ChatBoundaryMatch(ChatViewPart):
    """A boundary that applies to the message."""

    name: str
    description: str
    #: An `arbor.selves.boundaries.BoundaryResponse`.
    response: str
    why: str


class ChatView(ChatViewPart):
    """Everything an agent sees at a turn of a conversation."""

    name: str
    person: str
    message: str
    #: The note that the person's chat client sends with the message, such as its own system prompt.
    client_note: str = ""
    now: datetime
    hours_since_user: float | None = None
    #: The agent's active skills, in order.
    skills: Sparse[SkillView] = []
    aspects: list[AspectView] = []
    beliefs: list[BeliefView] = []
    preferences: list[PreferenceView] = []
    mood: MoodView | None = None
    working_memory: WorkingMemory = WorkingMemory()
    #: Memories recalled for the message, best first.
    relevant: list[MemoryView] = []
    #: Passages of documents, the most similar first.
    passages: Sparse[PassageView] = []
    #: Sources that were not searched, or only in part, and why.
    search_faults: Annotated[list[str], Field(exclude_if=not_)] = []
    code: list[CodeView] = []
    #: Older stored views have the second name.
    boundary_matches: Annotated[
        list[ChatBoundaryMatch], Field(validation_alias=AliasChoices("boundary_matches", "crossings"))
    ] = []
    #: Oldest first; `earlier` counts the turns before these, of which there are only summaries, and `earlier_tokens` their tokens.
    turns: list[TurnView] = []
    summaries: Annotated[list[TurnSummary], Field(exclude_if=not_)] = []
    earlier: int = 0
    earlier_tokens: int = 0
