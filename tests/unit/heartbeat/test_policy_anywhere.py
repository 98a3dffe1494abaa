"""The reflex policy in random situations: schema, permissions and energy."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from arbor.goals.intents import IntentStatus
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.budgets import EnergyBudget
from arbor.heartbeat.decision import DecisionLimits, decide
from arbor.heartbeat.parsing import parse_reply
from arbor.heartbeat.reply_schema import REPLY_SCHEMA
from arbor.heartbeat.situation import MemoryView, Mode, PerceptView, Situation
from arbor.heartbeat.views import GoalView, IntentView
from arbor.heartbeat.working_memory import Thought, WorkingMemory
from arbor.memory.values import MemoryType
from tests.unit.heartbeat.builders import NOW, reflex, situation
from tests.unit.heartbeat.schema_check import fits

ALL = tuple(ACTIONS)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=80)
ids = st.uuids().map(str)
goals = st.builds(
    GoalView,
    id=ids,
    title=texts,
    description=texts,
    state=st.sampled_from([GoalState.ACTIVE, GoalState.QUEUED, GoalState.BACKBURNER]),
    layer=st.sampled_from(GoalLayer),
    source=st.sampled_from(GoalSource),
    priority=st.floats(0, 5),
    fraction=st.floats(0, 1),
    notes=st.lists(texts, max_size=3),
)
memories = st.builds(
    MemoryView, id=ids, type=st.sampled_from(MemoryType), content=texts, role=texts, at=st.just(NOW)
)


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    wanted = draw(st.lists(goals, max_size=4))
    aims = st.sampled_from([goal.id for goal in wanted]) if wanted else ids
    steps = st.builds(
        IntentView,
        id=ids,
        goal_id=aims,
        action=st.sampled_from([*ALL, "fly"]),
        description=texts,
        status=st.sampled_from(IntentStatus),
    )
    return situation(
        mode=draw(st.sampled_from(Mode)),
        beat_number=draw(st.integers(1, 1_000)),
        energy=draw(st.floats(0, 20)),
        actions=ACTIONS.offers(draw(st.sets(st.sampled_from(ALL)))),
        goals=wanted,
        intents=draw(st.lists(steps, max_size=4)),
        recent=draw(st.lists(memories, max_size=3)),
        relevant=draw(st.lists(memories, max_size=3)),
        percepts=draw(
            st.lists(
                st.builds(PerceptView, id=ids, kind=st.just("user_message"), content=texts, at=st.just(NOW)),
                max_size=4,
            )
        ),
        working_memory=WorkingMemory(
            thoughts=[Thought(text=draw(texts), at=NOW)], curiosity=draw(st.lists(texts, max_size=2))
        ),
    )


@settings(max_examples=150)
@given(situations())
def test_every_reply_is_in_the_schema_permitted_paid_for_and_used_whole(seen: Situation) -> None:
    reply = reflex(seen)

    assert fits(reply, REPLY_SCHEMA)
    parsed = parse_reply(json.dumps(reply))
    assert (parsed.dropped, parsed.repairs) == ((), ())
    decisions = decide(
        parsed.reply.actions,
        DecisionLimits(
            allowed=[offer.name for offer in seen.actions], energy=seen.energy, budget=EnergyBudget()
        ),
    )
    assert [(decision.action, decision.reason) for decision in decisions if not decision.runs] == []


@settings(max_examples=30)
@given(situations())
def test_the_same_situation_gives_the_same_reply(seen: Situation) -> None:
    assert reflex(seen) == reflex(seen)
