"""Branches, failures, retry targets, fallbacks, the bound of an endless run, and exits."""

from __future__ import annotations

import pytest

from arbor.pipeline.engine import NodeOutcome, NodeResult, ProgressStatus
from tests.unit.pipeline.steps import ONE, counts, nodes_of, run_pipeline, sets


def test_a_branch_chooses_by_the_previous_outcome_and_the_context() -> None:
    body = (
        "a [type=a]; choice [shape=diamond]; start -> a -> choice;"
        'choice -> done [condition="outcome=partial && context.mode=x"]; choice -> lost'
    )

    assert run_pipeline(body, {"a": sets(NodeOutcome.PARTIAL, mode="x")}).exit == "done"
    assert run_pipeline(body, {"a": sets(NodeOutcome.PARTIAL, mode="y")}).exit == "lost"
    assert run_pipeline(body, {"a": sets(NodeOutcome.SUCCESS, mode="x")}).exit == "lost"


@pytest.mark.parametrize("outcome", [NodeOutcome.FAILURE, NodeOutcome.RETRY])
def test_a_failure_follows_its_fail_edge_before_any_retry_target(outcome: NodeOutcome) -> None:
    progress = run_pipeline(
        'a [type=a, retry_target=b]; b [type=b]; start -> a -> done; b -> done; a -> lost [condition="outcome!=success"]',
        {"a": sets(outcome), "b": sets()},
    )

    assert (progress.exit, nodes_of(progress)) == ("lost", ["a"])


def test_a_failure_without_a_fail_edge_leads_to_the_retry_target() -> None:
    progress = run_pipeline(
        "a [type=a, retry_target=b, fallback_retry_target=c]; b [type=b]; c [type=c];"
        "start -> a -> done; b -> lost; c -> done",
        {"a": sets(NodeOutcome.FAILURE), "b": sets(), "c": sets()},
    )

    assert (progress.exit, nodes_of(progress)) == ("lost", ["a", "b"])


def test_the_fallback_follows_an_exhausted_retry_target() -> None:
    progress = run_pipeline(
        "a [type=a, retry_target=a, fallback_retry_target=c, max_visits=3]; c [type=c];"
        "start -> a -> done; c -> lost",
        {"a": counts("tries", NodeOutcome.FAILURE), "c": sets()},
    )

    assert (progress.exit, nodes_of(progress)) == ("lost", ["a", "a", "a", "c"])


def test_a_failure_without_an_edge_ends_the_run_as_a_failure() -> None:
    progress = run_pipeline(ONE, {"a": sets(NodeOutcome.FAILURE)})

    assert (progress.status, progress.outcome, progress.exit) == (
        ProgressStatus.FINISHED,
        NodeOutcome.FAILURE,
        "",
    )
    assert progress.fault == "nothing leads on from node a after failure"


@pytest.mark.parametrize(
    "body",
    [
        "a [type=a]; start -> a; a -> a; a -> done [weight=-1]; a -> lost [weight=-2]",
        "a [type=a]; b [shape=diamond]; c [shape=diamond]; start -> a -> b -> c; c -> b [weight=2]; c -> done; c -> lost",
    ],
)
def test_an_endless_run_ends_as_a_failure(body: str) -> None:
    progress = run_pipeline(body, {"a": counts("x", NodeOutcome.SUCCESS)})

    assert progress.outcome is NodeOutcome.FAILURE
    assert "was visited 12 times, its limit" in progress.fault


def test_a_limit_of_one_visit_is_named_as_such() -> None:
    body = "a [type=a, max_visits=1]; start -> a; a -> a; a -> done [weight=-1]; a -> lost [weight=-2]"
    assert (
        run_pipeline(body, {"a": counts("x", NodeOutcome.SUCCESS)}).fault
        == "node a was visited once, its limit"
    )


def test_a_step_may_prefer_an_edge_also_through_a_branch() -> None:
    body = (
        "a [type=a]; choice [shape=diamond]; b [type=b]; c [type=b]; start -> a -> choice;"
        "choice -> b [label=left, weight=5]; choice -> c [label=right]; b -> done; c -> lost"
    )
    handlers = {"b": sets(), "a": lambda state: NodeResult(state=state, preferred="right")}

    assert nodes_of(run_pipeline(body, handlers)) == ["a", "c"]
    assert nodes_of(run_pipeline(body, handlers | {"a": sets()})) == ["a", "b"]


def test_a_branch_after_a_handled_failure_follows_plain_edges() -> None:
    body = (
        "a [type=a]; choice [shape=diamond]; b [type=b]; start -> a -> done;"
        'a -> choice [condition="outcome=failure"]; choice -> b; b -> lost'
    )

    progress = run_pipeline(body, {"a": sets(NodeOutcome.FAILURE), "b": sets()})

    assert (progress.exit, nodes_of(progress)) == ("lost", ["a", "b"])


def test_an_unhandled_failure_after_a_branch_ends_the_run() -> None:
    body = (
        "a [type=a]; choice [shape=diamond]; start -> choice; choice -> a; a -> done; a -> lost [weight=-1]"
    )

    assert (
        run_pipeline(body, {"a": sets(NodeOutcome.FAILURE)}).fault
        == "nothing leads on from node a after failure"
    )


def test_a_retry_target_may_be_a_branch() -> None:
    body = (
        "a [type=a, retry_target=choice]; b [type=b]; choice [shape=diamond];"
        "start -> a -> done; choice -> b; b -> lost"
    )

    progress = run_pipeline(body, {"a": sets(NodeOutcome.FAILURE), "b": sets()})

    assert (progress.exit, nodes_of(progress)) == ("lost", ["a", "b"])


@pytest.mark.parametrize(
    ("exit_outcome", "ended"),
    [("success", NodeOutcome.SUCCESS), ("failure", NodeOutcome.FAILURE), ("skipped", NodeOutcome.SKIPPED)],
)
def test_an_exit_states_the_outcome_of_the_run(exit_outcome: str, ended: NodeOutcome) -> None:
    progress = run_pipeline(
        f"a [type=a]; out [shape=Msquare, outcome={exit_outcome}]; start -> a -> out;"
        "start -> done [weight=-1]; start -> lost [weight=-2]",
        {"a": sets()},
    )

    assert (progress.outcome, progress.exit) == (ended, "out")
