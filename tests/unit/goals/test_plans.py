"""Plans: transitions, committed steps and completion."""

from __future__ import annotations

from itertools import product

import pytest

from arbor.errors import Invalid, TransitionIllegal
from arbor.goals.plans import (
    PlanDraft,
    PlanStatus,
    StepDraft,
    StepStatus,
    check_draft,
    is_carried_out,
    move_plan,
    next_to_commit,
)

W, T, C, X = StepStatus.WAITING, StepStatus.COMMITTED, StepStatus.COMPLETED, StepStatus.ABANDONED
LEGAL = {
    (PlanStatus.DRAFT, PlanStatus.ACTIVE),
    (PlanStatus.DRAFT, PlanStatus.ABANDONED),
    (PlanStatus.ACTIVE, PlanStatus.COMPLETED),
    (PlanStatus.ACTIVE, PlanStatus.ABANDONED),
}
STEP = StepDraft(action="recall", description="what the pilots said")


@pytest.mark.parametrize(("status", "to"), list(product(PlanStatus, PlanStatus)))
def test_a_plan_moves_only_along_the_table(status: PlanStatus, to: PlanStatus) -> None:
    if (status, to) in LEGAL:
        assert move_plan(status, to) is to
    else:
        with pytest.raises(TransitionIllegal, match=f"a plan that is {status} can become"):
            move_plan(status, to)


@pytest.mark.parametrize(
    ("steps", "committed", "expected"),
    [
        ((), 0, []),
        (((W, False),) * 5, 0, [0, 1, 2]),
        (((W, False),) * 5, 2, [0]),
        (((W, False),) * 5, 3, []),
        (((C, False), (T, False), (W, False)), 1, [2]),
        (((W, False), (W, True), (W, False)), 0, [0]),
        (((T, False), (W, True)), 1, []),
        (((C, False), (W, True), (W, False)), 0, [1, 2]),
        (((W, True), (W, False)), 0, [0, 1]),
        (((C, False), (X, False), (W, True)), 0, []),
    ],
)
def test_steps_are_committed_in_order_within_room_and_conditions(
    steps: tuple[tuple[StepStatus, bool], ...], committed: int, expected: list[int]
) -> None:
    assert next_to_commit(steps, committed=committed) == expected


@pytest.mark.parametrize(
    ("steps", "done"), [((), False), ((C,), True), ((C, T), False), ((C, X), False), ((C, C), True)]
)
def test_a_plan_is_carried_out_when_every_step_is_done(steps: tuple[StepStatus, ...], done: bool) -> None:
    assert is_carried_out(steps) is done


@pytest.mark.parametrize(
    ("draft", "words"),
    [
        (PlanDraft(steps=[]), "at least one step"),
        (PlanDraft(steps=[STEP], risk=1.1), "risk is 0 to 1"),
        (PlanDraft(steps=[STEP], risk=float("nan")), "risk is 0 to 1"),
        (PlanDraft(steps=[STEP], estimated_ticks=-1), "an estimate is 0 to"),
        (PlanDraft(steps=[STEP], estimated_cost=float("nan")), "an estimate is 0 to"),
        (PlanDraft(steps=[STEP], dependencies=["x"] * 11), "at most 10 dependencies"),
        (PlanDraft(steps=[STEP], dependencies=["a boat", " "]), "a dependency of a plan needs a text"),
        (PlanDraft(steps=[STEP], dependencies=["a\0boat"]), "a dependency of a plan must not contain a NUL"),
        (PlanDraft(steps=[STEP], dependencies=["a" * 1_001]), "must have at most 1,000 characters"),
        (PlanDraft(steps=[StepDraft(action="recall", description=" ")]), "a step has a description"),
        (PlanDraft(steps=[StepDraft(action="recall", description="a\ud800")]), "half a surrogate pair"),
        (PlanDraft(steps=[StepDraft(action="recall", description="a" * 1_001)]), "a step has a description"),
        (
            PlanDraft(steps=[StepDraft(action="recall", description="a", estimated_ticks=10**7)]),
            "an estimate is 0 to",
        ),
    ],
)
def test_an_invalid_plan_is_refused(draft: PlanDraft, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        check_draft(draft)


def test_a_plan_may_be_full_or_only_a_list_of_steps() -> None:
    check_draft(PlanDraft(steps=[STEP]))
    check_draft(
        PlanDraft(steps=[STEP], risk=0.0, estimated_ticks=3, estimated_cost=1.5, dependencies=["a boat"])
    )
