"""The working memory: thoughts, concerns, questions, goals, and the current conversation.

Version 3 of the struct of seed 000, 2, without `active_skills` (the situation has them), `max_tokens` (a prompt's) and `model`
(the agent's). Earlier versions are migrated when read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, model_validator

from arbor.clock import format_time, in_utc
from arbor.errors import WorkingMemoryOverflow
from arbor.models.token_estimates import CHARACTERS_PER_TOKEN
from arbor.quotations import shorten

VERSION = 3

# The origin of seed 000.
MAX_THOUGHTS = 20
MAX_GOALS = 10
MAX_CONCERNS = 5
MAX_CURIOSITY = 10
THOUGHT_LENGTH = 500
LINE_LENGTH = 200
#: Seed 003, 3.3: the most that a stored working memory takes, in bytes of UTF-8.
MAX_BYTES = 64 * 1024

# Changes of engagement by a heartbeat or a turn of a conversation.
ENGAGED_BY_USER = 0.2
ENGAGED_BY_ACTION = 0.05
DISENGAGED_BY_REST = 0.1

#: Seed 000, 7: answered turns of conversations until consolidation.
TALK_UNTIL_CONSOLIDATION = 10

#: The default limit of a working memory's text in a prompt, in tokens.
PROMPT_TOKENS = 800
#: The time of a thought that an earlier version stored without one.
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class Thought(BaseModel, frozen=True):
    """One thought and its time, in UTC, which is assumed for a time without a zone."""

    text: str
    at: Annotated[datetime, AfterValidator(in_utc)]


class WorkingMemory(BaseModel, frozen=True):
    """The working memory; lists are oldest first, goals the most important first."""

    version: int = VERSION
    agent_id: str | None = None
    name: str | None = None
    #: The time at which the working memory was created or rebuilt.
    started_at: datetime | None = None
    #: The current speaker and the id of the conversation, if any.
    current_human: str | None = None
    current_conversation: str | None = None
    thoughts: Annotated[list[Thought], Field(max_length=MAX_THOUGHTS)] = []
    #: Titles.
    active_goals: Annotated[list[str], Field(max_length=MAX_GOALS)] = []
    concerns: Annotated[list[str], Field(max_length=MAX_CONCERNS)] = []
    curiosity: Annotated[list[str], Field(max_length=MAX_CURIOSITY)] = []
    engagement: Annotated[float, Field(ge=0, le=1)] = 0.5
    #: Answered turns of conversations since the last consolidation.
    talked: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="before")
    @classmethod
    def _read(cls, stored: Any) -> Any:
        if not isinstance(stored, Mapping):
            return stored
        if stored.get("version") != VERSION:
            return _migrate(stored)
        thoughts = stored.get("thoughts")
        if isinstance(thoughts, list | tuple) and len(thoughts) > MAX_THOUGHTS:
            # A heartbeat during a conversation may store the thoughts of both.
            return {**stored, "thoughts": thoughts[-MAX_THOUGHTS:]}
        return stored

    @property
    def wants_consolidation(self) -> bool:
        return self.talked >= TALK_UNTIL_CONSOLIDATION

    def to_prompt_text(self, max_tokens: int = PROMPT_TOKENS, *, with_goals: bool = True) -> str:
        """Return the entries, one per line, in about `max_tokens` tokens; the caller wraps them as data.

        Drops the oldest thoughts first, then the oldest concerns, then the oldest questions.
        """
        head = [f"talking with: {_entry(self.current_human)}"] if self.current_human else []
        if with_goals:
            head += [f"working towards: {_entry(title)}" for title in self.active_goals]
        tail = [f"concern: {_entry(line)}" for line in self.concerns]
        tail += [f"curious about: {_entry(line)}" for line in self.curiosity]
        thoughts = [
            f"thought at {format_time(thought.at)}: {_entry(thought.text)}" for thought in self.thoughts
        ]
        head, room = _first_fitting(head, max_tokens * CHARACTERS_PER_TOKEN)
        tail, room = _first_fitting(reversed(tail), room)
        thoughts, _ = _first_fitting(reversed(thoughts), room)
        return "\n".join([*head, *reversed(thoughts), *reversed(tail)])


@dataclass(frozen=True, kw_only=True, slots=True)
class PastHeartbeat:
    """The fields of a completed heartbeat that change the working memory."""

    at: datetime
    thinking: str = ""
    concerns: Sequence[str] = ()
    curiosity: Sequence[str] = ()
    #: Texts of settled concerns and questions.
    resolved: Sequence[str] = ()
    #: Titles, the most important first; None: unchanged.
    active_goals: Sequence[str] | None = None
    #: Whether a user wrote, any action was work, its mode was consolidation.
    user_waiting: bool = False
    acted: bool = False
    consolidated: bool = False
    #: The intervals that passed without a thought before this heartbeat.
    idle: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class PastTurn:
    """An answered turn of a conversation."""

    at: datetime
    human: str
    conversation: str
    thinking: str = ""
    #: Whether the conversation has ended.
    over: bool = True


def after_heartbeat(memory: WorkingMemory, past: PastHeartbeat) -> WorkingMemory:
    """Return the working memory after a heartbeat: a full list drops its oldest entries, a repeated one becomes the newest."""
    step = ENGAGED_BY_USER if past.user_waiting else 0
    step += ENGAGED_BY_ACTION if past.acted else -DISENGAGED_BY_REST
    # Idle intervals count as rest: otherwise an agent that nobody talks to would be fully engaged for ever.
    step -= DISENGAGED_BY_REST * past.idle
    settled = {_key(text) for text in past.resolved}
    changes: dict[str, Any] = {
        "thoughts": _thought(memory, past.thinking, past.at),
        "concerns": _with_newest(memory.concerns, past.concerns, MAX_CONCERNS, settled),
        "curiosity": _with_newest(memory.curiosity, past.curiosity, MAX_CURIOSITY, settled),
        "engagement": round(min(max(memory.engagement + step, 0.0), 1.0), 4),
        "talked": 0 if past.consolidated else memory.talked,
    }
    if past.active_goals is not None:
        changes["active_goals"] = _titles(past.active_goals)
    return within_limit(memory.model_copy(update=changes))


def unknown_lines(memory: WorkingMemory, texts: Iterable[str]) -> list[str]:
    """Return the texts that are neither a concern nor a question of the working memory."""
    known = {_key(line) for line in (*memory.concerns, *memory.curiosity)}
    return [text for text in texts if _key(text) not in known]


def idle_intervals(
    memory: WorkingMemory, *, interval: timedelta, now: datetime, last_heartbeat_at: datetime | None
) -> int:
    """Return the number of intervals without a thought and without a recorded heartbeat since the last of either."""
    times = [thought.at for thought in memory.thoughts[-1:]]
    # A heartbeat without a thought has subtracted the intervals before it.
    times += [last_heartbeat_at] if last_heartbeat_at else []
    return max(round((now - max(times)) / interval) - 1, 0) if times else 0


def initial_working_memory(
    memory: WorkingMemory, events: Iterable[PastHeartbeat | PastTurn], *, active_goals: Sequence[str]
) -> WorkingMemory:
    """Return an initial working memory after these events; `active_goals` are titles."""
    for event in sorted(events, key=lambda past: past.at):
        if isinstance(event, PastHeartbeat):
            memory = after_heartbeat(memory, event)
            continue
        talk = event.conversation
        memory = after_turn(
            memory, thinking=event.thinking, human=event.human, conversation=talk, now=event.at
        )
        if event.over:
            memory = after_conversation(memory, conversation=talk)
    return memory.model_copy(update={"active_goals": _titles(active_goals)})


def after_turn(
    memory: WorkingMemory, *, thinking: str, human: str, conversation: str, now: datetime
) -> WorkingMemory:
    """Return the working memory after an answered turn of a conversation."""
    return within_limit(
        memory.model_copy(
            update={
                "thoughts": _thought(memory, thinking, now),
                "engagement": round(min(memory.engagement + ENGAGED_BY_USER, 1.0), 4),
                "current_human": shorten(human, LINE_LENGTH),
                "current_conversation": conversation,
                "talked": memory.talked + 1,
            }
        )
    )


def after_conversation(memory: WorkingMemory, *, conversation: str) -> WorkingMemory:
    """Return the working memory after the end of a conversation; another open one stays."""
    if memory.current_conversation != conversation:
        return memory
    return memory.model_copy(update={"current_human": None, "current_conversation": None})


def with_goals(memory: WorkingMemory, titles: Iterable[str]) -> WorkingMemory:
    """Return the working memory with these goals: known ones in their order, then new ones."""
    now = [shorten(title, LINE_LENGTH) for title in titles]
    known = [title for title in memory.active_goals if title in now]
    new = [title for title in now if title not in known]
    return memory.model_copy(update={"active_goals": [*known, *new][:MAX_GOALS]})


def as_stored(memory: WorkingMemory) -> str:
    """Return the stored JSON. Raises WorkingMemoryOverflow above 64 KB."""
    text = memory.model_dump_json()
    size = len(text.encode())
    if size > MAX_BYTES:
        raise WorkingMemoryOverflow(f"a working memory must have at most {MAX_BYTES:,} bytes, got {size:,}")
    return text


def _titles(titles: Iterable[str]) -> list[str]:
    return [shorten(title, LINE_LENGTH) for title in titles][:MAX_GOALS]


def _thought(memory: WorkingMemory, thinking: str, now: datetime) -> list[Thought]:
    text = shorten(thinking.strip(), THOUGHT_LENGTH)
    if not text:
        return memory.thoughts
    others = [thought for thought in memory.thoughts if thought.text != text]
    return [*others, Thought(text=text, at=now)][-MAX_THOUGHTS:]


def _with_newest(lines: Iterable[str], new: Iterable[str], most: int, settled: set[str]) -> list[str]:
    fitting = {_key(line): line for line in lines}
    for line in new:
        line = shorten(" ".join(line.split()), LINE_LENGTH)
        if line:
            fitting.pop(_key(line), None)
            fitting[_key(line)] = line
    return [line for key, line in fitting.items() if key not in settled][-most:]


def _key(line: str) -> str:
    return shorten(" ".join(line.split()), LINE_LENGTH).casefold()


def within_limit(memory: WorkingMemory) -> WorkingMemory:
    """Drop the oldest thoughts until the rest fits; only characters that JSON escapes make that necessary."""
    while memory.thoughts and len(memory.model_dump_json().encode()) > MAX_BYTES:
        memory = memory.model_copy(update={"thoughts": memory.thoughts[1:]})
    return memory


def _entry(text: str) -> str:
    # Further lines are indented, so that they cannot look like entries.
    return "\n    ".join(text.strip().splitlines())


def _first_fitting(lines: Iterable[str], room: int) -> tuple[list[str], int]:
    """Return the first lines that fit into `room` characters together, and the room that is left."""
    fitting: list[str] = []
    for line in lines:
        if len(line) >= room:
            break
        room -= len(line) + 1
        fitting.append(line)
    return fitting, room


def _migrate(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return another version's data as version 3, cut to its limits.

    Version 1 had no number and plain lists; version 2 named them `recent_thoughts` and `engagement_level`.
    """
    started_at = stored.get("started_at")
    engagement = stored.get("engagement", stored.get("engagement_level"))
    talked = stored.get("talked")
    return {
        **{name: stored.get(name) for name in ("agent_id", "name", "current_human", "current_conversation")},
        "version": VERSION,
        "started_at": started_at,
        "thoughts": [
            _old_thought(thought, started_at)
            for thought in _list(stored, "thoughts", "recent_thoughts")[-MAX_THOUGHTS:]
        ],
        "active_goals": _texts(_list(stored, "active_goals"))[:MAX_GOALS],
        "concerns": _texts(_list(stored, "concerns"))[-MAX_CONCERNS:],
        "curiosity": _texts(_list(stored, "curiosity"))[-MAX_CURIOSITY:],
        "engagement": min(max(engagement, 0), 1) if isinstance(engagement, int | float) else 0.5,
        "talked": talked if isinstance(talked, int) and talked > 0 else 0,
    }


def _list(stored: Mapping[str, Any], *names: str) -> list[Any]:
    return next((list(stored[name]) for name in names if isinstance(stored.get(name), list | tuple)), [])


def _old_thought(thought: Any, started_at: Any) -> Any:
    if isinstance(thought, Thought):
        return thought
    written = thought if isinstance(thought, Mapping) else {"text": thought}
    at = written.get("at") or written.get("timestamp") or started_at or _LONG_AGO
    return {"text": str(written.get("text", written.get("content", ""))), "at": at}


def _texts(lines: Iterable[Any]) -> list[str]:
    return [
        shorten(
            str(line.get("text", line.get("title", ""))) if isinstance(line, Mapping) else str(line),
            LINE_LENGTH,
        )
        for line in lines
    ]
