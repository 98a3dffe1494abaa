"""How hard a heartbeat thinks: the tier that its situation calls for, and the models that serve it (seed 003, 10.5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from arbor.errors import ConfigurationInvalid
from arbor.heartbeat.modes import Mode
from arbor.heartbeat.situation import Situation
from arbor.models.handles import Handle

# Seed 003, 10.5.
COMPLEX_CODE = 0.7
# So many lines of code are as complex as it gets; so is code nested so deeply. Ours: the seed leaves it to the reader.
COMPLEX_LINES = 40
COMPLEX_DEPTH = 8
# A step at this price is carried out, not thought out (seed 004, 2: recall and connect cost 1, reflect and maintain 2).
CHEAP_STEP = 2
#: Actions by which something is made that was not there before.
DESIGNING = frozenset({"brainstorm_goals", "synthesize"})


class ThinkTier(StrEnum):
    """How hard a heartbeat thinks (seed 003, 3.12), the dearest first."""

    #: Tier 1: designs, complex code, review.
    STRATEGIC = "strategic"
    #: Tier 2: what is usual.
    STANDARD = "standard"
    #: Tier 3: simple decisions, routine.
    REFLEX = "reflex"

    def lowered(self, steps: int) -> ThinkTier:
        """Return the tier so many steps cheaper; nothing is cheaper than the cheapest."""
        tiers = list(ThinkTier)
        return tiers[min(tiers.index(self) + steps, len(tiers) - 1)]


@dataclass(frozen=True, kw_only=True, slots=True)
class ThinkContext:
    """What decides about the tier (seed 003, 3.12)."""

    involves_new_design: bool = False
    #: 0 to 1.
    code_complexity: float = 0.0
    is_routine: bool = False
    is_simple_decision: bool = False


def classify_think(context: ThinkContext) -> ThinkTier:
    """Return the tier for a call (seed 003, 10.5)."""
    if context.involves_new_design or context.code_complexity > COMPLEX_CODE:
        return ThinkTier.STRATEGIC
    if context.is_routine or context.is_simple_decision:
        return ThinkTier.REFLEX
    return ThinkTier.STANDARD


def think_context(situation: Situation) -> ThinkContext:
    """Say what kind of thinking a situation calls for.

    Planning, and a step that brings forth something new, is design. Tending the memory, and carrying out the one cheap
    step that waits, is routine. Whether to do anything at all, when nothing has happened and nothing is wanted, is a
    simple decision.
    """
    steps = situation.pending_intents
    prices = {offer.name: offer.cost for offer in situation.actions}
    pursuing = situation.mode is Mode.GOAL_PURSUIT
    return ThinkContext(
        involves_new_design=situation.mode is Mode.PLAN_EXECUTION
        or (pursuing and any(step.action in DESIGNING for step in steps[:1])),
        code_complexity=code_complexity(_texts(situation)),
        is_routine=situation.mode is Mode.CONSOLIDATION
        or (
            pursuing
            and len(steps) == 1
            and prices.get(steps[0].action, CHEAP_STEP + 1) <= CHEAP_STEP
            and not situation.percepts
        ),
        is_simple_decision=situation.mode is Mode.REFLECTION and _nothing_stirs(situation),
    )


def code_complexity(texts: Iterable[str]) -> float:
    """Return how complex the code in the texts is, 0 (there is none) to 1: by its lines and how deeply it is nested."""
    lines = depth = 0
    for text in texts:
        fenced = False
        for line in text.splitlines():
            if _FENCE.match(line):
                fenced = not fenced
            elif line.strip() and (fenced or _CODE.search(line)):
                lines += 1
                depth = max(depth, _indent(line))
    return min(1.0, max(lines / COMPLEX_LINES, lines and depth / COMPLEX_DEPTH))


def parse_tier_models(text: str) -> Mapping[ThinkTier, tuple[str, ...]]:
    """Read `strategic=a/x|b/y,standard=c/z`: the models of each tier, the first that answers is taken.

    Raises ConfigurationInvalid.
    """
    models: dict[ThinkTier, tuple[str, ...]] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        tier, equals, handles = part.partition("=")
        if not equals or tier.strip() not in set(ThinkTier):
            raise ConfigurationInvalid(
                f"a tier's models are written {' or '.join(ThinkTier)}=provider/model|provider/model, got {part!r}"
            )
        models[ThinkTier(tier.strip())] = tuple(str(Handle.parse(each)) for each in handles.split("|"))
    return MappingProxyType(models)


def models_of(
    tier: ThinkTier,
    *,
    policy: Mapping[str, Sequence[str]],
    own: str,
    installed: Mapping[ThinkTier, Sequence[str]],
    default: str,
) -> tuple[str, ...]:
    """Return the models to ask, in order: those of the agent's policy, else its own, else the installation's, else the default.

    A model that a person has given the agent is never overruled by what the installation does for agents without one.
    """
    chosen = policy.get(tier) or (own and (own,)) or installed.get(tier) or (default,)
    return tuple(dict.fromkeys(chosen))


def _texts(situation: Situation) -> list[str]:
    goals = [text for goal in situation.active_goals for text in (goal.title, goal.description)]
    return [*(percept.content for percept in situation.percepts), *goals]


def _nothing_stirs(situation: Situation) -> bool:
    memory = situation.working_memory
    return not (
        situation.percepts or situation.goals or memory.concerns or memory.curiosity or situation.notices
    )


def _indent(line: str) -> int:
    """Return how deeply a line is nested, taking four blanks or a tab for a level."""
    blank = line[: len(line) - len(line.lstrip())].expandtabs(4)
    return len(blank) // 4


_FENCE = re.compile(r"\s*(```|~~~)")
# What hardly stands in prose: statements of common languages, brackets and semicolons at a line's end.
_CODE = re.compile(
    r"^\s*(def |class |import |from \w+ import |fn |func |function |const |let |var |return\b.*[;)]|#include|@\w+)"
    r"|^\s*(if|elif|else|for|while|with|try|except|case)\b.*:\s*$"
    r"|[;{}]\s*$|\)\s*:\s*$|=>|::\w|\w\(\)"
)
