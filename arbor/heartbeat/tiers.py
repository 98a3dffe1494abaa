"""Tiers of thinking and their models (seed 003, 10.5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

from arbor.errors import ConfigurationInvalid
from arbor.heartbeat.situation import Mode, Situation
from arbor.models.handles import Handle
from arbor.setting_lists import name_values

# Seed 003, 10.5.
COMPLEX_CODE = 0.7
# Lines and nesting of code of complexity 1; the seed gives no figures.
COMPLEX_LINES = 40
COMPLEX_DEPTH = 8
# The highest price of a routine step (seed 004, 2).
CHEAP_STEP = 2
#: Actions that create something new.
DESIGNING = frozenset({"brainstorm_goals", "synthesize"})
_FENCE = re.compile(r"\s*(```|~~~)")
# Patterns that are rare in prose: statements of common languages, brackets and semicolons at the end of a line.
_CODE = re.compile(
    r"^\s*(def |class |import |from \w+ import |fn |func |function |const |let |var |return\b.*[;)]|#include|@\w+)"
    r"|^\s*(if|elif|else|for|while|with|try|except|case)\b.*:\s*$"
    r"|[;{}]\s*$|\)\s*:\s*$|=>|::\w|\w\(\)"
)


class ThinkTier(StrEnum):
    """The tiers of thinking (seed 003, 3.12), the most expensive first."""

    #: Tier 1: designs, complex code, review.
    STRATEGIC = "strategic"
    #: Tier 2: the default.
    STANDARD = "standard"
    #: Tier 3: simple decisions, routine.
    REFLEX = "reflex"

    def lowered(self, steps: int) -> ThinkTier:
        """Return the tier `steps` cheaper, at most the cheapest."""
        tiers = list(ThinkTier)
        return tiers[min(tiers.index(self) + steps, len(tiers) - 1)]


def classify_think(
    *,
    involves_new_design: bool = False,
    code_complexity: float = 0.0,
    is_routine: bool = False,
    is_simple_decision: bool = False,
) -> ThinkTier:
    """Return the tier for a call (seed 003, 3.12 and 10.5); the complexity is 0 to 1."""
    if involves_new_design or code_complexity > COMPLEX_CODE:
        return ThinkTier.STRATEGIC
    return ThinkTier.REFLEX if is_routine or is_simple_decision else ThinkTier.STANDARD


def tier_of(situation: Situation) -> ThinkTier:
    """Return the tier of the thinking that a situation requires.

    Planning, and a step that creates something, is design. Consolidation, and a single cheap step, is routine. A
    reflection without percepts, goals, concerns, questions or notices is a simple decision.
    """
    steps = situation.pending_intents
    prices = {offer.name: offer.cost for offer in situation.actions}
    pursuing, memory = situation.mode is Mode.GOAL_PURSUIT, situation.working_memory
    goals = [text for goal in situation.active_goals for text in (goal.title, goal.description)]
    pending = (situation.percepts, situation.goals, memory.concerns, memory.curiosity, situation.notices)
    return classify_think(
        involves_new_design=situation.mode is Mode.PLAN_EXECUTION
        or (pursuing and any(step.action in DESIGNING for step in steps[:1])),
        code_complexity=code_complexity([*(percept.content for percept in situation.percepts), *goals]),
        is_routine=situation.mode is Mode.CONSOLIDATION
        or (
            pursuing
            and len(steps) == 1
            and prices.get(steps[0].action, CHEAP_STEP + 1) <= CHEAP_STEP
            and not situation.percepts
        ),
        is_simple_decision=situation.mode is Mode.REFLECTION and not any(pending),
    )


def code_complexity(texts: Iterable[str]) -> float:
    """Return the complexity of the code in texts, 0 (none) to 1, by its lines and nesting."""
    lines = depth = 0
    for text in texts:
        fenced = False
        for line in text.splitlines():
            if _FENCE.match(line):
                fenced = not fenced
            elif line.strip() and (fenced or _CODE.search(line)):
                lines += 1
                # A level of nesting is four blanks or a tab.
                blank = line[: len(line) - len(line.lstrip())].expandtabs(4)
                depth = max(depth, len(blank) // 4)
    return min(1.0, max(lines / COMPLEX_LINES, depth / COMPLEX_DEPTH))


def parse_tier_models(text: str) -> Mapping[ThinkTier, tuple[str, ...]]:
    """Parse `strategic=a/x|b/y,standard=c/z`: models by tier, in order of preference. Raises ConfigurationInvalid."""
    models: dict[ThinkTier, tuple[str, ...]] = {}
    for entry, tier, handles in name_values(text, setting="ARBOR_TIER_MODELS"):
        if "=" not in entry or tier not in ThinkTier:
            raise ConfigurationInvalid(
                f"a tier's models are written {' or '.join(ThinkTier)}=provider/model|provider/model, got {entry!r}"
            )
        models[ThinkTier(tier)] = tuple(str(Handle.parse(handle)) for handle in handles.split("|"))
    return MappingProxyType(models)


def models_of(
    tier: ThinkTier,
    *,
    policy: Mapping[str, Sequence[str]],
    own: str,
    installed: Mapping[ThinkTier, Sequence[str]],
    default: str,
) -> tuple[str, ...]:
    """Return the models of the agent's policy, else its own model, else the installation's, else the default, in order."""
    chosen = policy.get(tier) or (own and (own,)) or installed.get(tier) or (default,)
    return tuple(dict.fromkeys(chosen))
