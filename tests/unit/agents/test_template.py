"""Template files: parsed completely, or refused with all faults and their lines."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.agents.character import to_system_prompt
from arbor.agents.template import (
    CapabilityRequest,
    InitialGoal,
    TemplateSource,
    TemplateSpec,
    TrustTier,
    parse_template,
)
from arbor.errors import TemplateInvalid
from arbor.goals.values import GoalLayer, GoalType
from tests.unit.agents.template_texts import ACTIONS, FULL, MINIMAL, faults_in, with_change


def test_every_part_of_a_file_is_parsed_into_its_field() -> None:
    spec = parse_template(FULL, known_actions=ACTIONS)
    assert (spec.name, spec.version, spec.source) == ("Harbour", "1.2", TemplateSource.USER)
    assert spec.trust_tier is TrustTier.TRUSTED
    assert spec.description == "Tends the harbour's tables."
    assert spec.metadata.handle == "ollama/gemma3"
    assert spec.metadata.model_dump()["written_by"] == "the harbour office"
    assert spec.values == spec.character.values == ("punctuality",)
    assert spec.initial_interests == ("the moon",)
    assert spec.initial_thoughts == ("The tide is out.",)
    assert spec.required_capabilities == (
        CapabilityRequest(
            resource="arbor://fs/read", description="Read the tables.", constraints={"rate_limit": 10}
        ),
    )
    assert spec.genome is not None
    assert spec.genome.role == "LIBRARIAN"
    assert spec.actions == ("recall", "rest")
    assert spec.pipeline == "digraph beat { start -> done }"
    assert spec.heartbeat_interval_s == 900


def test_body_and_relationship_style_become_the_character() -> None:
    character = parse_template(FULL, known_actions=ACTIONS).character
    assert character.name == "Ada"
    assert character.nature == "A tidy mind."
    assert character.background == "Grew up on a lightship."
    assert character.domain_context == "The north harbour."
    assert character.instructions == ("Check the date first.", "Say when a table is old.")
    assert character.relationship_style.conflict == "Shows the table."
    assert "- patient (high)" in to_system_prompt(character)


def test_a_template_survives_the_json_round_trip() -> None:
    for text in (FULL, MINIMAL):
        spec = parse_template(text, known_actions=ACTIONS)
        assert TemplateSpec.model_validate(spec.model_dump(mode="json")) == spec
        assert TemplateSpec.model_validate_json(spec.model_dump_json()) == spec


def test_defaults_of_a_minimal_template_are_restrictive() -> None:
    spec = parse_template(MINIMAL, known_actions=ACTIONS)
    assert spec.trust_tier is TrustTier.UNTRUSTED
    assert spec.source is TemplateSource.USER
    assert spec.metadata.handle == spec.pipeline == ""
    assert spec.heartbeat_interval_s is None
    assert spec.required_capabilities == ()


def test_windows_line_endings_and_byte_order_mark_are_ignored() -> None:
    assert parse_template("\ufeff" + FULL.replace("\n", "\r\n"), known_actions=ACTIONS) == parse_template(
        FULL, known_actions=ACTIONS
    )


def test_a_goal_without_a_title_gets_its_description_as_heading() -> None:
    spec = parse_template(FULL, known_actions=ACTIONS)
    assert [goal.heading for goal in spec.initial_goals] == ["Keep the tables true.", "Learn the estuary"]
    assert [goal.priority for goal in spec.initial_goals] == [80, 50]
    long = InitialGoal(type=GoalType.LEARN, description="word " * 100)
    assert len(long.heading) == 300
    assert long.heading.endswith("…")


def test_only_goals_that_can_be_finished_are_objectives() -> None:
    layers = {kind: InitialGoal(type=kind, description="x").layer for kind in GoalType}
    objectives = {kind for kind, layer in layers.items() if layer is GoalLayer.OBJECTIVE}
    assert objectives == {"achieve", "explore", "learn", "capability"}
    assert {layers[kind] for kind in set(GoalType) - objectives} == {GoalLayer.ASPIRATION}


@pytest.mark.parametrize(("kind", "is_valid"), [("maintain", False), ("achieve", True)])
def test_a_template_has_no_more_goals_of_a_layer_than_a_backlog(kind: str, is_valid: bool) -> None:
    words = ("ale", "bread", "coal", "dyes", "eggs", "flour", "grain", "hemp", "iron", "jute", "kelp")
    goals = "".join(f"  - {{type: {kind}, description: {word}}}\n" for word in words)
    text = with_change("actions:", f"initial_goals:\n{goals}actions:", within=MINIMAL)
    if is_valid:
        assert len(parse_template(text, known_actions=ACTIONS).initial_goals) == len(words)
        return
    with pytest.raises(TemplateInvalid, match="at most 10 goals of the layer aspiration, got 11"):
        parse_template(text, known_actions=ACTIONS)


def test_a_title_of_a_goal_is_one_line() -> None:
    assert (
        InitialGoal(type=GoalType.LEARN, title="Learn\nthe tides", description="x").heading
        == "Learn the tides"
    )


def test_values_of_the_character_are_beside_those_of_the_template() -> None:
    spec = parse_template(
        with_change("  role: harbour clerk", "  role: clerk\n  values: [salt]"), known_actions=ACTIONS
    )
    assert spec.values == ("punctuality",)
    assert spec.character.values == ("salt",)


def test_instructions_may_be_paragraphs_or_a_numbered_list() -> None:
    listed = "## Instructions\n\n1. Look\n   twice.\n2) Speak once.\n"
    paragraphs = "## Instructions\n\nLook\ntwice.\n\nSpeak once.\n"
    for body in (listed, paragraphs):
        spec = parse_template(MINIMAL + body, known_actions=ACTIONS)
        assert spec.character.instructions == ("Look twice.", "Speak once.")


def test_headings_may_have_level_one_any_case_and_subheadings() -> None:
    spec = parse_template(
        MINIMAL + "# DOMAIN context\n\nA.\n\n### B\n\n~~~\n## no heading\n~~~\n", known_actions=ACTIONS
    )
    assert spec.character.domain_context == "A.\n\n### B\n\n~~~\n## no heading\n~~~"


@pytest.mark.parametrize("row", ["# Nature ##", "# Nature", "#  Nature # "])
def test_closing_marks_are_no_part_of_a_heading(row: str) -> None:
    assert parse_template(f"{MINIMAL}{row}\n\nA.\n", known_actions=ACTIONS).character.nature == "A."


@pytest.mark.bar
def test_a_long_row_of_marks_is_read_at_once() -> None:
    begun = time.process_time()
    with pytest.raises(TemplateInvalid, match="unknown section"):
        parse_template(f"{MINIMAL}# {'#' * 16_000}x\n", known_actions=ACTIONS)
    assert time.process_time() - begun < 0.35


@pytest.mark.bar
def test_many_faults_are_listed_in_linear_time() -> None:
    lists = "".join(f"- a{number}\n" for number in range(10_000))
    keys = "".join(f"q{number}: 1\nq{number}: 1\n" for number in range(3_000))
    begun = time.process_time()
    with pytest.raises(TemplateInvalid) as caught:
        parse_template(f"---\nname: Small\nactions:\n{lists}{keys}---\n", known_actions=ACTIONS)
    assert time.process_time() - begun < 10
    assert len(caught.value.faults) == 3_000 + 100 + 3


def test_a_pipeline_may_be_given_in_the_front_matter() -> None:
    spec = parse_template(
        with_change("actions:", "pipeline: |\n  digraph g { a -> b }\nactions:", within=MINIMAL),
        known_actions=ACTIONS,
    )
    assert spec.pipeline == "digraph g { a -> b }\n"


def test_wrapped_paragraphs_are_joined_but_not_lists_or_code() -> None:
    def background(text: str) -> str:
        return parse_template(
            f"{MINIMAL}## Background\n\n{text}\n", known_actions=ACTIONS
        ).character.background

    assert background("One\nline.\n\nAnd\nmore.") == "One line.\n\nAnd more."
    for unchanged in (
        "Few:\n\n- one\n- two",
        "So:\n\n    code\n    more",
        "~~~\na\n\nb\n~~~",
        "1. a\n2. b",
        "a  \nb",
    ):
        assert background(unchanged) == unchanged


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "line 1: the file begins with YAML front matter between two lines of ---; found none"),
        ("# Hello", "line 1: the file begins with YAML front matter between two lines of ---; found none"),
        ("---\nname: x\n", "line 1: the file begins with YAML front matter between two lines of ---; found none"),
        ("---\n---\n", "line 2: the front matter is empty"),
        ("---\n{}\n---\n", "line 2: the front matter is empty"),
        ("---\n- a\n---\n", "line 2: the front matter must be lines of `key: value`, got a list"),
        ("---\na\n---\n", "line 2: the front matter must be lines of `key: value`, got a single value"),
        ("---\nname: [a\nb: c\n---\n", "line 3: the front matter is not valid YAML: "),
        ("---\nname: {a\n---\n", "the front matter is not valid YAML: "),
        ("---\nname: !!python/object:os.system x\n---\n", "line 2: the front matter is not valid YAML: could not"),
        ("---\nname: 2024-13-45\n---\n", "line 2: the front matter is not valid YAML: month must be"),
        (f"---\nname: {'1:' * 200}0.5\n---\n", "line 2: the front matter is not valid YAML: "),
        ("---\nname: !!int ''\n---\n", "line 2: the front matter is not valid YAML: "),
        ("---\nname: !!bool x\n---\n", "line 2: the front matter is not valid YAML: "),
        ("---\nname: !!timestamp x\n---\n", "line 2: the front matter is not valid YAML: "),
        ("---\nname: &a x\n---\n", "line 2: anchors and aliases"),
        ("---\nname: x\nversion: *a\n---\n", "line 3: anchors and aliases"),
        (f"---\nname: {'[' * 2000}{']' * 2000}\n---\n", "line 2: values are nested more than 12 deep"),
        (MINIMAL + "\x00", "contains a NUL character"),
        (MINIMAL + "\ud800", "contains half of a surrogate pair"),
        (MINIMAL + "a" * 200_000, "a template has at most 200,000 characters"),
        (with_change("name: Small\n", "name: Small\x07\n", within=MINIMAL), "the front matter is not valid YAML"),
        (with_change("name: Small\n", 'name: "Sm\\0all"\n', within=MINIMAL), "line 2, name: contains a NUL character"),
        (with_change("name: Small\n", 'name: "Sm\\ud800"\n', within=MINIMAL), "line 2, name: contains half of a surrogate"),
        (with_change("version: \"1\"", "version: 1.0", within=MINIMAL), "line 3, version: must be text, got 1.0; put it in"),
        (with_change("version: \"1\"", "version: 2024-01-02", within=MINIMAL), "line 3, version: is read as a date; put it"),
        (with_change("name: Small\n", "name: Small\nname: Two\n", within=MINIMAL), "line 3, name: is given twice; keep one"),
        (with_change("name: Small\n", "name: Small  # \u2028\x85# \nname: Two\n", within=MINIMAL), "line 3, name: is given twice; keep one"),
        (with_change("name: Small\n", "name: Small  # \u2028# \nversion: 'a", within=MINIMAL), "the front matter is not valid YAML: found unexpected"),
        (with_change("name: Small\n", "name: @\n", within=MINIMAL), "found character '@' that cannot start any token"),
        # The loader in Python, which names the character, would need seconds.
        (with_change("name: Small\n", f"name: [{'a, ' * 5_000}@", within=MINIMAL), "found character that cannot start any token"),
        (with_change("name: Small\n", "", within=MINIMAL), "line 2, name: is required"),
        (with_change("name: Small\n", "name: no way\n", within=MINIMAL), "line 2, name: must be a letter, then up to 63"),
        (with_change("character: {name: Small}\n", "", within=MINIMAL), "line 2, character: is required"),
        (with_change("{name: Small}", "{}", within=MINIMAL), "line 4, character.name: is required"),
        (with_change("{name: Small}", "{name: ' '}", within=MINIMAL), "line 4, character.name: must not be empty"),
        (with_change("{name: Small}", "Small", within=MINIMAL), "line 4, character: must be a valid dictionary"),
        (with_change("actions: [rest]\n", "", within=MINIMAL), "line 2, actions: is required"),
        (with_change("[rest]", "[]", within=MINIMAL), "line 5, actions: must have at least 1 item"),
        (with_change("[rest]", "[rest, fly]", within=MINIMAL), "line 5, actions[1]: unknown action 'fly'; known: recall, "),
        (with_change("[rest]", "[rest, rest]", within=MINIMAL), "line 5, actions[1]: 'rest' is listed twice; keep one"),
        (with_change("[rest]", "[rest]\nmetadata: {provider: opnai, model: x}", within=MINIMAL), "line 6, metadata: a model handle begins with one of "),
        (with_change("[rest]", "[rest]\nskills: [a, a]", within=MINIMAL), "line 6, skills[1]: 'a' is listed twice; keep one"),
        (with_change("[rest]", "rest", within=MINIMAL), "line 5, actions: must be a valid tuple"),
        (with_change("name: Small\n", "nmae: x\nname: Small\n", within=MINIMAL), "line 2, nmae: is not a known key; known: name,"),
        (with_change("name: Small}", "name: Small, rôle: x}", within=MINIMAL), "character.rôle: is not a known key; known: name"),
        (with_change("trust_tier: established", "trust_tier: high"), "line 5, trust_tier: must be one of 'untrusted', "),
        (with_change("intensity: 0.9", "intensity: 1.9"), "line 17, character.traits[0].intensity: must be at most 1, got 1.9"),
        (with_change("intensity: 0.9", "intensity: -1"), "line 17, character.traits[0].intensity: must be at least 0, got -1"),
        (with_change("intensity: 0.9", "intensity: .nan"), "character.traits[0].intensity: must be a finite number"),
        (with_change("priority: 80", "priority: high"), "initial_goals[0].priority: must be a valid integer, got 'high'"),
        (with_change("  - type: maintain\n    desc", "  - desc"), "line 30, initial_goals[0].type: is required"),
        (with_change("    description: Keep the tables true.\n", ""), "line 30, initial_goals[0].description: is required"),
        (with_change("type: maintain", "type: dream"), "line 30, initial_goals[0].type: must be one of 'achieve', "),
        (with_change("title: Learn the estuary", "title: keep the  Tables true."), "initial_goals: goals 0 and 1 have the same"),
        (with_change("title: Learn the estuary", "title: Keep tables true"), "initial_goals: the titles of goals 0 and 1 say the"),
        (with_change("arbor://fs/read/", "arbor://fs/../x"), "required_capabilities[0].resource: 'arbor://fs/../x': a segment"),
        (with_change("resource: arbor://fs/read/\n    desc", "desc"), "required_capabilities[0].resource: is required"),
        (with_change("rate_limit: 10", "from: 2024-01-02"), "required_capabilities[0].constraints.from: is read as a date"),
        (with_change("rate_limit: 10", "rate_limit: .inf"), "constraints.rate_limit: must be a finite number, got inf"),
        (with_change("rate_limit: 10", "1: 10"), "required_capabilities[0].constraints: the key 1 must be text"),
        (with_change("rate_limit: 10", '"a\\0b": 10'), "constraints.a\\x00b: the key contains a NUL character, which"),
        (with_change("rate_limit: 10", '"\\ud800": 10'), "constraints.\\ud800: the key contains half of a surrogate"),
        (with_change("[rest]", '[rest]\nmetadata: {"a\\0b": {c: 1}}', within=MINIMAL), "line 6, metadata.a\\x00b: the key contains"),
        (with_change("  model: gemma3\n", ""), "line 6, metadata: provider and model go together: give both, or neither"),
        (with_change("conflict:", "konflict:"), "line 43, relationship_style.konflict: is not a known key; known: approach"),
        (with_change("role: LIBRARIAN", "role: PIRATE"), "line 46, genome.role: must be one of 'GENERALIST', "),
        (with_change("collaboration: 0.7, ", ""), "line 47, genome.traits.collaboration: is required"),
        (with_change("heartbeat_interval_s: 900", "heartbeat_interval_s: 0"), "heartbeat_interval_s: must be at least 1, got 0"),
        (with_change("heartbeat_interval_s: 900", "heartbeat_interval_s: 2592001"), "must be at most 2592000, got 2592001"),
        (with_change("[rest]", f"[{', '.join(['fly'] * 101)}]", within=MINIMAL).replace("fly", "rest"), "actions: must have at most 100"),
        (with_change("  - punctuality\n", "  - ''\n"), "line 24, values[0]: must not be empty"),
        (with_change("  - the moon\n", "  - x\n" * 11), "initial_interests: must have at most 10 items, got 11"),
        (MINIMAL + "Hello", "line 7: text before the first section; put it under a heading"),
        (MINIMAL + "\n## Bio\n\nx", "line 8, ## Bio: unknown section; the sections are Description, Nature, "),
        (MINIMAL + "## Nature\nx\n## nature\ny", "line 9, ## nature: is given twice; keep one"),
        (MINIMAL + "## Nature\n\n", "line 7, ## Nature: is empty; write it or leave the heading out"),
        (MINIMAL + "## Nature\nx\n```\nopen", "a code block is not closed: ``` is missing"),
        (MINIMAL + "## Nature\n" + "x" * 8001, "line 7, ## Nature: must have at most 8000 characters, got 8001"),
        (MINIMAL + "## Instructions\n- a\n- " + "x" * 8001, "line 7, ## Instructions[1]: must have at most 8000"),
        (MINIMAL + "## Pipeline\ndigraph {}", "line 7, ## Pipeline: must be one block fenced as ```dot, and nothing else"),
        (MINIMAL + "## Pipeline\n```dot\n\n```", "line 7, ## Pipeline: must be one block fenced as ```dot"),
        (MINIMAL + "## Pipeline\n```dot\na\n```\n```dot\nb\n```", "line 7, ## Pipeline: must be one block fenced as ```dot"),
        (MINIMAL + "## Nature\n```dot\na\n```", "line 7, ## Nature: a pipeline's ```dot block belongs under ## Pipeline"),
        (with_change("actions:", "pipeline: a\nactions:"), "## Pipeline: is given here and as pipeline in the front matter"),
        (
            with_change("  tone: dry", "  tone: dry\n  nature: x"),
            "## Nature: is given here and as character.nature in the front matter; keep one",
        ),
        (
            with_change("  tone: dry", "  tone: dry\n  relationship_style: {approach: x}"),
            "relationship_style: is given here and as character.relationship_style in the front matter; keep one",
        ),
    ],
)  # fmt: skip
def test_an_error_is_reported_with_its_line_and_a_correction(text: str, fault: str) -> None:
    faults = faults_in(text)
    assert any(fault in line for line in faults), faults
    assert len(faults) == 1, faults


def test_all_errors_are_reported_together_in_line_order() -> None:
    text = with_change("priority: 80", "priority: 101")
    text = with_change("[recall, rest]", "[recall, swim]", within=text)
    text = with_change('version: "1.2"\n', "", within=text)
    text += "## Hobbies\n\nGulls.\n"
    with pytest.raises(TemplateInvalid) as caught:
        parse_template(text, known_actions=ACTIONS)
    assert str(caught.value) == (
        "template Harbour has 4 faults:\n"
        "  line 2, version: is required\n"
        "  line 31, initial_goals[0].priority: must be at most 100, got 101\n"
        "  line 47, actions[1]: unknown action 'swim'; known: recall, reflect, remember, rest\n"
        "  line 78, ## Hobbies: unknown section; the sections are Description, Nature, Background, Domain Context, "
        "Instructions, Pipeline"
    )


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_invalid_text_raises_only_template_invalid(front: str, body: str) -> None:
    with pytest.raises(TemplateInvalid):
        parse_template(f"---\n{front}\n---\n{body}", known_actions=ACTIONS)
