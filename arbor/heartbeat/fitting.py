"""A situation made to fit into its prompt: the least important entries of each side that is over its share are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from arbor.heartbeat.context_budget import Side, estimate_tokens, side_of
from arbor.heartbeat.sections.text import Section
from arbor.heartbeat.shedding import SHEDS
from arbor.heartbeat.situation import Situation

#: Of what a window has room for, the share that may be lent to sides over theirs: tokens are estimated. Ours.
LENT_SHARE = 0.9


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitted:
    """A situation as far as a prompt has room for it, and how many entries each section leaves out."""

    situation: Situation
    cut: Mapping[str, int] = field(default_factory=dict)


def fit(
    situation: Situation,
    allowed: Mapping[Side, int],
    render: Callable[[Situation], Sequence[Section]],
    *,
    room: int = 0,
) -> tuple[Fitted, Sequence[Section]]:
    """Leave out the least important entries of each side that is over its share; return what is left, rendered.

    `room` is what all sides may take together, in tokens: what of it others do not use is lent to those over their
    share. A situation that fits is rendered once and comes back as it is.
    """
    lendable = int(room * LENT_SHARE)
    rendered = render(situation)
    over = _over(rendered, allowed, lendable)
    if not over:
        return Fitted(situation=situation), rendered
    cut: dict[str, int] = {}
    for side in over:
        for shed in SHEDS[side]:
            while (excess := _over(rendered, allowed, lendable).get(side, 0)) > 0:
                lighter, dropped = shed.lighten(situation, excess)
                if lighter is situation:
                    break
                situation = lighter
                if dropped:
                    cut[shed.section] = cut.get(shed.section, 0) + dropped
                rendered = render(situation)
    noted = [
        Section(each.name, f"{each.text}\nNot shown, for want of room: {cut[each.name]}.")
        if cut.get(each.name)
        else each
        for each in rendered
    ]
    return Fitted(situation=situation, cut=cut), noted


def _over(rendered: Sequence[Section], allowed: Mapping[Side, int], lendable: int) -> dict[Side, int]:
    """Return by how many tokens each side is over its share and what it is lent; sides that are not are left out.

    What is left of `lendable` after the shares that are used goes to what reached the agent first.
    """
    used = dict.fromkeys(Side, 0)
    for section in rendered:
        side = side_of(section.name)
        if side is not None:
            used[side] += estimate_tokens(section.text)
        else:
            lendable -= estimate_tokens(section.text)
    lendable -= sum(min(used[side], allowed[side]) for side in Side)
    over: dict[Side, int] = {}
    for side in _LENT_IN_ORDER:
        excess = max(used[side] - allowed[side], 0)
        lent = min(excess, max(lendable, 0))
        lendable -= lent
        if excess > lent:
            over[side] = excess - lent
    return over


_LENT_IN_ORDER = (Side.WORLD_STATE, Side.MEMORY, Side.IDENTITY, Side.ACTION_HISTORY)
