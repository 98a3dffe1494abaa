"""Fixed phrases of narratives: no keywords of clusters, and no matter of a comparison."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.replies.items import Dropped
from arbor.heartbeat.replies.reply import Reply
from arbor.heartbeat.results import ActionOutcome, ActionResult, GoalChange, GoalChangeKind
from arbor.heartbeat.situation import Mode
from arbor.heartbeat.steps.records import narrate
from arbor.memory.text.keywords import keywords
from arbor.memory.text.narratives import split_narrative
from tests.unit.heartbeat.builders import percept, situation

RUN = "01a220c1-9c52-71b2-8478-f250d90b9e52"
#: The summaries of each action that worked, also in part, today's and stored ones; the matter of all of them is fog.
SUMMARIES = {
    "observe": [
        "looked around and saw no pending percept",
        "looked around and saw 3 pending percepts",
        "looked around: pending for the next heartbeat and shown: 3",
    ],
    "review_goals": ["reviewed the goals and found no issue", "reviewed the goals and found 2 issues: fog"],
    "recall": [
        "recalled nothing about “fog”",
        "recalled 1 memory about “fog”: Fog",
        "recalled 1,200 memories about “fog”: Fog; on the tip of the tongue: clusters fog; fog",
        "recalled 2 memories about “fog”: Fog; on the tip of the tongue: cluster fog; without effect: fog",
    ],
    "search_my_memories": ["found nothing about “fog”; fog", "found 1 result about “fog”: Fog"],
    "search_knowledge": ["found 5 results about “fog”: Fog"],
    "remember": ["kept: Fog", "knew that already"],
    "connect": [
        "connected a memory with another as supports",
        "connected an aspect with a belief as derived_from; the belief stays as it is",
        "connected a goal with an aspect as associated",
        "connected a concept with a goal as causes",
    ],
    "maintain": [
        "kept a memory as it is: Fog",
        "archived a memory (fog): Fog",
        "lowered the trust in a memory to 0.25: Fog",
        "set the importance of a memory to 0.80: Fog",
        "revised a memory: Fog",
        "kept a belief as it is: Fog",
        "changed a belief (60% sure before, 40% now, held): Fog",
        "renamed the cluster “fog” to “fog”",
        "marked the cluster “fog” to be reclustered",
        "kept the cluster “fog” as it is",
        "looked at the memory again: Fog",
        "looked at the belief again: Fog",
        "looked at the cluster again: Fog",
    ],
    "reflect": ["noticed: Fog"],
    "inquire_shallow": [
        "found out about “fog” from 2 pages: Fog",
        "read 1 page on “fog” and found no answer",
        "read 12 pages on “fog” and found no answer",
    ],
    "inquire_deep": ["found out about “fog” from 1 page: Fog"],
    "synthesize": [
        "made a conclusion: Fog",
        "made a text: Fog",
        "made a creative work: Fog",
        "made a creative: Fog",
    ],
    "brainstorm_goals": ["added “fog”, queued; added “fog”, backburner; could not add “fog”: fog"],
    "reprioritize": ["moved “fog”, active now"],
    "reach_out_user": ["decided to write to my user (by inbox, email): Fog"],
    "reach_out_agent": ["wrote to fog: Fog"],
    "reach_out_public": [
        "decided to write in public (by inbox, 2 named agents will receive it): Fog",
        "decided to write in public (by webhook): Fog",
    ],
    "start_workflow": [f"started the workflow fog, run {RUN}"],
    "complete_step": [
        "completed the step fog of the workflow fog",
        "gave up the step fog of the workflow fog",
    ],
    "rest": ["rested"],
    "mcp.fog.fog": [
        "called mcp.fog.fog, which answered nothing",
        "called mcp.fog.fog {}, which answered: fog",
    ],
}
#: The summaries of actions that were refused, that failed, and that have no outcome yet.
REFUSALS = ["not done: fog", "not done: no grant of yours covers arbor://actions/execute/fog"]
FAILURES = ["did not work: fog", "did not find out “fog”: fog", "mcp.fog.fog reports an error: fog"]
PENDING = ["looking up “fog”", "calling mcp.fog.fog", "mcp.fog.fog may have run: fog"]
#: The words that are no fixed phrases: those of the name `mcp.fog.fog`, too.
MATTER = {"fog", "mcp"}


def results() -> Iterator[ActionResult]:
    """Yield results of all actions with all summaries."""
    for action, summaries in SUMMARIES.items():
        for outcome, words in (
            (ActionOutcome.SUCCESS, summaries),
            (ActionOutcome.BLOCKED, REFUSALS),
            (ActionOutcome.FAILURE, FAILURES),
            (ActionOutcome.UNKNOWN, PENDING),
        ):
            for summary in words:
                yield ActionResult(index=0, action=action, outcome=outcome, summary=summary)


def test_the_table_names_every_action() -> None:
    assert {name for name in SUMMARIES if not name.startswith("mcp.")} == {*ACTIONS}


@pytest.mark.parametrize("result", [*results()], ids=lambda result: f"{result.outcome}: {result.summary}")
def test_no_fixed_phrase_of_a_result_is_a_keyword(result: ActionResult) -> None:
    story = narrate(situation(), Reply(), [result], [])

    assert {*keywords([story], {}, 100)} <= MATTER
    # The frame of words is for stored narratives: patterns suffice for new ones.
    assert {*keywords([f"Fog. {split_narrative(story).matter}"], {}, 100)} <= MATTER
    assert split_narrative(story).actions


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("unit", ["energy", "actions", "ticks"])
@pytest.mark.parametrize("kind", GoalChangeKind)
@pytest.mark.parametrize("by_rule", [False, True])
def test_no_fixed_phrase_around_the_results_is_a_keyword(
    mode: Mode, unit: str, kind: GoalChangeKind, by_rule: bool
) -> None:
    refused = ("memory_notes", "goal_updates", "new_goals", "decompositions", "identity_insights")
    story = narrate(
        situation(mode=mode, energy_unit=unit, percepts=[percept("Fog")]),
        Reply(thinking="Fog", concerns=["Fog"]),
        [],
        [GoalChange(kind=kind, title="Fog", change="fog", by_rule=by_rule)],
        refused=[(f"{path}[0]", "fog") for path in refused],
        dropped=[Dropped(path="goal_updates[0].progress", value="", reason="fog.")],
    )

    assert keywords([story], {}, 100) == ("fog",)
    assert {*keywords([f"Fog. {split_narrative(story).matter}"], {}, 100)} == {"fog"}


def test_the_words_of_phrases_are_keywords_in_the_matter() -> None:
    recalled = ActionResult(
        index=0,
        action="recall",
        outcome=ActionOutcome.SUCCESS,
        summary="recalled 1 memory about “public trust”: The user read a page in the inbox",
    )
    story = narrate(situation(), Reply(), [recalled], [])

    assert {*keywords([story], {}, 100)} == {"public", "trust", "user", "read", "page", "inbox"}
