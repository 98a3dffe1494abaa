"""The actions of a heartbeat: price, parameters and purpose of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from arbor.contacts.cooldown import REACH_OUT_AGENT, REACH_OUT_PUBLIC, REACH_OUT_USER
from arbor.heartbeat.params.memory import (
    ActionParams,
    ConnectParams,
    RecallParams,
    ReflectParams,
    RememberParams,
    SearchParams,
    SynthesizeParams,
)
from arbor.heartbeat.params.outward import (
    BrainstormGoalsParams,
    CompleteStepParams,
    InquireDeepParams,
    InquireShallowParams,
    MaintainParams,
    ReachOutAgentParams,
    ReachOutPublicParams,
    ReachOutUserParams,
    ReprioritizeParams,
    StartWorkflowParams,
)
from arbor.heartbeat.situation import ActionOffer
from arbor.knowledge.merging import SEARCH_KNOWLEDGE, SEARCH_MY_MEMORIES
from arbor.workflows.values import COMPLETE_STEP, START_WORKFLOW

__all__ = ["ACTIONS", "ActionParams", "ActionRegistry", "ActionSpec"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionSpec:
    """One action: its name, its price in energy, its purpose and its parameters."""

    name: str
    cost: int
    summary: str
    params: type[ActionParams]

    def offer(self) -> ActionOffer:
        """Return the action's entry in a situation."""
        params = {name: field.description or "" for name, field in self.params.model_fields.items()}
        return ActionOffer(name=self.name, cost=self.cost, summary=self.summary, params=params)


class ActionRegistry(Mapping[str, ActionSpec]):
    """All actions by name, immutable."""

    def __init__(self, specs: Iterable[ActionSpec]) -> None:
        by_name: dict[str, ActionSpec] = {}
        for spec in specs:
            if spec.name in by_name:
                raise ValueError(f"two actions are called {spec.name!r}; an action name is unique")
            by_name[spec.name] = spec
        self._specs = MappingProxyType(by_name)
        self._offers = {name: spec.offer() for name, spec in by_name.items()}

    def __getitem__(self, name: str) -> ActionSpec:
        return self._specs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    def offers(
        self, allowed: Collection[str], *, price: Callable[[ActionSpec], int] | None = None
    ) -> list[ActionOffer]:
        """Return the offers of the permitted actions, in the registry's order; `price` replaces the price in energy."""
        offers = [offer for name, offer in self._offers.items() if name in allowed]
        if price is None:
            return offers
        return [offer.model_copy(update={"cost": price(self._specs[offer.name])}) for offer in offers]


# Seed 004, 2.4 and 3, in its order.
_TABLE: tuple[tuple[str, int, str, type[ActionParams]], ...] = (
    ("observe", 0, "look once more at your environment and yourself", ActionParams),
    ("review_goals", 0, "look through all your goals for what is blocked, stale or due", ActionParams),
    ("recall", 1, "search your memory, and read", RecallParams),
    (SEARCH_MY_MEMORIES, 1, "search all that you may know", SearchParams),
    (SEARCH_KNOWLEDGE, 1, "documents only", SearchParams),
    ("remember", 0, "keep something worth keeping", RememberParams),
    ("connect", 1, "tie two things together: memories, goals, beliefs", ConnectParams),
    (
        "maintain",
        2,
        "look at a memory, belief or cluster again, and keep, revise, doubt or retire it",
        MaintainParams,
    ),
    ("reflect", 2, "notice a pattern or draw a lesson, and keep it", ReflectParams),
    ("inquire_shallow", 3, "find something out on the web from two or three pages", InquireShallowParams),
    (
        "inquire_deep",
        6,
        "find something out on the web and in your memory from many sources",
        InquireDeepParams,
    ),
    ("synthesize", 4, "make something of what you know", SynthesizeParams),
    ("brainstorm_goals", 3, "think of goals that might be worth wanting", BrainstormGoalsParams),
    ("reprioritize", 1, "move a goal one step in the backlog", ReprioritizeParams),
    (REACH_OUT_USER, 5, "write to your users; never casual", ReachOutUserParams),
    (REACH_OUT_AGENT, 3, "write to another agent", ReachOutAgentParams),
    (
        REACH_OUT_PUBLIC,
        7,
        "publish something under your name; it cannot be taken back",
        ReachOutPublicParams,
    ),
    (START_WORKFLOW, 2, "start a workflow of your organization", StartWorkflowParams),
    (COMPLETE_STEP, 0, "answer a step of a workflow that is delegated to you", CompleteStepParams),
    ("rest", 0, "do nothing", ActionParams),
)

ACTIONS = ActionRegistry(
    ActionSpec(name=name, cost=cost, summary=summary, params=params) for name, cost, summary, params in _TABLE
)

#: The prices in energy, by action.
DEFAULT_COSTS: Mapping[str, int] = MappingProxyType({name: spec.cost for name, spec in ACTIONS.items()})


def first_actions(allowed: Collection[str]) -> tuple[str, ...]:
    """Return the actions that a new agent is granted: those of its template, writing to other agents, and searching.

    Agents of one tenant reach each other by default: who may write to users may write to them. Who may recall may search.
    """
    by_default = [REACH_OUT_AGENT] if REACH_OUT_USER in allowed else []
    if "recall" in allowed:
        by_default += [SEARCH_MY_MEMORIES, SEARCH_KNOWLEDGE]
    return (*allowed, *(name for name in by_default if name not in allowed))
