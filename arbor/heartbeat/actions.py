"""The actions of a heartbeat: what each costs, what it takes, who it is for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema

from arbor.heartbeat.energy import ACTION_COSTS
from arbor.heartbeat.situation import ActionOffer
from arbor.memory.relations import Relation
from arbor.memory.values import MemoryType

QUERY_LENGTH = 500
CONTENT_LENGTH = 4_000
INSIGHT_LENGTH = 2_000
MAX_RECALLED = 20
# The origin of seed 000 recalls five unless asked for more.
DEFAULT_RECALLED = 5


def _lower(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


class ActionParams(BaseModel):
    """The parameters of an action. What is not known is ignored, and the decision says so."""

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True, allow_inf_nan=False)


Id = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class RecallParams(ActionParams):
    """What to look for."""

    query: Annotated[
        str,
        StringConstraints(min_length=1, max_length=QUERY_LENGTH),
        Field(description=f"what to look for, 1 to {QUERY_LENGTH} characters"),
    ]
    limit: Annotated[
        int,
        Field(
            ge=1, le=MAX_RECALLED, description=f"how many, 1 to {MAX_RECALLED} (default {DEFAULT_RECALLED})"
        ),
    ] = DEFAULT_RECALLED


class RememberParams(ActionParams):
    """What to keep."""

    content: Annotated[
        str,
        StringConstraints(min_length=1, max_length=CONTENT_LENGTH),
        Field(description=f"what to keep, 1 to {CONTENT_LENGTH} characters"),
    ]
    type: Annotated[
        MemoryType,
        BeforeValidator(_lower),
        Field(description="episodic, semantic, procedural or strategic (default semantic)"),
    ] = MemoryType.SEMANTIC
    importance: Annotated[
        float | None,
        Field(ge=0, le=1, description="0 to 1 (default: by what it says)"),
        WithJsonSchema(
            {
                "type": ["number", "null"],
                "minimum": 0,
                "maximum": 1,
                "description": "0 to 1 (default: by what it says)",
            }
        ),
    ] = None


class ReflectParams(ActionParams):
    """What was noticed."""

    insight: Annotated[
        str,
        StringConstraints(min_length=1, max_length=INSIGHT_LENGTH),
        Field(description=f"the pattern or lesson you notice, 1 to {INSIGHT_LENGTH} characters; it is kept"),
    ]
    focus: Annotated[
        str,
        StringConstraints(max_length=QUERY_LENGTH),
        Field(description=f"what it is about, up to {QUERY_LENGTH} characters (default none)"),
    ] = ""


class ConnectParams(ActionParams):
    """What belongs together, and how."""

    from_id: Annotated[Id, Field(description="id of a memory, goal or belief you see")]
    to_id: Annotated[Id, Field(description="id of another one you see")]
    relation: Annotated[Relation, BeforeValidator(_lower), Field(description="one of " + ", ".join(Relation))]


class ReprioritizeParams(ActionParams):
    """Which goal goes where in the backlog."""

    goal_id: Annotated[Id, Field(description="id of the goal")]
    state: Annotated[
        Literal["active", "queued", "backburner"],
        BeforeValidator(_lower),
        Field(description="active, queued or backburner"),
    ]


class RestParams(ActionParams):
    """Nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionSpec:
    """One action: its name, its price in energy, what it is for and what it takes."""

    name: str
    cost: int
    summary: str
    params: type[ActionParams]

    def offer(self) -> ActionOffer:
        """Return the action as an agent sees it."""
        fields = self.params.model_fields
        return ActionOffer(
            name=self.name,
            cost=self.cost,
            summary=self.summary,
            params={name: field.description or "" for name, field in fields.items()},
        )


class ActionRegistry(Mapping[str, ActionSpec]):
    """The actions that exist, by name. Never changes."""

    def __init__(self, specs: Iterable[ActionSpec]) -> None:
        by_name: dict[str, ActionSpec] = {}
        for spec in specs:
            if spec.name in by_name:
                raise ValueError(f"two actions are called {spec.name!r}; a name stands for one action")
            by_name[spec.name] = spec
        self._specs = MappingProxyType(by_name)
        self._offers = {name: spec.offer() for name, spec in by_name.items()}

    def __getitem__(self, name: str) -> ActionSpec:
        return self._specs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    def offers(self, allowed: Collection[str]) -> list[ActionOffer]:
        """Return what an agent with these permissions may use, in the registry's order."""
        return [offer for name, offer in self._offers.items() if name in allowed]


def _spec(name: str, summary: str, params: type[ActionParams]) -> ActionSpec:
    return ActionSpec(name=name, cost=ACTION_COSTS[name], summary=summary, params=params)


ACTIONS = ActionRegistry(
    (
        _spec("recall", "search your memory; what is found is there at the next beat", RecallParams),
        _spec("remember", "keep something worth keeping", RememberParams),
        _spec("reflect", "notice a pattern or draw a lesson, and keep it", ReflectParams),
        _spec("connect", "tie two things together: memories, goals, beliefs", ConnectParams),
        _spec("reprioritize", "move a goal one step in the backlog", ReprioritizeParams),
        _spec("rest", "save the energy that is left", RestParams),
    )
)
