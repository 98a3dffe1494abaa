"""The present moment: what has just been thought, who is there, what worries, what is wondered about.

Version 3 of the struct of seed 000, 2. Of that list three are left out: `active_skills`, which nothing could fill, for
agents have no skills; `max_tokens`, which is what a prompt has room for, not a part of what is on the mind; and `model`,
which stands on the agent, and on each heartbeat. Whatever an earlier version stored is read (`_migrated`), and written anew at the next change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from arbor.clock import when
from arbor.errors import WorkingMemoryOverflow
from arbor.heartbeat.quoting import clip

VERSION = 3

# The origin of seed 000 keeps this many (thoughts, goals, concerns, questions).
MAX_THOUGHTS = 20
MAX_GOALS = 10
MAX_CONCERNS = 5
MAX_CURIOSITY = 10
THOUGHT_LENGTH = 500
LINE_LENGTH = 200
#: Seed 003, 3.3: the most that a stored working memory takes, in bytes of UTF-8.
MAX_BYTES = 64 * 1024

# How much a beat, or a turn of a conversation, moves engagement: our choice; being spoken to moves it most, rest lowers it.
ENGAGED_BY_USER = 0.2
ENGAGED_BY_ACTION = 0.05
DISENGAGED_BY_REST = 0.1

#: Seed 000, 7: after so many questions of people, memory is to be tended.
TALK_UNTIL_CONSOLIDATION = 10

#: What its text in a prompt may take, in tokens, where the caller does not say: our choice.
PROMPT_TOKENS = 800
#: A rule of thumb for English and most models.
CHARACTERS_PER_TOKEN = 4
#: A thought that an earlier version stored without its time.
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class Thought(BaseModel):
    """One thought and when it came."""

    model_config = ConfigDict(frozen=True)

    text: str
    at: datetime


class WorkingMemory(BaseModel):
    """What is on an agent's mind now; lists are oldest first, goals the most important first."""

    model_config = ConfigDict(frozen=True)

    version: int = VERSION
    agent_id: str | None = None
    name: str | None = None
    #: When the moment began: at birth, or when it was rebuilt.
    started_at: datetime | None = None
    #: Who talks to the agent now, and the id of that conversation; empty when nobody does.
    current_human: str | None = None
    current_conversation: str | None = None
    thoughts: Annotated[list[Thought], Field(max_length=MAX_THOUGHTS)] = []
    #: Titles.
    active_goals: Annotated[list[str], Field(max_length=MAX_GOALS)] = []
    concerns: Annotated[list[str], Field(max_length=MAX_CONCERNS)] = []
    curiosity: Annotated[list[str], Field(max_length=MAX_CURIOSITY)] = []
    engagement: Annotated[float, Field(ge=0, le=1)] = 0.5
    #: What people asked it since its memory was tended last.
    talked: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="before")
    @classmethod
    def _read(cls, stored: Any) -> Any:
        """Read what any version stored."""
        if not isinstance(stored, Mapping):
            return stored
        if stored.get("version") != VERSION:
            return _migrated(stored)
        if len(stored.get("thoughts", ())) > MAX_THOUGHTS:
            # A beat that was under way while somebody talked keeps the thoughts of both.
            return {**stored, "thoughts": stored["thoughts"][-MAX_THOUGHTS:]}
        return stored

    @property
    def wants_consolidation(self) -> bool:
        """Tell whether so much was talked that memory is to be tended."""
        return self.talked >= TALK_UNTIL_CONSOLIDATION

    def to_prompt_text(self, max_tokens: int = PROMPT_TOKENS, *, with_goals: bool = True) -> str:
        """Return it for a prompt in about `max_tokens` tokens, an entry per line; empty when there is nothing to say.

        Where it does not fit, the oldest thoughts are left out first, then the oldest questions and concerns. It is
        material: whoever puts it into a prompt wraps it as data.
        """
        head = [f"talking with: {_entry(self.current_human)}"] if self.current_human else []
        if with_goals:
            head += [f"working towards: {_entry(title)}" for title in self.active_goals]
        tail = [f"concern: {_entry(line)}" for line in self.concerns]
        tail += [f"curious about: {_entry(line)}" for line in self.curiosity]
        room = max_tokens * CHARACTERS_PER_TOKEN
        head = _fitting(head, room)
        room -= _size(head)
        tail = list(reversed(_fitting(reversed(tail), room)))
        room -= _size(tail)
        thoughts = [f"thought at {when(thought.at)}: {_entry(thought.text)}" for thought in self.thoughts]
        kept = list(reversed(_fitting(reversed(thoughts), room)))
        return "\n".join([*head, *kept, *tail])


def after_beat(
    memory: WorkingMemory,
    *,
    thinking: str,
    concerns: Iterable[str],
    curiosity: Iterable[str],
    user_waiting: bool,
    acted: bool,
    now: datetime,
    resolved: Iterable[str] = (),
    active_goals: Iterable[str] | None = None,
    tended: bool = False,
) -> WorkingMemory:
    """Return the working memory after a beat: its thought added, its concerns and questions on top, what is settled gone.

    The oldest fall out when a list is full; saying something again brings it back to the top. `acted` tells whether the
    beat did anything but rest, `tended` whether it tended the memory; `resolved` are the texts of concerns and questions
    that are settled; `active_goals` are titles, the most important first, None where they are as they were.
    """
    step = (ENGAGED_BY_USER if user_waiting else 0) + (ENGAGED_BY_ACTION if acted else -DISENGAGED_BY_REST)
    settled = {_key(text) for text in resolved}
    changes: dict[str, Any] = {
        "thoughts": _thought(memory, thinking, now),
        "concerns": _on_top(memory.concerns, concerns, MAX_CONCERNS, settled),
        "curiosity": _on_top(memory.curiosity, curiosity, MAX_CURIOSITY, settled),
        "engagement": min(max(memory.engagement + step, 0.0), 1.0),
        "talked": 0 if tended else memory.talked,
    }
    if active_goals is not None:
        changes["active_goals"] = [clip(title, LINE_LENGTH) for title in active_goals][:MAX_GOALS]
    return within_limit(memory.model_copy(update=changes))


