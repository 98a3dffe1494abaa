"""DOT texts: read, validated and refused."""

from __future__ import annotations

import re
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arbor.errors import PipelineInvalid
from arbor.pipeline.conditions import NodeOutcome
from arbor.pipeline.graph import heartbeat_text, load_graph
from arbor.pipeline.values import Graph, PipelineNodeKind

HANDLERS = {"work", "rest"}
HEAD = "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; "


def load(body: str) -> Graph:
    return load_graph(f"{HEAD}{body} }}", handlers=HANDLERS)


def faults_of(text: str) -> tuple[str, ...]:
    with pytest.raises(PipelineInvalid) as caught:
        load_graph(text, handlers=HANDLERS)
    assert caught.value.faults
    assert str(caught.value) == "; ".join(caught.value.faults)
    return caught.value.faults


def test_a_pipeline_is_read_with_its_attributes() -> None:
    graph = load(
        'node [max_visits=3]; a [type="work", label="Say \\"hi\\"", retry_target=b, fallback_retry_target=a];'
        "b [type=rest, max_visits=5]; choice [shape=diamond]; lost [shape=Msquare, outcome=failure];"
        'start -> a -> choice; choice -> done [condition="outcome=success", weight=2, label=yes]; '
        "choice -> b [weight=-1]; b -> lost"
    )

    assert graph.start == "start"
    assert [graph.nodes[name].kind for name in ("start", "a", "choice", "lost")] == [
        PipelineNodeKind.START,
        PipelineNodeKind.STEP,
        PipelineNodeKind.BRANCH,
        PipelineNodeKind.EXIT,
    ]
    assert graph.nodes["a"].retry_targets == ("b", "a")
    assert graph.nodes["a"].label == 'Say "hi"'
    assert (graph.nodes["a"].max_visits, graph.nodes["b"].max_visits) == (3, 5)
    assert (graph.nodes["done"].exit_outcome, graph.nodes["lost"].exit_outcome) == (
        NodeOutcome.SUCCESS,
        NodeOutcome.FAILURE,
    )
    assert [(edge.target, edge.weight, edge.label) for edge in graph.edges_from("choice")] == [
        ("done", 2, "yes"),
        ("b", -1, ""),
    ]
    assert graph.handlers == {"work", "rest"}


def test_blocks_inherit_the_defaults_around_them() -> None:
    graph = load(
        "subgraph o { node [type=work]; subgraph cluster_x { node [max_visits=2]; a; b [type=rest]; a -> b }"
        " start -> a; b -> done }"
    )

    assert (graph.nodes["a"].handler, graph.nodes["b"].handler) == ("work", "rest")
    assert graph.nodes["a"].max_visits == 2


def test_the_default_heartbeat_is_a_pipeline() -> None:
    names = set(re.findall(r'type="(\w+)"', heartbeat_text()))

    graph = load_graph(heartbeat_text(), handlers=names)

    assert graph.handlers == names
    assert graph.nodes["failed"].exit_outcome is NodeOutcome.FAILURE


def test_the_same_text_is_parsed_once() -> None:
    assert load("a [type=work]; start -> a -> done") is load("a [type=work]; start -> a -> done")


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("a [type=work]; start -> a; a -> done; x [shape=Mdiamond]; x -> done", "exactly one start"),
        ("start -> a -> done; a [type=dream]", "no handler is called 'dream'; known: rest, work"),
        ("start -> a -> done; a [label=x]", "a step names its handler"),
        ("start -> ghost; start -> done", "edge start -> ghost: node ghost is not declared"),
        ("start -> done; ghost -> done", "edge ghost -> done: node ghost is not declared"),
        ("start -> done; a [type=work]; a -> done", "node a: no way leads to it from the start"),
        ("start -> done; start -> a; a [type=work]", "node a: no way leads from it to an exit"),
        (
            "start -> done; start -> a; a [type=work]; b [type=work]; a -> b -> a",
            "node b: no way leads from it",
        ),
        (
            'start -> done [condition="outcome = = x"]',
            "edge start -> done: 'outcome = = x' is not a comparison",
        ),
        ("start -> done [weight=heavy]", "edge start -> done: weight must be a whole number, got 'heavy'"),
        ("start -> done [weight=99999999999]", "weight must be a whole number"),
        (
            "start -> a -> done; a [type=work, max_visits=0]",
            "node a: max_visits must be a whole number from 1",
        ),
        ("start -> a -> done; a [type=work, retry_target=b]", "node a: its retry target b is not declared"),
        ("start -> done; done -> start", "nothing leaves an exit"),
        ("start -> done; done -> start", "nothing leads back to the start"),
        ("start -> b -> done; b [shape=diamond, type=work]", "node b: only a step has a type"),
        ("start -> b -> done; b [shape=diamond, retry_target=b]", "only a step can fail"),
        ("start -> a -> done; a [type=work]; a [weight=1]", "node a: declared twice"),
        ("start -> {done}", "an edge joins two named nodes"),
        (
            "start -> lost; start -> done; lost [shape=Msquare, outcome=retry]",
            "outcome must be success or failure",
        ),
    ],
)
def test_a_broken_rule_is_named(body: str, fault: str) -> None:
    assert any(fault in line for line in faults_of(f"{HEAD}{body} }}"))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "line 1, column 1"),
        ("nonsense", "line 1, column 1"),
        ("digraph { a -> ", "line 1"),
        ("digraph g {} trailing", "column 14"),
        ("digraph g {}", "the graph has no nodes"),
        ("digraph g { a -> b }", "has no nodes; declare each node, as `a [shape=Mdiamond]`"),
        ("digraph a {} digraph b {}", "exactly one digraph, got 2"),
        ("graph g { a -- b }", "undirected"),
        ("digraph g { a [type=work] }", "exactly one start (shape=Mdiamond), found none"),
        ("digraph g { a [shape=Mdiamond] }", "at least one exit"),
        ("digraph g { /*" + "x" * 17_000 + "*/ }", "at most 16,384 characters"),
        ("digraph g {" + "subgraph s {" * 1_000 + "}" * 1_001, "nested too deeply"),
    ],
)
def test_a_text_that_is_no_digraph_is_refused_with_the_place(text: str, fault: str) -> None:
    assert any(fault in line for line in faults_of(text))


