"""Prompts of an agent whose texts are all as long as permitted, for models with small windows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from arbor.goals.plans import MAX_DEPENDENCIES, PlanStatus, StepStatus
from arbor.goals.values import TITLE_LENGTH
from arbor.heartbeat.failure_modes import RecentActivity, RecentHeartbeat
from arbor.heartbeat.pacing import SchedulePolicy
from arbor.heartbeat.prompts.last_resorts import LAST_RESORTS
from arbor.heartbeat.prompts.reductions import SHORT_TEXT, ShortenedTexts
from arbor.heartbeat.situation import (
    ActionOffer,
    Environment,
    LastHeartbeat,
    Mode,
    Situation,
    ToolOffer,
)
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.round_trips import Think, build_the_prompt
from arbor.heartbeat.views import MatchedBoundary, PlanView, SkillView, StepView
from arbor.heartbeat.working_memory import Thought, WorkingMemory, unknown_lines
from arbor.pipeline.engine import NodeOutcome
from arbor.selves.boundaries import BoundaryResponse
from tests.unit.heartbeat.builders import NOW, goal, intent, memory, percept
from tests.unit.heartbeat.prompts.test_small_windows import CHARACTER, rich_situation
from tests.unit.heartbeat.state_builders import HOUR, Answers, heartbeat_of, moment_of, opening_of, rules_of

WORDS = "with its piers and cranes and lamps and ferries " * 200
PERCEPTS = [str(UUID(int=number)) for number in range(1, 6)]
SMALL = 4_096


def matches_of(number: int) -> list[MatchedBoundary]:
    """Return matches of this number of boundaries, each of all percepts."""
    return [
        MatchedBoundary(
            boundary=f"limit_{boundary}",
            response=BoundaryResponse.REFUSE,
            description=WORDS[:1_000],
            why=f"it means much the same as “{WORDS[:300]}”",
            about=about,
        )
        for boundary in range(number)
        for about in PERCEPTS
    ]


def longest_situation(**changes: Any) -> Situation:
    """Return the situation of an agent whose texts are all as long as permitted."""
    values: dict[str, Any] = {
        "environment": Environment(now=NOW, user_waiting=True, user_messages=5, pending_percepts=5),
        "goals": [
            goal(id=f"goal-{n}", title=WORDS[:TITLE_LENGTH], description=WORDS[:4_000], notes=[WORDS] * 3)
            for n in range(3)
        ],
        "intents": [
            intent(
                f"{n}",
                goal_id="goal-0",
                description=WORDS[:1_000],
                precondition=WORDS[:500],
                postcondition=WORDS[:500],
                procedure=[WORDS] * 3,
            )
            for n in range(3)
        ],
        "plans": [
            PlanView(
                id="plan-1",
                goal_id="goal-0",
                status=PlanStatus.ACTIVE,
                dependencies=[WORDS[:500]] * MAX_DEPENDENCIES,
                steps=[
                    StepView(
                        position=n,
                        action="recall",
                        description=WORDS[:1_000],
                        precondition=WORDS[:500],
                        postcondition=WORDS[:500],
                        status=StepStatus.WAITING,
                    )
                    for n in range(1, 9)
                ],
            )
        ],
        "crossed": matches_of(55),
        "percepts": [percept(WORDS[:8_000], id=percept_id) for percept_id in PERCEPTS],
        "recent": [memory(f"recent{n}", content=WORDS[:4_000]) for n in range(5)],
        "relevant": [memory(f"relevant{n}", content=WORDS[:4_000]) for n in range(5)],
        "working_memory": WorkingMemory(concerns=[WORDS[:200]] * 5, curiosity=[WORDS[:200]] * 10),
        "last_beat": LastHeartbeat(
            number=2, mode=Mode.REFLECTION, narrative=WORDS[:4_000], outcomes=[WORDS[:2_000]] * 10
        ),
    }
    return rich_situation(**(values | changes))


def heartbeat_with_prompt(view: Situation, *, window: int, **changes: Any) -> HeartbeatState:
    """Return a heartbeat of a small model with its prompt built."""
    moment = moment_of(rules=rules_of(model_context=window, default_model="ollama/small"))
    values = {"situation": view, "character": CHARACTER, "moment": moment} | changes
    return Answers().run(build_the_prompt(heartbeat_of(**values))).state


def sections_of(heartbeat: HeartbeatState) -> dict[str, str]:
    """Return the texts of the prompt's sections by name."""
    assert heartbeat.prompt is not None
    return {section["name"]: section["text"] for section in heartbeat.prompt.sections}


@pytest.mark.parametrize("mode", [*Mode])
def test_texts_at_their_limits_leave_room_for_a_reply(mode: Mode) -> None:
    heartbeat = heartbeat_with_prompt(longest_situation(mode=mode), window=SMALL)

    assert heartbeat.prompt is not None
    assert sum(section["tokens"] for section in heartbeat.prompt.sections) <= SMALL - SMALL // 8
    sections = sections_of(heartbeat)
    assert "limit_0 (refuse)" in sections["boundaries"]
    assert "Not shown, for want of room: 274." in sections["boundaries"]
    assert "[goal-0]" in sections["goals"]
    (note,) = heartbeat.effects.audit
    assert note.detail["sources"]["boundaries"]["tokens"] > 10_000


def test_messages_without_room_wait_for_the_next_heartbeat() -> None:
    heartbeat = heartbeat_with_prompt(longest_situation(), window=SMALL)
    assert [percept.id for percept in heartbeat.situation.percepts] == PERCEPTS[:1]
    assert [percept.id for percept in heartbeat.situation.waiting] == PERCEPTS[1:]


