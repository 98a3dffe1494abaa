"""The condition language, and the choice of an edge."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.pipeline.conditions import NodeOutcome, parse_condition
from arbor.pipeline.engine import choose_edge
from arbor.pipeline.values import PipelineEdge

CONTEXT = {
    "mode": "reflection",
    "name": "Nan",
    "count": 3,
    "ratio": 0.5,
    "yes": True,
    "no": False,
    "deep": {"in": {"side": "x y"}},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("   ", True),
        ("outcome=success", True),
        ("outcome = success", True),
        ("outcome!=success", False),
        ("outcome=failure", False),
        ("context.mode=reflection", True),
        ("context.mode='reflection'", True),
        ("context.name=Nan", True),
        ("context.name!=Nan", False),
        ('context.mode="reflection"', True),
        ("context.mode!=consolidation", True),
        ("context.count=3", True),
        ("context.count=3.0", True),
        ("context.count>=3", True),
        ("context.count>3", False),
        ("context.count <= 3", True),
        ("context.count<3", False),
        ("context.ratio<1", True),
        ("context.yes=true", True),
        ("context.no=false", True),
        ("context.no=true", False),
        ("context.deep.in.side='x y'", True),
        ("context.deep.in.side='x && y'", False),
        ("context.missing=", True),
        ("context.missing=''", True),
        ("context.missing=x", False),
        ("context.missing!=x", True),
        ("context.missing>0", False),
        ("context.missing<=0", False),
        ("context.mode>1", False),
        ("context.mode.deeper=", True),
        ("outcome=success && context.count>=3", True),
        ("outcome=success&&context.count>3", False),
        ("outcome=success && context.mode=reflection && context.yes=true", True),
    ],
)
def test_a_condition_is_evaluated_as_written(text: str, expected: bool) -> None:
    assert parse_condition(text).is_true(NodeOutcome.SUCCESS, CONTEXT) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("context.turn>1", True),
        ("context.turn>2", False),
        ("context.situation.beat_number=7", True),
        ("context.idle_beats=0", True),
    ],
)
def test_conditions_with_former_names_are_evaluated(text: str, expected: bool) -> None:
    context = {"round_trip": 2, "situation": {"heartbeat_number": 7}, "idle_beats": 0, "idle_heartbeats": 9}
    assert parse_condition(text).is_true(NodeOutcome.SUCCESS, context) is expected


@pytest.mark.parametrize(
    "text",
    [
        "success",
        "outcome",
        "outcome==success",
        "outcome=won",
        "outcome=success &&",
        "&& outcome=success",
        "outcome=success || outcome=partial",
        "outcome=success & context.a=1",
        "outcome=success context.a=1",
        "context=1",
        "context.=1",
        "context.a b=1",
        "mode=reflection",
        "context.a>big",
        "context.a<''",
        "context.a='open",
        "context.a=b=c",
        "context.a;drop=1",
    ],
)
def test_a_wrong_condition_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"outcome|number"):
        parse_condition(text)


@given(st.text(max_size=60))
def test_any_text_is_either_a_condition_or_refused(text: str) -> None:
    try:
        condition = parse_condition(text)
    except ValueError:
        return
    assert condition.is_true(NodeOutcome.SUCCESS, CONTEXT) in (True, False)


def edge(target: str, condition: str = "", weight: int = 0, label: str = "") -> PipelineEdge:
    return PipelineEdge(
        source="a", target=target, condition=parse_condition(condition), weight=weight, label=label
    )


@pytest.mark.parametrize(
    ("edges", "chosen"),
    [
        ([edge("a", weight=9), edge("b", label="mine")], "b"),
        ([edge("a", "context.count=3"), edge("b", label="mine")], "a"),
        ([edge("a", "context.count=3"), edge("b", "outcome=success", label="mine")], "b"),
        ([edge("b", label="mine"), edge("a", label="mine")], "a"),
        ([edge("b", label="mine", weight=1), edge("a", label="mine")], "b"),
        ([edge("b", label="other"), edge("a")], "a"),
    ],
)
def test_a_preferred_label_ranks_between_condition_and_weight(edges: list[PipelineEdge], chosen: str) -> None:
    choice = choose_edge(edges, NodeOutcome.SUCCESS, {"count": 3}, preferred="mine")

    assert choice is not None
    assert choice.target == chosen


def test_an_outcome_of_a_whole_run_is_no_condition() -> None:
    with pytest.raises(ValueError, match="an outcome is one of success, failure, retry, partial"):
        parse_condition("outcome=skipped")


@pytest.mark.parametrize(
    ("edges", "outcome", "expected"),
    [
        ([edge("plain", weight=9), edge("held", "context.count=3")], NodeOutcome.SUCCESS, "held"),
        ([edge("low", "context.count=3"), edge("high", "context.count>1", 2)], NodeOutcome.SUCCESS, "high"),
        ([edge("b"), edge("a"), edge("c")], NodeOutcome.SUCCESS, "a"),
        ([edge("b", weight=1), edge("a")], NodeOutcome.SUCCESS, "b"),
        ([edge("b", "context.count=4"), edge("a", "context.count=4")], NodeOutcome.SUCCESS, None),
        ([edge("on")], NodeOutcome.PARTIAL, "on"),
        ([edge("on")], NodeOutcome.FAILURE, None),
        ([edge("on")], NodeOutcome.RETRY, None),
        ([edge("on", "context.count=3")], NodeOutcome.FAILURE, None),
        ([edge("on"), edge("fail", "outcome=failure")], NodeOutcome.FAILURE, "fail"),
        ([edge("on"), edge("fail", "outcome!=success")], NodeOutcome.RETRY, "fail"),
        ([edge("on"), edge("fail", "outcome=failure")], NodeOutcome.SUCCESS, "on"),
        ([], NodeOutcome.SUCCESS, None),
    ],
)
def test_the_edge_is_chosen_by_condition_then_weight_then_name(
    edges: list[PipelineEdge], outcome: NodeOutcome, expected: str | None
) -> None:
    chosen = choose_edge(edges, outcome, CONTEXT)

    assert (chosen.target if chosen else None) == expected
