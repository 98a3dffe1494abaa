"""The values of a backlog: states, layers and sources of goals, transitions, limits, new goals, feelings about goals."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from uuid import UUID

from arbor.errors import AlreadyExists, Invalid, LimitReached, TransitionIllegal
from arbor.goals.likeness import same_goal
from arbor.memory.content import check_text

# Seed 004, 4.2: at most three goals are active and at most ten queued.
MAX_ACTIVE = 3
MAX_QUEUED = 10
# The origin of seed 000 limits all open goals, because its agents created too many.
MAX_OPEN = 50
# New goals of one heartbeat, by rules, by actions and by replies together (the origin of seed 000).
MAX_NEW_PER_HEARTBEAT = 3
# C0 and C1 controls, line separators and marks of text direction: a list of goals is read on terminals.
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
# The same amounts by which these events move the mood (`arbor.selves.emotions`, from the origin of seed 004).
FEELING_OF_PROGRESS = 0.1
FEELING_OF_FAILED_STEP = -0.1
#: From this strength on, the prompt names the feeling.
MIN_FEELING = 0.3
TITLE_LENGTH = 300
#: The longest description of a goal that a person, a program or the agent's reply adds.
DESCRIPTION_LENGTH = 4_000
#: The longest note on a goal's progress.
NOTE_LENGTH = 4_000
# The stated priority of a goal (the origin of seed 000): 50 is usual.
MAX_PRIORITY = 100
DEFAULT_PRIORITY = 50


class GoalState(StrEnum):
    """The state of a goal in the backlog (seed 004, 4.2)."""

    #: Worked on now.
    ACTIVE = "active"
    #: Next when there is room.
    QUEUED = "queued"
    #: Wanted, but not soon.
    BACKBURNER = "backburner"
    #: Done.
    COMPLETED = "completed"
    #: Abandoned, with a reason.
    ABANDONED = "abandoned"

    @property
    def is_open(self) -> bool:
        """Return whether the goal can still be reached."""
        return self not in (GoalState.COMPLETED, GoalState.ABANDONED)


class GoalLayer(StrEnum):
    """The reach of a goal (seed 003, 3.7)."""

    #: Long-term.
    ASPIRATION = "aspiration"
    #: Medium-term.
    OBJECTIVE = "objective"
    #: Immediate.
    TASK = "task"


class GoalType(StrEnum):
    """The type of a goal."""

    #: Reach a result.
    ACHIEVE = "achieve"
    #: Preserve a state.
    MAINTAIN = "maintain"
    #: Find out what is there.
    EXPLORE = "explore"
    #: Acquire knowledge.
    LEARN = "learn"
    #: Prevent an event.
    AVOID = "avoid"
    #: Work with others.
    COLLABORATE = "collaborate"
    #: Become better at something.
    IMPROVE = "improve"
    #: Acquire an ability.
    CAPABILITY = "capability"


#: The most open goals of each layer. Seed 003 has the limit without a figure; goals that never end are the fewest.
MAX_OF_LAYER: Mapping[GoalLayer, int] = MappingProxyType(
    {GoalLayer.ASPIRATION: 10, GoalLayer.OBJECTIVE: 30, GoalLayer.TASK: 40}
)


class GoalSource(StrEnum):
    """The origin of a goal: the union of seed 004, 4.5 and seed 003, 3.7."""

    #: The user asked for the goal.
    USER_REQUEST = "user_request"
    #: The agent's own interest.
    CURIOSITY = "curiosity"
    #: The goal fits the agent's identity.
    IDENTITY = "identity"
    #: Part of another goal.
    DERIVED = "derived"
    #: An external event caused it.
    EXTERNAL = "external"
    #: The agent cannot go on without reaching the goal.
    SURVIVAL = "survival"
    #: The agent's role.
    ROLE = "role"
    #: A chance that an event offers.
    OPPORTUNITY = "opportunity"
    #: The agent's reputation with others.
    SOCIAL = "social"


# The initial state of a goal, by source. The first five are seed 004, 4.5 (a derived goal starts in its parent's state, see
# `default_state`). Goals of survival and of the role are active at once, so that a new agent has work; chances and
# reputation are queued like other external events.
DEFAULT_STATES: Mapping[GoalSource, GoalState] = MappingProxyType(
    {
        GoalSource.USER_REQUEST: GoalState.ACTIVE,
        GoalSource.CURIOSITY: GoalState.QUEUED,
        GoalSource.IDENTITY: GoalState.QUEUED,
        GoalSource.DERIVED: GoalState.QUEUED,
        GoalSource.EXTERNAL: GoalState.QUEUED,
        GoalSource.SURVIVAL: GoalState.ACTIVE,
        GoalSource.ROLE: GoalState.ACTIVE,
        GoalSource.OPPORTUNITY: GoalState.QUEUED,
        GoalSource.SOCIAL: GoalState.QUEUED,
    }
)

# Seed 004, 4.3: backburner <-> queued <-> active -> completed; every open state -> abandoned.
TRANSITIONS: Mapping[GoalState, tuple[GoalState, ...]] = MappingProxyType(
    {
        GoalState.BACKBURNER: (GoalState.QUEUED, GoalState.ABANDONED),
        GoalState.QUEUED: (GoalState.ACTIVE, GoalState.BACKBURNER, GoalState.ABANDONED),
        GoalState.ACTIVE: (GoalState.QUEUED, GoalState.COMPLETED, GoalState.ABANDONED),
        GoalState.COMPLETED: (),
        GoalState.ABANDONED: (),
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class BacklogCounts:
    """The number of an agent's goals in each open state."""

    active: int = 0
    queued: int = 0
    backburner: int = 0

    @property
    def open(self) -> int:
        """Return the number of open goals."""
        return self.active + self.queued + self.backburner


