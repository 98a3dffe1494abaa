"""Goal rules: create goals from needs, from an agent's role and from events (seed 003, 3.7, 10.4).

Each rule creates at most one goal, and none while an earlier one of its goals is open or, except for an opportunity, was
ended lately. Survival creates one in a week.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType

from arbor.agents.genome import AgentRole
from arbor.goals.likeness import same_goal
from arbor.goals.values import MAX_NEW_PER_HEARTBEAT, MAX_OPEN, GoalLayer, GoalSource, as_title

# Seed 003, 10.4.
CURIOSITY_AFTER = 10.0
CURIOSITY_PER_RISK = 20.0
#: The risk tolerance of an agent without traits.
BALANCED_RISK = 0.5
# Seed 003, 3.7, names a balance below 20. Arbor has energy and a daily budget of tokens and money instead: this many
# heartbeats in a row that ended without energy, or a budget of which 30 % or less is left, mean the same.
EXHAUSTED_HEARTBEATS = 3
#: The time from one survival goal to the next: a limit that is reached each day is no news, and each prompt names the budget level.
SURVIVAL_PAUSE = timedelta(days=7)
# The origin of seed 003: the reputation below and above which a rule creates a goal, and the number of dealings from
# which the reputation counts.
POOR_REPUTATION = 0.3
GOOD_REPUTATION = 0.7
REPUTATION_KNOWN_FROM = 3
#: Characters of an event's text that a goal's title quotes.
QUOTE_LENGTH = 120


class GoalRule(StrEnum):
    """The rule that created a goal; its name is stored with the goal."""

    #: The agent has met nothing new for too long.
    CURIOSITY = "curiosity"
    #: The agent's energy or daily budget runs out.
    SURVIVAL = "survival"
    #: The agent has no aspiration; its role has one.
    ROLE = "role"
    #: An event may be a chance.
    OPPORTUNITY = "opportunity"
    #: The agent's peers think little of it.
    REPUTATION = "reputation"
    #: The agent's peers think much of it.
    MENTORING = "mentoring"


@dataclass(frozen=True, kw_only=True, slots=True)
class Circumstances:
    """The input of the goal rules."""

    #: Rules that have an open goal.
    open_rules: frozenset[str] = frozenset()
    #: Rules whose goal the agent or a person has ended lately, and survival after it created one.
    ended_rules: frozenset[str] = frozenset()
    #: Titles of all open goals.
    open_titles: Sequence[str] = ()
    #: Whether an aspiration is open.
    has_aspiration: bool = False
    role: AgentRole | None = None
    risk_tolerance: float = BALANCED_RISK
    #: Heartbeats since the agent last met something new.
    stale_heartbeats: int = 0
    #: Whether the agent can find something new: the reflex policy cannot without access to the web.
    can_explore: bool = True
    #: Heartbeats in a row that ended without energy.
    exhausted_heartbeats: int = 0
    #: Whether 30 % or less of the day's budget is left.
    budget_runs_low: bool = False
    #: Events that may be chances, as texts.
    chances: Sequence[str] = ()
    #: The share of peers' dealings with the agent that went well, and the number of dealings.
    reputation: float | None = None
    dealings: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleGoal:
    """A goal that a rule creates."""

    rule: GoalRule
    title: str
    description: str
    layer: GoalLayer
    source: GoalSource


#: The aspiration of each role: title and description. Seed 003, 3.2, names the roles; the texts are Arbor's.
ASPIRATIONS: Mapping[AgentRole, tuple[str, str]] = MappingProxyType(
    {
        AgentRole.GENERALIST: (
            "Be of use wherever something is needed next",
            "What the moment needed was seen and done, again and again.",
        ),
        AgentRole.COMPILER_SMITH: (
            "Build tools that other tools are made with",
            "Others build on what you made, and it holds.",
        ),
        AgentRole.LIBRARIAN: (
            "Keep what is known, and keep it findable",
            "Whoever asks finds what is known, with where it comes from.",
        ),
        AgentRole.ARCHITECT: (
            "Shape how the parts fit together",
            "The whole is understood, and each part has its place.",
        ),
        AgentRole.EXPLORER: (
            "Go where nobody has looked",
            "What was unknown is on the map, and others can follow.",
        ),
    }
)


def calls_for_work(layer: GoalLayer, rule: str) -> bool:
    """Return whether an active goal is by itself a reason for a heartbeat: an objective or a task is.

    An aspiration never ends, and its work is done by goals and steps of its own. A goal to spend
    less would otherwise cause spending itself.
    """
    return layer is not GoalLayer.ASPIRATION and rule != GoalRule.SURVIVAL


def has_recovered(circumstances: Circumstances) -> bool:
    """Return whether the cause of the survival goal is over: the day's budget no longer runs low, and the latest heartbeat ended with energy."""
    return not circumstances.budget_runs_low and not circumstances.exhausted_heartbeats


