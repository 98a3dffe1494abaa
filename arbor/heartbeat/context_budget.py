"""How many tokens each side of a situation may take in a prompt (seed 003, 10.6), and what is left out when one takes more.

The seed's figures are what a side has in a small window; what other sides and a larger window leave over, it may use.
Whole entries are left out, the least important first. Of what reached the agent, long entries are clipped first; what
somebody wrote and what is urgent is clipped at most, and whatever is left out of it waits for the next heartbeat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from arbor.goals.values import GoalState
from arbor.heartbeat.sections.text import Section, line
from arbor.heartbeat.situation import PerceptView, Situation
from arbor.heartbeat.working_memory import CHARACTERS_PER_TOKEN

# What an entry's id, date and punctuation take, in tokens.
_ENTRY_OVERHEAD = 20
# No entry is shown in more than about this; see `arbor.heartbeat.sections`.
_ENTRY_TOKENS = 320
#: The reply is never planned with more than this share of the model's window.
REPLY_SHARE = 0.25
#: Of what a window has room for, the share that may be lent to sides over theirs: tokens are estimated. Ours.
LENT_SHARE = 0.9
#: To how many characters a percept is clipped before one is left out, and a message before a person's is. Ours.
CLIPPED_PERCEPT = 600
CLIPPED_MESSAGE = 2_000
#: However small the window, a side keeps this much of its share: a prompt of nothing decides nothing.
LEAST_SCALE = 0.1

USER_MESSAGE = "user_message"
PEER_MESSAGE = "peer_message"


class Side(StrEnum):
    """The sides of a prompt that have a share of their own."""

    IDENTITY = "identity"
    MEMORY = "memory"
    WORLD_STATE = "world_state"
    ACTION_HISTORY = "action_history"


#: Tokens (seed 003, 10.6). Its system prompt (about 2,000), the actions and the format never change, and the reply has
#: the remainder.
SHARES: Mapping[Side, int] = MappingProxyType(
    {Side.IDENTITY: 500, Side.MEMORY: 2_000, Side.WORLD_STATE: 1_500, Side.ACTION_HISTORY: 1_000}
)

_SIDE_OF: Mapping[str, Side] = MappingProxyType(
    {
        **dict.fromkeys(("identity", "beliefs", "preferences", "capabilities"), Side.IDENTITY),
        **dict.fromkeys(
            ("recent", "relevant", "themes", "held", "working_memory", "experiences"), Side.MEMORY
        ),
        "last_beat": Side.ACTION_HISTORY,
    }
)
#: Sections of a few lines, which every beat needs whole.
_WHOLE = frozenset(
    {"mark", "timing", "energy", "directive", "mood", "drives", "boundaries", "further_keys", "closing"}
)


def side_of(section: str) -> Side | None:
    """Return the side that a section of the changing part belongs to; None for one that is never cut."""
    return None if section in _WHOLE else _SIDE_OF.get(section, Side.WORLD_STATE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitted:
    """A situation as far as a prompt has room for it, and how many entries each section leaves out."""

    situation: Situation
    cut: Mapping[str, int] = field(default_factory=dict)


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text takes."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def shares(*, window: int, fixed: int, reply: int) -> Mapping[Side, int]:
    """Return each side's tokens: the seed's, or as much smaller as a small window wants it.

    `window` is what the model takes in all, `fixed` what the unchanging part takes, `reply` what a reply may take.
    """
    room = room_of(window=window, fixed=fixed, reply=reply)
    wanted = sum(SHARES.values())
    if room >= wanted:
        return SHARES
    scale = max(room / wanted, LEAST_SCALE)
    return {side: int(share * scale) for side, share in SHARES.items()}


def room_of(*, window: int, fixed: int, reply: int) -> int:
    """Return the tokens that all sides may take together; the reply has its own before them."""
    return window - fixed - min(reply, int(window * REPLY_SHARE))


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
        for shed in _SHEDS[side]:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shed:
    """A list of the situation that can be shortened: which section shows it, and which of its entries matter least."""

    section: str
    entries: Callable[[Situation], list[Any]]
    put: Callable[[Situation, list[Any]], Situation]
    #: The places of the entries that may go, the least important first.
    order: Callable[[list[Any]], Sequence[int]]

    def lighten(self, situation: Situation, excess: int) -> tuple[Situation, int]:
        """Leave out as many entries as the excess of tokens wants, at least one; return how many went."""
        entries = self.entries(situation)
        gone: set[int] = set()
        for place in self.order(entries):
            gone.add(place)
            excess -= _size(entries[place])
            if excess <= 0:
                break
        if not gone:
            return situation, 0
        kept = [entry for place, entry in enumerate(entries) if place not in gone]
        return self.put(situation, kept), len(gone)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Clip:
    """Shortens the longest percepts of some kind; none is left out."""

    section: str = "percepts"
    of: Callable[[PerceptView], bool]
    length: int

    def lighten(self, situation: Situation, excess: int) -> tuple[Situation, int]:
        """Clip as many percepts as the excess of tokens wants, the longest first."""
        percepts = list(situation.percepts)
        long = [
            place
            for place, each in enumerate(percepts)
            if self.of(each) and len(each.content) > self.length + _CLIP_NOTE
        ]
        for place in sorted(long, key=lambda place: -len(percepts[place].content)):
            whole = percepts[place]
            percepts[place] = whole.model_copy(update={"content": line(whole.content, self.length)})
            excess -= estimate_tokens(whole.content) - estimate_tokens(percepts[place].content)
            if excess <= 0:
                break
        return (situation.model_copy(update={"percepts": percepts}) if long else situation), 0


# What `line` adds to a text that it cuts is shorter.
_CLIP_NOTE = 60


def _is_ordinary(percept: PerceptView) -> bool:
    return not percept.urgent and percept.kind not in (USER_MESSAGE, PEER_MESSAGE)


def _is_no_users(percept: PerceptView) -> bool:
    return not _is_users(percept)


def _is_users(percept: PerceptView) -> bool:
    return percept.kind == USER_MESSAGE


def _size(entry: Any) -> int:
    """Return about how many tokens an entry takes where it is shown."""
    texts = [entry] if isinstance(entry, str) else [text for _, text in entry if isinstance(text, str)]
    return min(sum(estimate_tokens(text) for text in texts), _ENTRY_TOKENS) + _ENTRY_OVERHEAD


def _last_first(entries: list[Any]) -> Sequence[int]:
    return range(len(entries) - 1, -1, -1)


def _first_first(entries: list[Any]) -> Sequence[int]:
    return range(len(entries))


def _but_the_first(entries: list[Any]) -> Sequence[int]:
    return range(len(entries) - 1, 0, -1)


def _but_the_last(entries: list[Any]) -> Sequence[int]:
    return range(len(entries) - 1)


def _ordinary_last_first(entries: list[Any]) -> Sequence[int]:
    """What somebody wrote and what is urgent stays; of the rest, what came last waits for the next heartbeat.

    The first of all stays too: however small the window, everything has its turn.
    """
    return [place for place in _but_the_first(entries) if _is_ordinary(entries[place])]


def _goals_in_order(entries: list[Any]) -> Sequence[int]:
    """Queued goals before active ones, those of the lowest priority first; the most important one stays."""
    shown = [
        (goal.state is GoalState.ACTIVE, goal.priority, place)
        for place, goal in enumerate(entries)
        if goal.state in (GoalState.ACTIVE, GoalState.QUEUED)
    ]
    return [place for *_, place in sorted(shown)[:-1]]


def _listed(name: str, order: Callable[[list[Any]], Sequence[int]], section: str = "") -> _Shed:
    """Return the shed of a list of the situation, which the section of the same name shows unless another one does."""
    return _Shed(
        section=section or name,
        entries=lambda situation: list(getattr(situation, name)),
        put=lambda situation, kept: situation.model_copy(update={name: kept}),
        order=order,
    )


def _percepts() -> _Shed:
    """Return the shed of what reached the agent; boundaries that are touched by what waits are not spoken of yet."""

    def put(situation: Situation, kept: list[Any]) -> Situation:
        gone = {each.id for each in situation.percepts} - {each.id for each in kept}
        crossed = [each for each in situation.crossed if each.about not in gone]
        return situation.model_copy(update={"percepts": kept, "crossed": crossed})

    return _Shed(
        section="percepts",
        entries=lambda situation: list(situation.percepts),
        put=put,
        order=_ordinary_last_first,
    )


def _thoughts() -> _Shed:
    return _Shed(
        section="working_memory",
        entries=lambda situation: list(situation.working_memory.thoughts),
        put=lambda situation, kept: situation.model_copy(
            update={"working_memory": situation.working_memory.model_copy(update={"thoughts": kept})}
        ),
        order=_first_first,
    )


def _outcomes() -> _Shed:
    return _Shed(
        section="last_beat",
        entries=lambda situation: list(situation.last_beat.outcomes) if situation.last_beat else [],
        put=lambda situation, kept: situation.model_copy(
            update={
                "last_beat": situation.last_beat and situation.last_beat.model_copy(update={"outcomes": kept})
            }
        ),
        order=_first_first,
    )


# What each side can do without, the least important first. Lists are ordered as `Situation` says.
_SHEDS: Mapping[Side, tuple[_Shed | _Clip, ...]] = MappingProxyType(
    {
        Side.IDENTITY: (
            _listed("capabilities", _last_first),
            _listed("preferences", _last_first),
            _listed("beliefs", _last_first),
            _listed("aspects", _but_the_first, section="identity"),
        ),
        Side.MEMORY: (
            _listed("held", _last_first),
            _listed("themes", _last_first),
            _listed("experiences", _last_first),
            _thoughts(),
            _listed("recent", _but_the_last),
            _listed("relevant", _but_the_first),
        ),
        Side.WORLD_STATE: (
            _listed("peers", _last_first),
            _listed("issues", _last_first),
            _listed("contradictions", _last_first),
            _listed("notices", _last_first),
            _listed("proposals", _last_first),
            _Clip(of=_is_ordinary, length=CLIPPED_PERCEPT),
            _Clip(of=_is_no_users, length=CLIPPED_MESSAGE),
            _percepts(),
            _listed("goals", _goals_in_order),
            _listed("intents", _but_the_first),
            # A prompt that is too long is answered by nobody.
            _Clip(of=_is_users, length=CLIPPED_MESSAGE),
        ),
        Side.ACTION_HISTORY: (_outcomes(),),
    }
)
