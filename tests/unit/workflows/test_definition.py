"""Definitions of workflows with their faults, durations and schedules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from arbor.errors import Invalid, PipelineInvalid
from arbor.workflows.definition import read_definition, read_new_definition
from arbor.workflows.durations import format_duration, parse_duration
from arbor.workflows.schedules import next_time
from arbor.workflows.values import WorkflowStepKind

HEAD = "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; "


def faults_of(body: str) -> tuple[str, ...]:
    with pytest.raises(PipelineInvalid) as caught:
        read_new_definition(f"{HEAD}{body} }}")
    return caught.value.faults


def test_a_definition_is_read_with_its_parameters() -> None:
    definition = read_definition(
        HEAD
        + 'draft [type=prompt, prompt="Write about {input.topic}\\nbriefly.", agent=Ada, retries=3, backoff="10s"];'
        'review [type=approval, question="Publish {steps.draft}?", timeout="2d"];'
        "start -> draft -> review -> done }"
    )
    draft, review = definition.steps["draft"], definition.steps["review"]
    assert draft.kind is WorkflowStepKind.PROMPT
    assert draft.text == "Write about {input.topic}\nbriefly."
    assert (draft.agent, draft.retries, draft.waits) == ("Ada", 3, timedelta(hours=1))
    assert [draft.delay_before(attempt).seconds for attempt in (2, 3, 4)] == [10, 20, 40]
    assert review.waits == timedelta(days=2)
    assert (definition.inputs, definition.agents, definition.steps_without_agent()) == (
        ("topic",),
        ("Ada",),
        (),
    )
    assert definition.graph.nodes["draft"].handler == "draft"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("start -> done", "1 to 100 steps, got 0"),
        ("a [type=magic]; start -> a -> done", "no handler is called 'magic'"),
        ("a [type=prompt]; start -> a -> done", "a prompt step has a prompt of 1 to"),
        ("A [type=note, text=x]; start -> A -> done", "lower-case letters"),
        ('a [type=note, text="{steps.b}"]; start -> a -> done', "there is no step 'b'"),
        ("a [type=note, text=x, retries=2]; start -> a -> done", "a note step has no retries; it has text"),
        ("a [type=wait]; start -> a -> done", 'says how long it waits (for="1h")'),
        ("a [type=wait, for=soon]; start -> a -> done", "a duration is like 90s"),
        ("a [type=prompt, prompt=x, retries=99]; start -> a -> done", "retries is a whole number, 0 to 10"),
        ('a [type=delegate, task=x, backoff="1m"]; start -> a -> done', "give retries too, 1 to 10"),
        (
            'a [type=prompt, prompt=x, retries=0, backoff="1m"]; start -> a -> done',
            "give retries too, 1 to 10",
        ),
        (
            "a [type=note, text=x, retires=2]; start -> a -> done",
            "node a: a note step has no attribute 'retires'; it has fallback_retry_target, max_visits, retry_target, text, type,",
        ),
        ("a [type=prompt, prompt=x, outcome=failure]; start -> a -> done", "no attribute 'outcome'"),
        ("a [type=prompt, prompt=x, format=xml]; start -> a -> done", "format is text or json"),
        ("a [type=prompt, prompt=x, model=gpt]; start -> a -> done", "named `provider/model`"),
    ],
)
def test_a_faulty_definition_names_its_fault(body: str, fault: str) -> None:
    assert any(fault in found for found in faults_of(body))


def test_attributes_of_the_engine_and_of_drawing_are_known() -> None:
    body = (
        'a [type=note, text=x, max_visits=2, shape=box, label="A note", URL="/a", fillcolor=red, xlp="1,1"]'
    )
    assert read_new_definition(f"{HEAD}{body}; start -> a -> done }}").steps["a"].text == "x"


def test_a_stored_step_with_an_unknown_attribute_is_still_read() -> None:
    stored = read_definition(HEAD + "a [type=note, text=x, retires=2]; start -> a -> done }")
    assert stored.steps["a"].text == "x"


def test_a_stored_backoff_without_retries_is_still_read() -> None:
    stored = read_definition(HEAD + 'a [type=delegate, task=x, backoff="1m"]; start -> a -> done }')
    assert stored.steps["a"].retries == 0


def test_all_faults_are_named_at_once() -> None:
    assert len(faults_of("a [type=prompt]; b [type=wait]; start -> a -> b -> done")) == 2


@pytest.mark.parametrize("text", ["90s", "30m", "2h", "7d"])
def test_a_duration_is_written_as_it_was_read(text: str) -> None:
    assert format_duration(parse_duration(text)) == text


@pytest.mark.parametrize("text", ["", "0s", "1w", "-5m", "366d", "1.5h"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a duration is like"):
        parse_duration(text)


def test_a_schedule_stays_at_its_hour_when_the_clocks_change() -> None:
    friday = datetime(2026, 3, 27, 12, tzinfo=UTC)
    saturday_at_seven = next_time("0 7 * * *", "Europe/Berlin", friday)
    sunday_at_seven = next_time("0 7 * * *", "Europe/Berlin", saturday_at_seven)
    assert saturday_at_seven == datetime(2026, 3, 28, 6, tzinfo=UTC)
    assert sunday_at_seven == datetime(2026, 3, 29, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "zone", "reason"),
    [
        ("0 7 * * *", "Mars/Base", "there is no time zone"),
        ("0 7 * *", "UTC", "five fields"),
        ("0 0 7 * * *", "UTC", "five fields"),
        ("61 7 * * *", "UTC", "not valid: Bad minute"),
        ("0 0 31 2 *", "UTC", "not valid: Bad day-of-month"),
    ],
)
def test_a_wrong_schedule_is_refused(cron: str, zone: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        next_time(cron, zone, datetime(2026, 1, 1, tzinfo=UTC))