def after_turn(
    memory: WorkingMemory, *, thinking: str, human: str, conversation: str, now: datetime
) -> WorkingMemory:
    """Return the working memory after a person has asked something and the agent has answered."""
    return within_limit(
        memory.model_copy(
            update={
                "thoughts": _thought(memory, thinking, now),
                "engagement": min(memory.engagement + ENGAGED_BY_USER, 1.0),
                "current_human": clip(human, LINE_LENGTH),
                "current_conversation": conversation,
                "talked": memory.talked + 1,
            }
        )
    )


def after_conversation(memory: WorkingMemory, *, conversation: str) -> WorkingMemory:
    """Return the working memory after a conversation has ended; another one that is going on stays."""
    if memory.current_conversation != conversation:
        return memory
    return memory.model_copy(update={"current_human": None, "current_conversation": None})


def with_goals(memory: WorkingMemory, titles: Iterable[str]) -> WorkingMemory:
    """Return the working memory with the goals of now: those it has in their order, then those that are new to it."""
    now = [clip(title, LINE_LENGTH) for title in titles]
    known = [title for title in memory.active_goals if title in now]
    new = [title for title in now if title not in known]
    return memory.model_copy(update={"active_goals": [*known, *new][:MAX_GOALS]})


def as_stored(memory: WorkingMemory) -> str:
    """Return what is stored of it, as JSON. Raises WorkingMemoryOverflow above 64 KB."""
    text = memory.model_dump_json()
    size = len(text.encode())
    if size > MAX_BYTES:
        raise WorkingMemoryOverflow(f"a working memory must have at most {MAX_BYTES:,} bytes, got {size:,}")
    return text


def _thought(memory: WorkingMemory, thinking: str, now: datetime) -> list[Thought]:
    thoughts = list(memory.thoughts)
    if thinking.strip():
        thoughts.append(Thought(text=clip(thinking.strip(), THOUGHT_LENGTH), at=now))
    return thoughts[-MAX_THOUGHTS:]


def _on_top(lines: Iterable[str], new: Iterable[str], most: int, settled: set[str]) -> list[str]:
    kept = {_key(line): line for line in lines}
    for line in new:
        line = clip(" ".join(line.split()), LINE_LENGTH)
        if line:
            kept.pop(_key(line), None)
            kept[_key(line)] = line
    return [line for key, line in kept.items() if key not in settled][-most:]


def _key(line: str) -> str:
    return clip(" ".join(line.split()), LINE_LENGTH).casefold()


def within_limit(memory: WorkingMemory) -> WorkingMemory:
    """Let the oldest thoughts go until what is left can be stored: only characters that JSON writes as six reach that."""
    while memory.thoughts and len(memory.model_dump_json().encode()) > MAX_BYTES:
        memory = memory.model_copy(update={"thoughts": memory.thoughts[1:]})
    return memory


def _entry(text: str) -> str:
    # Its further lines indented, so that they cannot pass for entries.
    return "\n    ".join(text.strip().splitlines())


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    """Return the first lines that fit into so many characters together."""
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept


def _size(lines: Iterable[str]) -> int:
    return sum(len(line) + 1 for line in lines)


# --- What other versions stored ------------------------------------------------------------------------


def _migrated(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return as version 3 what another version stored: what is understood, cut to today's limits.

    Version 1 had no number and plain lists; version 2 of the origin called them `recent_thoughts` and `engagement_level`.
    """
    began = stored.get("started_at")
    engagement = stored.get("engagement", stored.get("engagement_level"))
    talked = stored.get("talked")
    return {
        **{name: stored.get(name) for name in ("agent_id", "name", "current_human", "current_conversation")},
        "version": VERSION,
        "started_at": began,
        "thoughts": [
            _old_thought(each, began) for each in _list(stored, "thoughts", "recent_thoughts")[-MAX_THOUGHTS:]
        ],
        "active_goals": _texts(_list(stored, "active_goals"))[:MAX_GOALS],
        "concerns": _texts(_list(stored, "concerns"))[-MAX_CONCERNS:],
        "curiosity": _texts(_list(stored, "curiosity"))[-MAX_CURIOSITY:],
        "engagement": min(max(float(engagement), 0.0), 1.0) if isinstance(engagement, int | float) else 0.5,
        "talked": talked if isinstance(talked, int) and talked > 0 else 0,
    }


def _list(stored: Mapping[str, Any], *names: str) -> list[Any]:
    return next((list(stored[name]) for name in names if isinstance(stored.get(name), list | tuple)), [])


def _old_thought(each: Any, began: Any) -> Any:
    if isinstance(each, Mapping):
        text = each.get("text", each.get("content", ""))
        return {"text": str(text), "at": each.get("at") or each.get("timestamp") or began or _LONG_AGO}
    return each if isinstance(each, Thought) else {"text": str(each), "at": began or _LONG_AGO}


def _texts(lines: Iterable[Any]) -> list[str]:
    return [
        clip(
            str(line.get("text", line.get("title", ""))) if isinstance(line, Mapping) else str(line),
            LINE_LENGTH,
        )
        for line in lines
    ]
