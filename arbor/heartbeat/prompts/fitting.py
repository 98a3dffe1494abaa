"""Fitting of a situation into its prompt: the least important entries of each side are clipped or dropped first.

A model with a small window is offered fewer actions, chosen by what the moment needs. Cuts are listed for the audit log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from arbor.contacts.cooldown import REACH_OUT_AGENT, REACH_OUT_USER
from arbor.goals.plans import OPEN_STEPS
from arbor.heartbeat.prompts.last_resorts import LAST_RESORTS
from arbor.heartbeat.prompts.reductions import REDUCTIONS, Reduction
from arbor.heartbeat.prompts.token_shares import PromptSide, room_of, side_of
from arbor.heartbeat.situation import PEER_MESSAGE, Mode, Situation
from arbor.models.token_counts import CountTokens
from arbor.models.token_estimates import estimate_tokens
from arbor.quotations import RenderedSection, counted
from arbor.workflows.delegation import find_delegation
from arbor.workflows.values import COMPLETE_STEP

#: The share of the room up to which unused tokens go to sides over their share; less than 1, because tokens are estimated.
SPARE_SHARE = 0.9
#: The sides in the order in which the unused tokens of the others are granted to them.
_SPARE_ORDER = (PromptSide.WORLD_STATE, PromptSide.MEMORY, PromptSide.IDENTITY, PromptSide.ACTION_HISTORY)
#: A window is small if it leaves fewer tokens for the prompt: 2,500 for rules, actions and character, and the 5,000 of the
#: sides (seed 003, 10.6).
SMALL_PROMPT = 7_500
_ALWAYS = frozenset({"recall", "remember", "reflect", "rest"})
_TOWARDS_GOALS = frozenset({"inquire_shallow", "synthesize", REACH_OUT_USER})
# Goals are changed and created by other keys of the reply, at no price, and `inquire_shallow` asks what `inquire_deep` does.
_BY_MODE: Mapping[Mode, frozenset[str]] = {
    Mode.CONVERSATION: _TOWARDS_GOALS,
    Mode.CONSOLIDATION: frozenset({"connect", "maintain"}),
    Mode.PLAN_EXECUTION: _TOWARDS_GOALS | {"connect", REACH_OUT_AGENT},
    Mode.GOAL_PURSUIT: _TOWARDS_GOALS,
    Mode.REFLECTION: frozenset({"connect", "inquire_shallow", "synthesize"}),
}
#: The modes in which a small prompt offers tools of MCP servers, and the number of them beside those that steps name.
_WITH_TOOLS = frozenset({Mode.CONVERSATION, Mode.PLAN_EXECUTION, Mode.GOAL_PURSUIT})
_TOOLS_SHOWN = 3
#: `apps.audit.models.AuditAction.TRUNCATED`.
TRUNCATED = "truncated"
# What people can shorten, by section.
_REMEDIES: Mapping[str, str] = {
    "skills": "choose fewer or shorter skills",
    "character": "shorten the character",
    "message": "write a shorter message",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class FittedSituation:
    """A situation cut to its prompt, and how much was cut from each section, by name."""

    situation: Situation
    #: Dropped entries.
    cut: Mapping[str, int] = field(default_factory=dict)
    #: Removed tokens, of dropped entries and of clipped texts.
    removed: Mapping[str, int] = field(default_factory=dict)


def fit(
    situation: Situation,
    allowed: Mapping[PromptSide, int],
    render: Callable[[Situation], Sequence[RenderedSection]],
    *,
    room: int = 0,
    most: int | None = None,
    count: CountTokens = estimate_tokens,
) -> tuple[FittedSituation, Sequence[RenderedSection]]:
    """Drop the least important entries of each side that is over its share; return the remainder, rendered.

    `room` is in tokens, for all sides together: the unused part is redistributed to sides over their share. Sections with more
    than `most` tokens together are cut further, beyond the shares. A situation that fits is rendered once and returned as it is.
    """
    spare = int(room * SPARE_SHARE)
    draft = _Draft(situation, render)
    whole = draft.rendered

    def excess_of(side: PromptSide) -> int:
        return _over(draft.rendered, allowed, spare, count).get(side, 0)

    for side in _over(whole, allowed, spare, count):
        draft.reduce(REDUCTIONS[side], partial(excess_of, side), count)
    if most is not None:
        draft.reduce(LAST_RESORTS, lambda: sum(count(section.text) for section in draft.noted) - most, count)
    if draft.situation is situation:
        return FittedSituation(situation=situation), whole
    removed = removed_tokens(whole, draft.rendered, count)
    return FittedSituation(situation=draft.situation, cut=draft.cut, removed=removed), draft.noted


class _Draft:
    """A situation that is cut step by step, its sections, and the dropped entries by section."""

    def __init__(
        self, situation: Situation, render: Callable[[Situation], Sequence[RenderedSection]]
    ) -> None:
        self.situation, self._render = situation, render
        self.rendered = render(situation)
        self.cut: dict[str, int] = {}

    @property
    def noted(self) -> list[RenderedSection]:
        """Return the sections with the numbers of their dropped entries."""
        return [_noted(section, self.cut.get(section.name, 0)) for section in self.rendered]

    def reduce(
        self, reductions: Iterable[Reduction], excess_of: Callable[[], int], count: CountTokens
    ) -> None:
        """Apply reductions in their order, each as often as it helps, until there is no excess of tokens."""
        excess = excess_of()
        for reduction in reductions:
            while excess > 0:
                reduced, dropped = reduction.reduce(self.situation, excess, count)
                if reduced is self.situation:
                    break
                self.situation, self.rendered = reduced, self._render(reduced)
                if dropped:
                    self.cut[reduction.section] = self.cut.get(reduction.section, 0) + dropped
                excess = excess_of()


def _noted(section: RenderedSection, cut: int) -> RenderedSection:
    """Return the section with the number of its dropped entries; an emptied one is a heading with the number."""
    if not cut:
        return section
    if not section.text or section.text.endswith("\nNone."):
        return section._replace(text=f"## Not shown: {section.name.replace('_', ' ')} ({cut})")
    return section._replace(text=f"{section.text}\nNot shown, for want of room: {cut}.")


def removed_tokens(
    whole: Sequence[RenderedSection], shown: Sequence[RenderedSection], count: CountTokens
) -> dict[str, int]:
    """Return how many tokens the sections of a prompt have lost, by name."""
    left = {section.name: section.text for section in shown}
    return {
        section.name: lost
        for section in whole
        if section.text != left.get(section.name, "")
        and (lost := count(section.text) - count(left.get(section.name, ""))) > 0
    }


def _over(
    rendered: Sequence[RenderedSection], allowed: Mapping[PromptSide, int], spare: int, count: CountTokens
) -> dict[PromptSide, int]:
    """Return the excess tokens of each side that is over its share and its part of the unused tokens."""
    used = dict.fromkeys(PromptSide, 0)
    for section in rendered:
        side = side_of(section.name)
        if side is not None:
            used[side] += count(section.text)
        else:
            spare -= count(section.text)
    spare -= sum(min(used[side], allowed[side]) for side in PromptSide)
    over: dict[PromptSide, int] = {}
    for side in _SPARE_ORDER:
        excess = max(used[side] - allowed[side], 0)
        granted = min(excess, max(spare, 0))
        spare -= granted
        if excess > granted:
            over[side] = excess - granted
    return over


def is_small(*, window: int, reply: int) -> bool:
    """Return whether a model with this window and a reply of at most `reply` tokens needs a compact prompt."""
    return room_of(window=window, fixed=0, reply=reply) < SMALL_PROMPT


def with_fewer_actions(situation: Situation) -> Situation:
    """Return the situation with the actions that its mode, intents, plans, percepts, contradictions and delegated steps need.

    The others stay permitted: an action that the model names nevertheless is decided as any other.
    """
    needed = frozenset(_needed(situation))
    if situation.mode in _WITH_TOOLS:
        needed |= frozenset([*situation.tools][:_TOOLS_SHOWN])
    return situation.model_copy(
        update={"actions": [offer for offer in situation.actions if offer.name in needed]}
    )


def _needed(situation: Situation) -> Iterator[str]:
    yield from _ALWAYS | _BY_MODE[situation.mode]
    yield from (intent.action for intent in situation.intents)
    yield from (step.action for plan in situation.plans for step in plan.steps if step.status in OPEN_STEPS)
    if any(percept.kind == PEER_MESSAGE for percept in situation.percepts):
        yield REACH_OUT_AGENT
    if situation.environment.user_waiting:
        yield REACH_OUT_USER
    if situation.contradictions:
        yield "maintain"
    texts = (
        *(percept.content for percept in situation.percepts),
        *(goal.description for goal in situation.goals),
    )
    if any(map(find_delegation, texts)):
        yield COMPLETE_STEP


@dataclass(frozen=True, kw_only=True, slots=True)
class CutContext:
    """Tokens that a context has lost, its dropped entries, and the tokens that it has, all by section."""

    removed: Mapping[str, int]
    entries: Mapping[str, int]
    left: Mapping[str, int]

    @property
    def tokens(self) -> int:
        return sum(self.removed.values())

    @property
    def in_words(self) -> str:
        """Return the cuts as one line, the largest first."""
        parts = [
            f"{name.replace('_', ' ')} {tokens:,}"
            for name, tokens in sorted(self.removed.items(), key=lambda cut: -cut[1])
        ]
        return f"{counted(self.tokens, 'token')} left out ({', '.join(parts)})"

    def to_json(self, *, model: str, window: int) -> dict[str, Any]:
        sources = {
            name: {
                "tokens": tokens,
                "before": tokens + self.left.get(name, 0),
                "after": self.left.get(name, 0),
                "entries": self.entries.get(name, 0),
            }
            for name, tokens in self.removed.items()
        }
        return {"model": model, "window": window, "tokens": self.tokens, "sources": sources}


def no_room_fault(*, model: str, window: int, tokens: int, sizes: Mapping[str, int]) -> str:
    """Return why a window has no room for a context; `sizes` are the tokens of its sections, by name."""
    largest = max(sizes, key=lambda name: sizes[name], default="")
    part = f"; its largest part is {largest.replace('_', ' ')} with {sizes[largest]}" if largest else ""
    remedy = _REMEDIES.get(largest, "shorten the character")
    return (
        f"the window of {model} has about {window} tokens, too few for a reply to a prompt of {tokens}{part}: set"
        f" ARBOR_MODEL_CONTEXT if the server has more, use another model, or {remedy}"
    )
