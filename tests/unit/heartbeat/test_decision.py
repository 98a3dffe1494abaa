"""Decisions about proposed actions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.heartbeat.actions import ACTIONS, ActionParams, ActionRegistry, ActionSpec
from arbor.heartbeat.budgets import ActionCountBudget, Budget, EnergyBudget
from arbor.heartbeat.decision import (
    Decision,
    DecisionLimits,
    DecisionVerdict,
    decide,
    texts_to_search,
    texts_to_store,
)
from arbor.heartbeat.replies.reply import MemoryNote, ProposedAction, Reply
from arbor.heartbeat.results import ActionOutcome, ActionResult, blocked_result

ALL = tuple(ACTIONS)
RECALL = {"query": "ferries"}
REFLECT = {"insight": "they are late"}


def decisions_on(
    *actions: tuple[str, dict[str, Any]], allowed: tuple[str, ...] = ALL, energy: float = 10, most: int = 10
) -> tuple[Decision, ...]:
    proposed = [ProposedAction(action=name, params=params) for name, params in actions]
    return decide(proposed, DecisionLimits(allowed=allowed, energy=energy, budget=EnergyBudget(), most=most))


@pytest.mark.parametrize(
    ("action", "params", "allowed", "energy", "verdict", "reason"),
    [
        ("recall", RECALL, ALL, 1, DecisionVerdict.RUN, ""),
        ("rest", {}, ALL, 0, DecisionVerdict.RUN, ""),
        ("remember", {"content": "x"}, ALL, 0, DecisionVerdict.RUN, ""),
        (
            "fly",
            {},
            ALL,
            9,
            DecisionVerdict.UNKNOWN,
            "there is no action 'fly'; possible: observe, review_goals, recall",
        ),
        (
            "reflect",
            REFLECT,
            ("rest",),
            9,
            DecisionVerdict.NOT_AUTHORIZED,
            "no grant of yours covers reflect; possible: rest",
        ),
        ("reflect", REFLECT, (), 9, DecisionVerdict.NOT_AUTHORIZED, "possible: none"),
        ("recall", {}, ALL, 9, DecisionVerdict.INVALID, "query: Field required"),
        (
            "recall",
            {"query": " "},
            ALL,
            9,
            DecisionVerdict.INVALID,
            "query: String should have at least 1 character",
        ),
        (
            "recall",
            {"query": "x" * 501},
            ALL,
            9,
            DecisionVerdict.INVALID,
            "query: String should have at most 500",
        ),
        (
            "recall",
            {"query": "x", "limit": 0},
            ALL,
            9,
            DecisionVerdict.INVALID,
            "limit: Input should be greater",
        ),
        (
            "recall",
            {"query": "x", "limit": 21},
            ALL,
            9,
            DecisionVerdict.INVALID,
            "limit: Input should be less",
        ),
        (
            "recall",
            {"query": ["x"]},
            ALL,
            9,
            DecisionVerdict.INVALID,
            "query: Input should be a valid string",
        ),
        (
            "remember",
            {"content": "x", "type": "dream"},
            ALL,
            9,
            DecisionVerdict.INVALID,
            "type: Input should be 'episodic'",
        ),
        (
            "remember",
            {"content": "x", "importance": 2},
            ALL,
            9,
            DecisionVerdict.INVALID,
            "importance: Input should be less",
        ),
        ("remember", {"content": "x", "importance": "nan"}, ALL, 9, DecisionVerdict.INVALID, "importance:"),
        (
            "connect",
            {"from_id": "a"},
            ALL,
            9,
            DecisionVerdict.INVALID,
            "to_id: Field required; relation: Field required",
        ),
        (
            "connect",
            {"from_id": "a", "to_id": "b", "relation": "likes"},
            ALL,
            9,
            DecisionVerdict.INVALID,
            "relation:",
        ),
        ("reprioritize", {"goal_id": "g", "state": "completed"}, ALL, 9, DecisionVerdict.INVALID, "state:"),
        ("reflect", REFLECT, ALL, 1, DecisionVerdict.TOO_LITTLE_ENERGY, "reflect costs 2, 1 energy is left"),
        ("recall", RECALL, ALL, 0.5, DecisionVerdict.TOO_LITTLE_ENERGY, "recall costs 1, 0.5 energy is left"),
        # The order of the checks: the first failed check is the reported one.
        ("fly", {}, (), 0, DecisionVerdict.UNKNOWN, "there is no action"),
        ("recall", {}, ("rest",), 0, DecisionVerdict.NOT_AUTHORIZED, "no grant of yours"),
        ("recall", {}, ALL, 0, DecisionVerdict.INVALID, "query"),
    ],
)
def test_the_first_failed_check_decides_about_an_action(
    action: str,
    params: dict[str, Any],
    allowed: tuple[str, ...],
    energy: float,
    verdict: DecisionVerdict,
    reason: str,
) -> None:
    (decision,) = decisions_on((action, params), allowed=allowed, energy=energy)

    assert decision.verdict is verdict
    assert reason in decision.reason
    assert (decision.cost == ACTIONS[action].cost) if decision.runs else (decision.cost == 0)


def test_energy_is_set_aside_in_order_and_a_refusal_costs_nothing() -> None:
    decisions = decisions_on(
        ("reflect", REFLECT),
        ("fly", {}),
        ("reflect", {}),
        ("reflect", REFLECT),
        ("recall", RECALL),
        ("rest", {}),
        energy=3,
    )

    assert [decision.verdict for decision in decisions] == [
        DecisionVerdict.RUN,
        DecisionVerdict.UNKNOWN,
        DecisionVerdict.INVALID,
        DecisionVerdict.TOO_LITTLE_ENERGY,
        DecisionVerdict.RUN,
        DecisionVerdict.RUN,
    ]
    assert sum(decision.cost for decision in decisions) == 3
    assert [decision.index for decision in decisions] == list(range(6))


@pytest.mark.parametrize(
    ("since", "until", "got"),
    [
        ("2026-02-01", "2026-01-01", "got 2026-02-01 and 2026-01-01"),
        ("2026-01-31T18:00", "2026-01-31T12:00", "got 2026-01-31 18:00:00 and 2026-01-31 12:00:00"),
    ],
)
def test_an_empty_span_is_refused_with_what_differs(since: str, until: str, got: str) -> None:
    (refused,) = decisions_on(("recall", {**RECALL, "since": since, "until": until}))
    assert refused.reason.endswith(f"since must be before until, {got}")


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (ActionCountBudget(), "recall costs 1, 0 actions are left"),
        (EnergyBudget(), "recall costs 1, 0 energy is left"),
    ],
)
def test_a_refusal_names_the_unit_of_the_budget(budget: Budget, reason: str) -> None:
    limits = DecisionLimits(allowed=ALL, energy=0, budget=budget)
    (refused,) = decide([ProposedAction(action="recall", params=RECALL)], limits)
    assert refused.reason == reason


def test_the_number_of_actions_is_limited() -> None:
    decisions = decisions_on(*[("rest", {})] * 12)

    assert [decision.runs for decision in decisions] == [True] * 10 + [False] * 2
    assert decisions[10].verdict is DecisionVerdict.TOO_MANY
    assert decisions[10].reason == "a round trip has at most 10 actions"


def test_a_permitted_action_has_complete_and_clean_parameters() -> None:
    recall, remember, connect = decisions_on(
        ("recall", {"query": " ferries ", "limit": None}),
        ("remember", {"content": "x", "type": "Episodic", "mood": "glad", "importance": "0.7"}),
        ("connect", {"from_id": "a", "to_id": "b", "relation": "DERIVED_FROM"}),
    )

    nothing: dict[str, Any] = {
        "types": [],
        "since": None,
        "until": None,
        "concept": "",
        "cluster": "",
        "episode": "",
    }
    assert recall.params == {"query": "ferries", "limit": 5, **nothing}
    assert remember.params == {
        "content": "x",
        "type": "episodic",
        "importance": 0.7,
        "steps": [],
        "context": "",
        "pattern": "",
    }
    assert remember.ignored == ["mood"]
    assert connect.params["relation"] == "derived_from"


@pytest.mark.parametrize(
    ("judged", "ignored"),
    [
        ({"target": "memory", "content": "c", "reason": "r"}, ["content", "reason"]),
        ({"target": "memory", "verdict": "revise", "content": "c", "confidence": 1}, ["confidence"]),
        ({"target": "memory", "verdict": "doubt", "importance": 0.1}, ["importance"]),
        ({"target": "belief", "verdict": "doubt", "confidence": 0.1}, []),
        ({"target": "belief", "verdict": "keep", "confidence": 0.9}, ["confidence"]),
        ({"target": "cluster", "verdict": "revise", "content": "c", "importance": 1}, ["importance"]),
    ],
)
def test_maintain_lists_parameters_of_other_verdicts(judged: dict[str, Any], ignored: list[str]) -> None:
    proposed = ProposedAction(action="maintain", params={"id": "x", "reason": "r", **judged})
    (decision,) = decide([proposed], DecisionLimits(allowed=ALL, energy=20, budget=EnergyBudget()))
    assert decision.verdict is DecisionVerdict.RUN, decision.reason
    assert sorted(decision.ignored) == ignored
    assert all(not decision.params[name] for name in ignored)


def test_a_decision_preserves_the_reasons_of_the_model() -> None:
    proposed = ProposedAction(action="rest", params={}, reasoning="tired", goal_id="g", intent_id="i")

    (decision,) = decide([proposed], DecisionLimits(allowed=ALL, energy=1, budget=EnergyBudget()))

    assert (decision.reasoning, decision.goal_id, decision.intent_id) == ("tired", "g", "i")
    assert Decision.model_validate(decision.model_dump(mode="json")) == decision


def test_a_refused_action_ends_as_blocked_with_its_reason() -> None:
    (decision,) = decisions_on(("fly", {}))

    result = blocked_result(decision)

    assert (result.outcome, result.cost) == (ActionOutcome.BLOCKED, 0)
    assert result.summary.startswith("not done: there is no action 'fly'")
    assert ActionResult.model_validate(result.model_dump(mode="json")) == result


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*ALL, "fly", ""]),
            st.dictionaries(
                st.sampled_from(["query", "limit", "content", "insight", "from_id", "state", "x"]),
                st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2),
                max_size=4,
            ),
        ),
        max_size=12,
    ),
    st.floats(0, 20),
)
def test_no_proposed_actions_spend_more_than_the_energy(
    actions: list[tuple[str, dict[str, Any]]], energy: float
) -> None:
    decisions = decisions_on(*actions, energy=energy)

    assert len(decisions) == len(actions)
    assert sum(decision.cost for decision in decisions) <= energy
    assert all(decision.runs or (decision.reason and decision.cost == 0) for decision in decisions)


def test_texts_to_search_and_to_store_are_known_in_advance() -> None:
    decisions = decisions_on(
        ("recall", RECALL),
        ("remember", {"content": "kept"}),
        ("reflect", REFLECT),
        ("recall", RECALL),
        ("rest", {}),
        ("recall", {"query": "x", "limit": 99}),
    )
    reply = Reply(memory_notes=[MemoryNote(text="noted")])

    assert texts_to_search(decisions) == ("ferries",)
    assert texts_to_store(decisions, reply) == ("kept", "they are late", "noted")


def test_an_extended_registry_does_not_change_the_original() -> None:
    class InquireParams(ActionParams):
        question: str

    inquire = ActionSpec(name="inquire", cost=3, summary="ask the world", params=InquireParams)

    larger = ActionRegistry((*ACTIONS.values(), inquire))

    assert "inquire" in larger
    assert "inquire" not in ACTIONS
    assert [offer.name for offer in larger.offers({"inquire", "rest"})] == ["rest", "inquire"]
    with pytest.raises(ValueError, match="two actions are called 'rest'"):
        ActionRegistry([ACTIONS["rest"], ACTIONS["rest"]])


def test_every_offered_parameter_is_described() -> None:
    for offer in ACTIONS.offers(ALL):
        assert offer.summary
        assert all(offer.params.values())


def test_an_unavailable_action_is_refused_and_never_listed() -> None:
    missing = {"inquire_deep": "no web search is set up"}
    proposed = [ProposedAction(action=name) for name in ("inquire_deep", "fly")]

    inquire, fly = decide(
        proposed, DecisionLimits(allowed=ALL, energy=20, budget=EnergyBudget(), missing=missing, first=4)
    )

    assert (inquire.verdict, inquire.cost) == (DecisionVerdict.UNAVAILABLE, 0)
    assert inquire.reason == "inquire_deep is not possible here: no web search is set up"
    assert "inquire_deep" not in fly.reason
    assert (inquire.index, fly.index) == (4, 5)
