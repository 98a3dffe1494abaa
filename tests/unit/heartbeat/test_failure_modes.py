"""Detection of problems in recent activity (seed 004, section 9)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest

from arbor.heartbeat.failure_modes import (
    RecentActivity,
    RecentHeartbeat,
    Spending,
    are_alike,
    distinct_words,
    notices_of,
    similarity,
    stems_of,
    words_of_narrative,
)
from arbor.heartbeat.replies.items import Dropped
from arbor.heartbeat.replies.reply import Reply
from arbor.heartbeat.results import ActionOutcome, ActionResult, GoalChange, GoalChangeKind
from arbor.heartbeat.situation import Mode, NoticeKind
from arbor.heartbeat.steps.records import narrate
from arbor.heartbeat.usage import BudgetLevel, NearestLimit
from arbor.memory.text.narratives import NARRATIVE_FRAME
from tests.unit.heartbeat.builders import percept, situation


def recent_heartbeat(**changes: Any) -> RecentHeartbeat:
    return RecentHeartbeat(status="done", **changes)


REFUSED = RecentHeartbeat(status="failed", reason="ModelRefused: no")
NEAREST_LIMIT = NearestLimit(what="tokens", whose="your", left=0.2)


@pytest.mark.parametrize(
    ("kind", "activity", "silent"),
    [
        (NoticeKind.STAGNATION, RecentActivity(stale_goals=["Map the harbour"]), RecentActivity()),
        (
            NoticeKind.HOARDING,
            RecentActivity(energy=[Spending(20.0, 18.0)] * 24),
            RecentActivity(energy=[Spending(20.0, 15.0)] * 24),
        ),
        (
            NoticeKind.HOARDING,
            RecentActivity(energy=[Spending(20.0, 20.0)] * 24),
            RecentActivity(energy=[Spending(20.0, 20.0)] * 23),
        ),
        (NoticeKind.REACH_OUT_SPAM, RecentActivity(reached_out=5), RecentActivity(reached_out=4)),
        (
            NoticeKind.LOOP,
            RecentActivity(
                heartbeats=[
                    recent_heartbeat(topics=("The tides",)),
                    recent_heartbeat(topics=("x", "the TIDES!")),
                    recent_heartbeat(topics=("tides the",)),
                ]
            ),
            RecentActivity(
                heartbeats=[
                    recent_heartbeat(topics=("The tides",)),
                    recent_heartbeat(topics=("the TIDES!",)),
                    recent_heartbeat(topics=("piers",)),
                ]
            ),
        ),
        (
            NoticeKind.LOOP,
            RecentActivity(
                heartbeats=[
                    recent_heartbeat(narrative=f"Heartbeat {n}: I rested by the sea") for n in range(3)
                ]
            ),
            RecentActivity(
                heartbeats=[
                    recent_heartbeat(narrative=f"Heartbeat {n}: I rested by the sea") for n in range(2)
                ]
            ),
        ),
        (
            NoticeKind.LOOP,
            RecentActivity(
                heartbeats=[
                    recent_heartbeat(narrative="I rested"),
                    REFUSED,
                    recent_heartbeat(narrative="I rested"),
                    recent_heartbeat(narrative="I rested"),
                ]
            ),
            RecentActivity(
                heartbeats=[
                    recent_heartbeat(narrative=text)
                    for text in ("I rested", "I mapped every pier", "I rested")
                ]
            ),
        ),
        (
            NoticeKind.WORKER_FAILURE,
            RecentActivity(stale_neighborhoods=100),
            RecentActivity(stale_neighborhoods=99),
        ),
        (
            NoticeKind.WORKER_FAILURE,
            RecentActivity(unsummarized_episodes=10),
            RecentActivity(unsummarized_episodes=9),
        ),
        (
            NoticeKind.REFUSALS,
            RecentActivity(heartbeats=[recent_heartbeat(), REFUSED, REFUSED]),
            RecentActivity(heartbeats=[recent_heartbeat(), REFUSED]),
        ),
        (NoticeKind.INVALID_REPLIES, RecentActivity(nops=1), RecentActivity(nops=0)),
        (NoticeKind.PILE_UP, RecentActivity(waiting_percepts=20), RecentActivity(waiting_percepts=19)),
        (NoticeKind.PILE_UP, RecentActivity(pending_intents=10), RecentActivity(pending_intents=9)),
        (NoticeKind.STUCK_INTENTS, RecentActivity(stuck_intents=1), RecentActivity()),
        (
            NoticeKind.BUDGET,
            RecentActivity(level=BudgetLevel.DEGRADATION, nearest_limit=NEAREST_LIMIT),
            RecentActivity(nearest_limit=NEAREST_LIMIT),
        ),
    ],
)
def test_each_failure_is_noticed_from_its_limit_on(
    kind: NoticeKind, activity: RecentActivity, silent: RecentActivity
) -> None:
    assert [notice.kind for notice in notices_of(activity)] == [kind]
    assert kind not in [notice.kind for notice in notices_of(silent)]


def narrated_heartbeat(thinking: str, *outcomes: tuple[str, str], goal: str = "") -> RecentHeartbeat:
    """Return a heartbeat with the narrative of its thoughts, actions and goal progress."""
    results = [
        ActionResult(index=0, action=action, outcome=ActionOutcome.SUCCESS, summary=summary, cost=1)
        for action, summary in outcomes
    ]
    progress = GoalChange(kind=GoalChangeKind.PROGRESSED, title="Map the harbour", change=goal)
    story = narrate(situation(), Reply(thinking=thinking), results, [progress] if goal else [])
    return recent_heartbeat(narrative=story)


FLOODS = (
    "river floods in spring",
    "spring flood of the river",
    "flooding of rivers in spring",
    "when does the river flood",
    "river flood history",
)
SNOW = (
    narrated_heartbeat(
        "The river floods.", ("reflect", "noticed: The river floods when the snow melts in spring")
    ),
    narrated_heartbeat(
        "I think it floods.", ("reflect", "noticed: When snow melts, in spring, the river is in flood")
    ),
    narrated_heartbeat(
        "Again the river!", ("reflect", "noticed: Melting snow makes the river flood each spring")
    ),
)
MILL = (
    narrated_heartbeat("The mill?", ("reflect", "noticed: The old mill grinds barley for the whole valley")),
    narrated_heartbeat(
        "The mill.", ("reflect", "noticed: Barley of the whole valley is ground by the old mill")
    ),
)
REST = narrated_heartbeat("", ("rest", "rested"))
PIERS = [
    narrated_heartbeat(
        f"Next is the {side} pier; I look it up and note how deep it is.",
        ("recall", f"recalled 3 memories about “{side} pier”: The {side} pier is {state}; it has {what}"),
        ("remember", f"kept: The {side} pier is {deep} fathoms deep"),
        goal=f"the {side} pier is drawn",
    )
    for side, state, what, deep in (
        ("north", "old", "two lamps", "three"),
        ("south", "new", "a crane", "nine"),
        ("east", "rotten", "no rail", "five"),
        ("west", "long", "a shed", "seven"),
        ("inner", "short", "a bench", "two"),
    )
]


@pytest.mark.parametrize(
    ("heartbeats", "quoted"),
    [
        (
            [recent_heartbeat(topics=(topic,)) for topic in FLOODS],
            "You have turned to “river floods in spring” in 5 of your last 5",
        ),
        (
            [recent_heartbeat(topics=(topic,)) for topic in (*FLOODS[:2], "bread", *FLOODS[2:4])],
            "in 4 of your last 5 heartbeats",
        ),
        (
            [recent_heartbeat(topics=(text,)) for text in ("tides", "the tide", "tide tables", "tides")],
            "in 4 of your last 4",
        ),
        (
            [
                recent_heartbeat(topics=(text,))
                for text in ("task results", "results of a task", "the task result", "tasks' results")
            ],
            "in 4 of your last 4",
        ),
        (SNOW, "Your last 3 heartbeats were almost the same"),
        ((SNOW[0], MILL[0], SNOW[1], MILL[1], SNOW[2]), "Your last 5 heartbeats went back and forth"),
        ((SNOW[0], MILL[0], SNOW[0], MILL[0], SNOW[0]), "Your last 5 heartbeats went back and forth"),
        ((REST, REST, REST), "Your last 3 heartbeats were almost the same"),
        ((recent_heartbeat(narrative="I did nothing."),) * 3, "Your last 3 heartbeats were almost the same"),
    ],
)
def test_a_loop_is_noticed_in_paraphrased_narratives(
    heartbeats: Sequence[RecentHeartbeat], quoted: str
) -> None:
    (notice,) = notices_of(RecentActivity(heartbeats=heartbeats))
    assert notice.kind is NoticeKind.LOOP
    assert quoted in notice.text
    assert notice.text.endswith("What else might deserve attention?")


@pytest.mark.parametrize(
    "heartbeats",
    [
        # One subject, with different content each time.
        [recent_heartbeat(topics=(f"{side} pier",)) for side in ("north", "south", "east", "west", "inner")],
        [
            recent_heartbeat(topics=(text,))
            for text in ("river floods", "river trade", "river boats", "ferry fares", "tolls")
        ],
        # A subject that appeared and disappeared.
        [recent_heartbeat(topics=(topic,)) for topic in (*FLOODS[:3], "bread", "ferries")],
        [recent_heartbeat(topics=(topic,)) for topic in FLOODS[:3]],
        [recent_heartbeat(topics=("0192f0c1-7a0b-7c31-9f65-3b1f8f1c2a1" + n,)) for n in "12345"],
        PIERS,
        # Rest between different activities is no loop.
        [REST, PIERS[0], REST, SNOW[0], REST],
        [SNOW[0], SNOW[1], MILL[0], SNOW[2], REST],
        [REST, REST, SNOW[0], MILL[0], PIERS[0]],
        [
            narrated_heartbeat("The tide is out."),
            narrated_heartbeat("Ada wrote."),
            narrated_heartbeat("Bread is dear."),
            narrated_heartbeat("I look about me."),
        ],
    ],
)
def test_varied_heartbeats_are_no_loop(heartbeats: Sequence[RecentHeartbeat]) -> None:
    assert notices_of(RecentActivity(heartbeats=heartbeats)) == []


def test_doing_nothing_in_any_mode_is_a_loop() -> None:
    modes = (Mode.PLAN_EXECUTION, Mode.CONSOLIDATION, Mode.PLAN_EXECUTION)
    narratives = [narrate(situation(mode=mode), Reply(thinking="Nothing."), [], []) for mode in modes]
    (notice,) = notices_of(
        RecentActivity(heartbeats=[recent_heartbeat(narrative=text) for text in narratives])
    )
    assert notice.text.startswith("Your last 3 heartbeats were almost the same.")


@pytest.mark.parametrize("mode", Mode)
def test_stock_phrases_and_paths_are_ignored_in_comparing_narratives(mode: Mode) -> None:
    unknown = ActionResult(
        index=0, action="fog", outcome=ActionOutcome.UNKNOWN, summary="without effect: fog"
    )
    empty = narrate(
        situation(mode=mode, percepts=[percept("Fog")]),
        Reply(thinking="Fog", concerns=["Fog"]),
        [unknown],
        [],
        dropped=[Dropped(path="goal_updates[0].progress", value="", reason="fog")],
    )
    assert stems_of(words_of_narrative(empty).matter) - NARRATIVE_FRAME == {"fog"}


QUIET = (
    "looked around and saw no pending percept",
    "reviewed the goals and found no issue",
    "rested",
    "knew that already",
)


@pytest.mark.parametrize(("first", "second"), [*combinations(QUIET, 2)])
def test_quiet_heartbeats_with_different_actions_are_not_alike(first: str, second: str) -> None:
    story, other = (
        words_of_narrative(narrated_heartbeat("", ("observe", summary)).narrative)
        for summary in (first, second)
    )
    assert not are_alike(story, other)
    assert are_alike(story, story)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "recalled 1 memory about “public trust”: The user read a page",
            "recalled 1 memory about “the inbox”: An issue was decided",
        ),
        ("noticed: The concept of trust is a belief", "noticed: A page in the inbox is an issue"),
        ("kept: The user moved", "kept: The public decided"),
    ],
)
def test_words_of_fixed_phrases_count_in_the_matter(first: str, second: str) -> None:
    story, other = (
        words_of_narrative(narrated_heartbeat("", ("recall", summary)).narrative)
        for summary in (first, second)
    )
    assert not are_alike(story, other)


def test_the_number_of_memories_makes_no_difference() -> None:
    story, other = (
        words_of_narrative(narrated_heartbeat("", ("recall", summary)).narrative)
        for summary in ("recalled 2 memories about “fog”: Fog", "recalled 5 memories about “fog”: Fog")
    )
    assert are_alike(story, other)


def test_the_notice_of_a_loop_suggests_a_change() -> None:
    (notice,) = notices_of(RecentActivity(heartbeats=[recent_heartbeat(topics=("tides",))] * 4))
    assert notice.text == (
        "You have turned to “tides” in 4 heartbeats in a row. What else might deserve attention?"
    )


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({}, [NoticeKind.STAGNATION, NoticeKind.HOARDING]),
        ({"limited": True}, [NoticeKind.STAGNATION]),
        ({"level": BudgetLevel.CONSERVATION}, [NoticeKind.STAGNATION, NoticeKind.BUDGET]),
        ({"level": BudgetLevel.DEGRADATION}, [NoticeKind.STAGNATION, NoticeKind.BUDGET]),
        ({"level": BudgetLevel.END_TIMES}, [NoticeKind.BUDGET]),
        ({"energy": [Spending(10.0, 0.0), *[Spending(20.0, 20.0)] * 23]}, [NoticeKind.STAGNATION]),
    ],
)
def test_an_agent_that_must_save_is_not_told_to_act_more(
    changes: dict[str, Any], kinds: list[NoticeKind]
) -> None:
    values: dict[str, Any] = {
        "energy": [Spending(20.0, 18.0)] * 24,
        "stale_goals": ["Map the harbour"],
        "nearest_limit": NEAREST_LIMIT,
    }
    found = notices_of(RecentActivity(**(values | changes)))
    assert [notice.kind for notice in found] == kinds


@pytest.mark.parametrize(("end", "hoards"), [(20.0, True), (18.0, False)])
def test_an_agent_without_work_hoards_only_if_it_spends_nothing(end: float, hoards: bool) -> None:
    found = notices_of(RecentActivity(energy=[Spending(20.0, end, worked=False)] * 24))
    assert [notice.kind for notice in found] == [NoticeKind.HOARDING] * hoards


@pytest.mark.parametrize(("spent", "hoards"), [(2.0, False), (1.0, True)])
def test_hoarding_is_measured_by_the_regeneration_of_the_policy(spent: float, hoards: bool) -> None:
    recent = RecentActivity(energy=[Spending(20.0, 20.0 - spent)] * 24, regeneration=4)
    found = notices_of(recent)
    assert [notice.text[:72] for notice in found] == [
        "In your last 24 heartbeats you left 3.0 of 4 energy unused on average. R"
    ] * hoards


def test_notices_of_hoarding_and_stagnation_suggest_a_remedy() -> None:
    hoarding, *_ = notices_of(RecentActivity(energy=[Spending(20.0, 19.0)] * 24))
    assert "9.0 of 10 energy unused on average. Reflect on" in hoarding.text
    (stagnation,) = notices_of(RecentActivity(stale_goals=["Map the harbour", "Read"]))
    assert "Map the harbour; Read" in stagnation.text
    assert "abandon" in stagnation.text
    assert "review_goals" in stagnation.text


@pytest.mark.parametrize(("number", "text"), [(99, "99 percepts are"), (100, "100 or more percepts are")])
def test_percepts_that_are_no_longer_counted_are_more(number: int, text: str) -> None:
    (pile,) = notices_of(RecentActivity(waiting_percepts=number))
    assert pile.text.startswith(f"{text} waiting for you")


def test_similarity_is_the_share_of_common_words() -> None:
    assert similarity(distinct_words("I rested 12 times"), distinct_words("i RESTED 15 times")) == 1.0
    assert similarity(distinct_words("one two three"), distinct_words("two three four")) == 0.5
    assert similarity(distinct_words(""), distinct_words("")) == 0.0


def test_words_are_reduced_to_their_stems() -> None:
    assert stems_of(distinct_words("When do the rivers flood?")) == stems_of(
        distinct_words("Flooding of a river")
    )


def test_no_more_than_the_longest_narrative_is_compared() -> None:
    assert distinct_words(f"{'fog ' * 1_000}reef") == {"fog"}
    assert distinct_words(f"{'fog ' * 999}reef") == {"fog", "reef"}