def test_every_fault_is_listed_at_once() -> None:
    faults = faults_of(
        f'{HEAD} start -> a -> ghost; a [type=dream]; start -> done [condition="x", weight=y] }}'
    )

    assert len(faults) == 5


def test_an_invalid_text_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    faults_of("digraph { a -> ")

    assert capsys.readouterr() == ("", "")


@settings(max_examples=60)
@given(st.text(alphabet='digraph{}[]->;="ab \n\\', max_size=40))
def test_random_text_is_refused_as_a_pipeline(text: str) -> None:
    with pytest.raises(PipelineInvalid):
        load_graph(text, handlers=HANDLERS)


@pytest.mark.bar
def test_nested_braces_are_read_in_time_that_grows_with_their_number() -> None:
    text = "digraph g {" + "{" * 20 + "b" + "}" * 20 + "}"
    started_at = time.process_time()
    with pytest.raises(PipelineInvalid):
        load_graph(text, handlers=HANDLERS)
    # If the time doubled with each level, 20 levels would take an hour.
    assert time.process_time() - started_at < 5


#: Pieces that a person may insert into a graph, by accident or on purpose.
_PIECES = [
    "{",
    "}",
    "[",
    "]",
    "->",
    ";",
    '"',
    "\\",
    "/*",
    "=",
    ",",
    "subgraph x {",
    "a -> ",
    "start",
    "done",
    "\0",
    "é",
    "<b>",
]
_TOKENS = re.findall(
    r"\s+|\w+|->|.",
    f'{HEAD} a [type=work, max_visits=3, label="x"]; {{ b [type=rest] }} start -> a -> b -> done;'
    ' a -> done [condition="outcome=failure", weight=2] }',
)


@given(st.data())
def test_a_changed_graph_is_loaded_or_refused(data: st.DataObject) -> None:
    tokens = list(_TOKENS)
    for _ in range(data.draw(st.integers(0, 4), label="changes")):
        place = data.draw(st.integers(0, len(tokens) - 1), label="place")
        change = data.draw(st.sampled_from(["drop", "double", "swap", "insert"]), label="change")
        if change == "drop":
            del tokens[place]
        elif change == "double":
            tokens[place:place] = tokens[place : place + data.draw(st.integers(1, 6), label="length")]
        elif change == "swap":
            other = data.draw(st.integers(0, len(tokens) - 1), label="other")
            tokens[place], tokens[other] = tokens[other], tokens[place]
        else:
            tokens.insert(place, data.draw(st.sampled_from(_PIECES), label="piece"))
    try:
        graph = load_graph("".join(tokens), handlers=HANDLERS)
    except PipelineInvalid:
        return
    assert graph.handlers <= HANDLERS
    ends = {end for edges in graph.edges.values() for edge in edges for end in (edge.source, edge.target)}
    assert ends <= set(graph.nodes)
    assert graph.nodes[graph.start].kind is PipelineNodeKind.START


@pytest.mark.parametrize("statement", ["a;", '"', "{}"])
def test_a_text_of_countless_statements_is_refused(statement: str) -> None:
    (fault,) = faults_of(f"digraph g {{ {statement * (16_000 // len(statement))} }}")

    assert fault.endswith("a pipeline has at most 2,000 statements")


def test_many_threads_can_load_at_the_same_time() -> None:
    texts = [f"{HEAD} a{i} [type=work]; start -> a{i} -> done }}" for i in range(8)]
    loaded: list[Graph] = []

    threads = [
        threading.Thread(target=lambda t=text: loaded.append(load_graph(t, handlers=HANDLERS)))
        for text in texts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {next(name for name in graph.nodes if name.startswith("a")) for graph in loaded} == {
        f"a{i}" for i in range(8)
    }
