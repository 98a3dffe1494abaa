"""Steps on the self: proposals, decisions and dropped insights."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from arbor.errors import NotFound, TransitionIllegal
from arbor.heartbeat.needs import (
    DecideProposal,
    OwnMemories,
    ProposalOutcome,
    Propose,
    ProposedChange,
    SettledProposals,
)
from arbor.heartbeat.replies.reply import (
    IdentityInsight,
    InsightKind,
    ProposalChoice,
    ProposalDecision,
    Reply,
)
from arbor.heartbeat.replies.round_trips import merge_replies
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.selfhood import consolidate, identity_insights, process_proposals
from arbor.selves.proposals import NewProposal, ProposalKind
from tests.unit.heartbeat.builders import proposal, situation
from tests.unit.heartbeat.state_builders import HEARTBEAT, Answers, heartbeat_of

MEMORY = UUID(int=77)


def change(number: int, **changes: Any) -> ProposedChange:
    values: dict[str, Any] = {
        "id": UUID(int=number),
        "kind": ProposalKind.IDENTITY,
        "content": f"I am {number}",
        "confidence": number / 10,
        "evidence": 2,
    }
    return ProposedChange(**(values | changes))


def test_settled_proposals_are_shown_surest_first() -> None:
    pending = [proposal(id=str(UUID(int=5)), confidence=0.5), proposal("gone", id=str(UUID(int=6)))]
    outcome = ProposalOutcome(made=[change(3), change(9)], expired=[change(6)], deleted_experiences=4)
    answers = Answers({SettledProposals: outcome})

    result = answers.run(consolidate(heartbeat_of(situation=situation(proposals=pending))))

    assert answers.kinds == [SettledProposals]
    shown = result.state.situation.proposals
    assert [item.id for item in shown] == [str(UUID(int=number)) for number in (9, 5, 3)]
    assert result.changed == (
        "proposed: I am 3",
        "proposed: I am 9",
        "fell out of the queue: I am 6",
        "deleted 4 old experiences",
    )


def test_one_deleted_experience_is_named_in_the_singular() -> None:
    answers = Answers({SettledProposals: ProposalOutcome(deleted_experiences=1)})
    assert answers.run(consolidate(heartbeat_of())).changed == ("deleted 1 old experience",)


def test_consolidation_reports_what_the_agent_is_already() -> None:
    new = NewProposal(
        kind=ProposalKind.IDENTITY,
        content="patient",
        confidence=0.8,
        source="consolidation",
        change={"aspect": "trait"},
    )
    answers = Answers({SettledProposals: ProposalOutcome(redundant=[new])})
    changed = answers.run(consolidate(heartbeat_of())).changed
    assert changed == ("not proposed, because it is so already: patient",)


def test_at_most_five_proposals_are_shown() -> None:
    outcome = ProposalOutcome(made=[change(number) for number in range(1, 9)])
    result = Answers({SettledProposals: outcome}).run(consolidate(heartbeat_of()))
    assert len(result.state.situation.proposals) == 5


def test_each_proposal_is_decided_or_dropped_with_its_reason() -> None:
    choices = [
        ProposalDecision(proposal_id=str(UUID(int=1)), decision=ProposalChoice.ACCEPT),
        ProposalDecision(proposal_id="nonsense", decision=ProposalChoice.ACCEPT),
        ProposalDecision(proposal_id=str(UUID(int=2)), decision=ProposalChoice.REJECT),
        ProposalDecision(proposal_id=str(UUID(int=3)), decision=ProposalChoice.DEFER),
    ]

    def decided(need: DecideProposal) -> str | Exception:
        if need.proposal_id == UUID(int=2):
            return TransitionIllegal("it is decided already")
        return f"{need.choice.decision} {need.proposal_id.int}"

    answers = Answers({DecideProposal: decided})
    result = answers.run(process_proposals(heartbeat_of(reply=Reply(proposal_decisions=choices))))

    assert [need.proposal_id.int for need in answers.needs] == [1, 2, 3]
    assert result.changed == ("accept 1", "defer 3")
    dropped = [(item.path, item.reason) for item in result.state.present.dropped]
    assert dropped == [
        ("proposal_decisions[1]", "there is no proposal 'nonsense'; use the ids as shown"),
        ("proposal_decisions[2]", "it is decided already"),
    ]


def insight(**changes: Any) -> IdentityInsight:
    values: dict[str, Any] = {
        "kind": InsightKind.VALUE,
        "content": " I am patient. ",
        "confidence": 0.9,
        "evidence": [str(MEMORY)],
    }
    return IdentityInsight(**(values | changes))


@pytest.mark.parametrize(
    ("item", "kind", "content", "change"),
    [
        (insight(), ProposalKind.IDENTITY, "I am patient.", {"aspect": "value"}),
        (insight(confidence=None), ProposalKind.IDENTITY, "I am patient.", {"aspect": "value"}),
        (
            insight(kind=InsightKind.PREFERENCE, content="tone: brief"),
            ProposalKind.PREFERENCE,
            "tone: brief",
            {"key": "tone", "value": "brief"},
        ),
    ],
)
def test_an_insight_that_rests_on_a_memory_is_proposed(
    item: IdentityInsight, kind: ProposalKind, content: str, change: dict[str, str]
) -> None:
    answers = Answers({OwnMemories: frozenset({MEMORY}), Propose: ProposalOutcome()})
    answers.run(identity_insights(heartbeat_of(reply=Reply(identity_insights=[item]))))

    memories, propose = answers.needs
    assert list(memories.named) == [str(MEMORY)]
    (new,) = propose.proposals
    assert (new.kind, new.content, new.change) == (kind, content, change)
    assert (new.source, list(new.evidence)) == (f"heartbeat:{HEARTBEAT}", [str(MEMORY)])


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (insight(confidence=0.1), "needs a confidence of at least"),
        (insight(evidence=[]), "rests on memories"),
        (insight(evidence=["the tide"]), "rests on memories"),
        (insight(evidence=[str(UUID(int=78))]), "rests on memories"),
        (insight(kind=InsightKind.PREFERENCE, content="be brief"), "a preference is written key: value"),
    ],
)
def test_an_unsure_or_baseless_insight_is_dropped_with_its_reason(item: IdentityInsight, reason: str) -> None:
    answers = Answers({OwnMemories: frozenset({MEMORY})})
    reply = Reply(identity_insights=[item], item_paths={"identity_insights": ["identity_insights[1]"]})
    heartbeat = heartbeat_of(reply=reply)
    result = answers.run(identity_insights(heartbeat))

    (dropped,) = result.state.present.dropped
    # The index in the model's original reply.
    assert dropped.path == "identity_insights[1]"
    assert reason in dropped.reason
    assert Propose not in answers.kinds


def test_unknown_evidence_of_an_insight_is_dropped_with_its_reason() -> None:
    item = insight(evidence=["the tide", str(MEMORY), str(UUID(int=78))])
    answers = Answers({OwnMemories: frozenset({MEMORY}), Propose: ProposalOutcome()})
    result = answers.run(identity_insights(heartbeat_of(reply=Reply(identity_insights=[item]))))

    assert [list(new.evidence) for new in answers.needs[1].proposals] == [[str(MEMORY)]]
    (dropped,) = result.state.present.dropped
    assert (dropped.path, dropped.value) == ("identity_insights[0].evidence", f"the tide; {UUID(int=78)}")


def test_an_insight_that_would_change_nothing_is_dropped() -> None:
    items = [insight(content=content) for content in ("patient", "brave")]
    heartbeat = heartbeat_of(reply=Reply(identity_insights=items))
    known = NewProposal(
        kind=ProposalKind.IDENTITY,
        content="patient",
        confidence=0.9,
        source=heartbeat.source,
        change={"aspect": "value"},
        evidence=[str(MEMORY)],
    )
    outcome = ProposalOutcome(made=[change(1)], redundant=[known])
    result = Answers({OwnMemories: frozenset({MEMORY}), Propose: outcome}).run(identity_insights(heartbeat))

    (dropped,) = result.state.present.dropped
    assert dropped.path == "identity_insights[0]"
    assert "already" in dropped.reason
    assert result.changed == ("proposed: I am 1",)


def test_a_memory_named_twice_is_evidence_once() -> None:
    item = insight(evidence=[MEMORY.hex, f" {str(MEMORY).upper()} ", str(MEMORY)])
    answers = Answers({OwnMemories: frozenset({MEMORY}), Propose: ProposalOutcome()})
    answers.run(identity_insights(heartbeat_of(reply=Reply(identity_insights=[item]))))
    (new,) = answers.needs[1].proposals
    assert list(new.evidence) == [str(MEMORY)]


def test_a_reply_without_insights_has_no_needs() -> None:
    answers = Answers()
    heartbeat = heartbeat_of()
    assert answers.run(identity_insights(heartbeat)).state is heartbeat
    assert answers.needs == []


def test_outcomes_of_insights_are_reported() -> None:
    outcome = ProposalOutcome(made=[change(1)], known=[change(2)], expired=[change(3)])
    answers = Answers({OwnMemories: frozenset({MEMORY}), Propose: outcome})
    result = answers.run(identity_insights(heartbeat_of(reply=Reply(identity_insights=[insight()]))))
    assert result.changed == ("proposed: I am 1", "proposed already: I am 2", "fell out of the queue: I am 3")


def decide_with_error(error: Exception) -> HeartbeatState:
    """Return the heartbeat after a decision about a proposal that ends with this error."""
    choice = ProposalDecision(proposal_id=str(UUID(int=1)), decision=ProposalChoice.ACCEPT)
    heartbeat = heartbeat_of(reply=Reply(proposal_decisions=[choice]))
    return Answers({DecideProposal: error}).run(process_proposals(heartbeat)).state


def test_a_domain_error_drops_a_decision() -> None:
    assert decide_with_error(NotFound("gone")).present.dropped[0].reason == "gone"


def test_an_unexpected_error_of_a_decision_propagates() -> None:
    with pytest.raises(ZeroDivisionError):
        decide_with_error(ZeroDivisionError())


def test_insights_with_equal_paths_are_each_proposed_or_dropped() -> None:
    contents = ("I am patient.", "I am kind.", "I am calm.")
    kept, second, third = (Reply(identity_insights=[insight(content=content)]) for content in contents)
    unfounded = Reply(identity_insights=[insight(evidence=[])])
    merged = kept
    for reply in (second, third, unfounded):
        merged = merge_replies(merged, reply)

    def proposed(need: Propose) -> ProposalOutcome:
        return ProposalOutcome(redundant=[need.proposals[1]])

    answers = Answers({OwnMemories: frozenset({MEMORY}), Propose: proposed})
    result = answers.run(identity_insights(heartbeat_of(reply=merged)))

    _, propose = answers.needs
    assert [new.content for new in propose.proposals] == [*contents]
    dropped = result.state.present.dropped
    assert [item.path for item in dropped] == ["identity_insights[0]"] * 2
    assert ["I am kind." in item.value for item in dropped] == [False, True]