def curiosity_pressure(stale_heartbeats: int, risk_tolerance: float) -> float:
    """Return the pressure of curiosity (seed 003, 10.4); above 1 the agent explores."""
    return stale_heartbeats / (CURIOSITY_AFTER + CURIOSITY_PER_RISK * risk_tolerance)


def apply_goal_rules(circumstances: Circumstances) -> list[RuleGoal]:
    """Apply the rules; return their goals, the most urgent first, none where there is no room."""
    if len(circumstances.open_titles) >= MAX_OPEN:
        return []
    candidates = (
        _survival(circumstances),
        _opportunity(circumstances),
        _role(circumstances),
        _reputation(circumstances),
        _curiosity(circumstances),
    )
    fitting = [
        goal
        for goal in candidates
        if goal is not None
        and goal.rule not in circumstances.open_rules
        # Another event is another chance; the other causes last, so that the same goal would come back at once.
        and (goal.rule is GoalRule.OPPORTUNITY or goal.rule not in circumstances.ended_rules)
        and not any(same_goal(goal.title, title) for title in circumstances.open_titles)
    ]
    return fitting[:MAX_NEW_PER_HEARTBEAT]


def _survival(circumstances: Circumstances) -> RuleGoal | None:
    if not circumstances.budget_runs_low and circumstances.exhausted_heartbeats < EXHAUSTED_HEARTBEATS:
        return None
    why = (
        "the day's budget runs low"
        if circumstances.budget_runs_low
        else "your energy was used up heartbeat after heartbeat"
    )
    return RuleGoal(
        rule=GoalRule.SURVIVAL,
        title="Live within your means",
        description=f"You rest and choose cheap actions until there is enough again; {why}.",
        layer=GoalLayer.TASK,
        source=GoalSource.SURVIVAL,
    )


def _opportunity(circumstances: Circumstances) -> RuleGoal | None:
    chance = next((text for text in map(_first_line, circumstances.chances) if text), "")
    if not chance:
        return None
    return RuleGoal(
        rule=GoalRule.OPPORTUNITY,
        title=f"See what to make of: {chance}",
        description="You know whether it is a chance, and have taken it or let it pass with a reason.",
        layer=GoalLayer.OBJECTIVE,
        source=GoalSource.OPPORTUNITY,
    )


def _role(circumstances: Circumstances) -> RuleGoal | None:
    if circumstances.role is None or circumstances.has_aspiration:
        return None
    title, description = ASPIRATIONS[circumstances.role]
    return RuleGoal(
        rule=GoalRule.ROLE,
        title=title,
        description=description,
        layer=GoalLayer.ASPIRATION,
        source=GoalSource.ROLE,
    )


def _reputation(circumstances: Circumstances) -> RuleGoal | None:
    if circumstances.reputation is None or circumstances.dealings < REPUTATION_KNOWN_FROM:
        return None
    if circumstances.reputation < POOR_REPUTATION:
        return RuleGoal(
            rule=GoalRule.REPUTATION,
            title="Improve how you stand with your peers",
            description="Your next dealings with them went well, and you kept what you promised.",
            layer=GoalLayer.OBJECTIVE,
            source=GoalSource.SOCIAL,
        )
    if circumstances.reputation > GOOD_REPUTATION:
        return RuleGoal(
            rule=GoalRule.MENTORING,
            title="Be a mentor to your peers",
            description="Others can do what only you could, because you showed them.",
            layer=GoalLayer.ASPIRATION,
            source=GoalSource.SOCIAL,
        )
    return None


def _curiosity(circumstances: Circumstances) -> RuleGoal | None:
    if (
        not circumstances.can_explore
        or curiosity_pressure(circumstances.stale_heartbeats, circumstances.risk_tolerance) <= 1.0
    ):
        return None
    return RuleGoal(
        rule=GoalRule.CURIOSITY,
        title="Explore something unfamiliar",
        description="You have met something new, and noted what it was.",
        layer=GoalLayer.OBJECTIVE,
        source=GoalSource.CURIOSITY,
    )


def _first_line(text: str) -> str:
    lines = text.replace("\0", "").strip().splitlines()
    return as_title(lines[0])[:QUOTE_LENGTH].strip() if lines else ""