@pytest.mark.parametrize(("window", "shown"), [(16_384, 5), (SMALL, 1)])
def test_boundaries_are_cut_only_for_the_reply(window: int, shown: int) -> None:
    view = rich_situation(crossed=matches_of(1), percepts=longest_situation().percepts)
    text = sections_of(heartbeat_with_prompt(view, window=window))["boundaries"]
    assert text.count("limit_0 (refuse)") == shown


def test_boundaries_of_the_shown_message_are_shown() -> None:
    # A later message that waits takes its boundary matches with it.
    important, other = matches_of(2)[4], matches_of(2)[5]
    view = longest_situation(crossed=[important, other, other.model_copy(update={"about": PERCEPTS[3]})])
    text = sections_of(heartbeat_with_prompt(view, window=SMALL))["boundaries"]
    assert f"[{PERCEPTS[0]}] limit_1" in text
    assert "limit_0" not in text


def test_tools_are_described_shortly_where_there_is_little_room() -> None:
    arguments = {
        "type": "object",
        "properties": {
            name: {"type": "string", "description": WORDS[:200]} for name in ("city", "day", "unit", "style")
        },
        "required": ["city"],
    }
    tools = [
        ActionOffer(
            name=f"mcp.harbour.{name}",
            cost=2,
            summary="",
            tool=ToolOffer(id=name, fingerprint="f", description=WORDS[:1_000], arguments=arguments),
        )
        for name in ("tides", "ferries", "lamps")
    ]
    view = longest_situation(mode=Mode.GOAL_PURSUIT, actions=[*rich_situation().actions, *tools])
    heartbeat = heartbeat_with_prompt(view, window=SMALL)

    assert heartbeat.prompt is not None
    assert sum(section["tokens"] for section in heartbeat.prompt.sections) <= SMALL - SMALL // 8
    text = sections_of(heartbeat)["tools"]
    assert "mcp.harbour.lamps" in text
    assert "city (string)" in text
    assert "unit" not in text
    # The schema of the reply has all arguments.
    assert heartbeat.situation.tools["mcp.harbour.tides"] == tools[0]


def test_last_resorts_shorten_texts_before_entries_are_dropped() -> None:
    view = longest_situation()
    for reduction in LAST_RESORTS[:3]:
        view, _ = reduction.reduce(view, 1, len)
    assert view.last_beat is not None
    assert len(view.last_beat.narrative) <= SHORT_TEXT
    assert view.relevant == longest_situation().relevant
    assert len(view.percepts) == 5


def test_concerns_and_questions_stay_in_the_words_that_settle_them() -> None:
    thought = Thought(text=WORDS[:500], at=NOW)
    memory = longest_situation().working_memory.model_copy(update={"thoughts": [thought]})
    view = longest_situation(working_memory=memory)
    for reduction in LAST_RESORTS:
        if isinstance(reduction, ShortenedTexts):
            view, _ = reduction.reduce(view, 1, len)
    assert len(view.working_memory.thoughts[0].text) <= SHORT_TEXT
    assert unknown_lines(memory, [*view.working_memory.concerns, *view.working_memory.curiosity]) == []


def test_the_next_open_step_is_the_last_that_is_shown() -> None:
    (plan,) = longest_situation().plans
    done = plan.steps[0].model_copy(update={"status": StepStatus.COMPLETED})
    view = longest_situation(plans=[plan.model_copy(update={"steps": [done, *plan.steps[1:]]})])
    for reduction in LAST_RESORTS:
        view, _ = reduction.reduce(view, 10**9, len)
    assert [step.position for step in view.plans[0].steps] == [2]


def test_a_reduction_that_changes_nothing_returns_its_situation() -> None:
    view = longest_situation()
    for reduction in LAST_RESORTS:
        reduced, _ = reduction.reduce(view, 10**9, len)
        while reduced is not view:
            view = reduced
            reduced, _ = reduction.reduce(view, 10**9, len)
    assert view.relevant == []
    assert len(view.percepts) == len(view.crossed) == 1


# --- Windows without room ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failures", "interval", "wait"),
    [
        (0, HOUR, 2 * HOUR),
        (1, HOUR, 4 * HOUR),
        (20, HOUR, 24 * HOUR),
        (3, 30 * HOUR, 30 * HOUR),
    ],
)
def test_a_window_without_room_is_tried_ever_more_rarely(
    failures: int, interval: timedelta, wait: timedelta
) -> None:
    reason = "ContextTooLarge: the window of ollama/small"
    recent = [RecentHeartbeat(status="failed", reason=reason)] * failures
    recent += [RecentHeartbeat(status="done"), RecentHeartbeat(status="failed", reason=reason)]
    recent.insert(min(failures, 1), RecentHeartbeat(status="skipped"))
    view = rich_situation(skills=[SkillView(name="All", text=WORDS * 3)])
    heartbeat = heartbeat_with_prompt(
        view,
        window=SMALL,
        opening=opening_of(recent_activity=RecentActivity(heartbeats=recent)),
        schedule=SchedulePolicy(interval=interval, adaptive=False),
    )

    result = Answers().run(Think()(heartbeat))

    assert result.outcome is NodeOutcome.FAILURE
    assert result.state.failure.startswith(reason)
    assert result.state.next is not None
    assert result.state.next.due_at == NOW + wait