def default_state(source: GoalSource, parent: GoalState | None = None) -> GoalState:
    """Return the initial state of a goal by its source; a derived goal has the state of its open parent."""
    if source is GoalSource.DERIVED and parent is not None and parent.is_open:
        return parent
    return DEFAULT_STATES[source]


def move(state: GoalState, to: GoalState) -> GoalState:
    """Return `to` if a goal may go there from `state`.

    Raises TransitionIllegal, naming the states that are possible.
    """
    possible = TRANSITIONS[state]
    if to in possible:
        return to
    if not possible:
        raise TransitionIllegal(f"a goal that is {state} stays {state}; make a new goal to take it up again")
    raise TransitionIllegal(f"a goal that is {state} can become {', '.join(possible)}, not {to}")


def require_layer(layer: GoalLayer, open_layers: Sequence[GoalLayer]) -> None:
    """Raise LimitReached if a layer of the goals is full (seed 003, "goal stack full at layer")."""
    most = MAX_OF_LAYER[layer]
    if open_layers.count(layer) >= most:
        raise LimitReached(
            f"at most {most} goals of the layer {layer} are open at once; complete or abandon one of them first"
        )


def require_room(to: GoalState, counts: BacklogCounts) -> None:
    """Raise LimitReached if the target state of a goal is full."""
    if to is GoalState.ACTIVE and counts.active >= MAX_ACTIVE:
        raise LimitReached(
            f"at most {MAX_ACTIVE} goals are active at once; complete, queue or abandon one of them first"
        )
    if to is GoalState.QUEUED and counts.queued >= MAX_QUEUED:
        raise LimitReached(
            f"at most {MAX_QUEUED} goals are queued; activate, put back or abandon one of them first"
        )


def admitted_state(
    title: str, requested: GoalState, *, counts: BacklogCounts, open_titles: Collection[str]
) -> GoalState:
    """Return the state a new goal gets: `requested`, or the next lower one with room (active, queued, backburner).

    Raises AlreadyExists for the title of an open goal, even in other words, LimitReached when the backlog is full,
    TransitionIllegal for a closed state, Invalid for a title of several lines or with control characters.
    """
    if not requested.is_open:
        raise TransitionIllegal(f"a new goal is active, queued or backburner, not {requested}")
    key = text_key(title)
    if any(text_key(other) == key for other in open_titles):
        raise AlreadyExists(f"there is an open goal called {title.strip()!r} already")
    similar = next((other for other in open_titles if same_goal(title, other)), None)
    if similar is not None:
        raise AlreadyExists(
            f"there is an open goal {similar!r} already, which says the same as {title.strip()!r}"
        )
    if _CONTROL_CHARACTERS.search(title):
        raise Invalid(f"a goal's title is one line without control characters, got {title!r}")
    if counts.open >= MAX_OPEN:
        raise LimitReached(f"at most {MAX_OPEN} goals are open at once; complete or abandon some first")
    if requested is GoalState.ACTIVE and counts.active >= MAX_ACTIVE:
        requested = GoalState.QUEUED
    if requested is GoalState.QUEUED and counts.queued >= MAX_QUEUED:
        requested = GoalState.BACKBURNER
    return requested


def as_title(text: str) -> str:
    """Make a title of a text: one line without control characters, possibly empty."""
    return " ".join(_CONTROL_CHARACTERS.sub(" ", text).split())


def text_key(text: str) -> str:
    """Normalize a text for comparison: trimmed, with single blanks, case folded."""
    return " ".join(text.split()).casefold()


def move_feeling(valence: float, by: float) -> float:
    """Move a feeling; the nearer it is to an end of the scale, the less it moves that way."""
    room = 1 - valence if by > 0 else 1 + valence
    return round(min(max(valence + by * min(room, 1.0), -1.0), 1.0), 4)


def feeling_word(valence: float) -> str:
    """Return a feeling as a word; empty for a weak one."""
    if abs(valence) < MIN_FEELING:
        return ""
    return "feels good" if valence > 0 else "feels bad"


@dataclass(frozen=True, kw_only=True, slots=True)
class NewGoalRequest:
    """A goal to add; without a state, its source decides the state."""

    title: str
    description: str = ""
    layer: GoalLayer = GoalLayer.OBJECTIVE
    source: GoalSource = GoalSource.CURIOSITY
    state: GoalState | None = None
    parent_id: str | UUID | None = None
    deadline: datetime | None = None
    #: Another open goal's id, or words.
    blocked_by: str = ""
    type: GoalType = GoalType.ACHIEVE
    #: The stated priority, 0 to 100.
    priority: int = DEFAULT_PRIORITY
    #: 0 to 1; None: by its source.
    expected_reward: float | None = None
    #: The rule of `arbor.goals.goal_rules` that created the goal, if any.
    rule: str = ""


def check_new_goal(request: NewGoalRequest) -> str:
    """Return the new goal's title without blanks around it; raises Invalid for a wrong title, description, reward or priority."""
    title = request.title.strip()
    if not 1 <= len(title) <= TITLE_LENGTH:
        raise Invalid(f"a goal's title has 1 to {TITLE_LENGTH} characters, got {len(title)}")
    check_text("a goal's title", title)
    check_text("a goal's description", request.description)
    reward = request.expected_reward
    if reward is not None and not 0 <= reward <= 1:
        raise Invalid(f"a goal's expected reward is 0 to 1, got {reward}")
    if not 0 <= request.priority <= MAX_PRIORITY:
        raise Invalid(f"a goal's priority is 0 to {MAX_PRIORITY}, got {request.priority}")
    return title
