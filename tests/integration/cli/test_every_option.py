"""Options that no other test uses, tenants that do not exist, and texts that are not UTF-8."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import UUID

import click
import pytest

from tests.factories.workflows import SOURCE
from tests.integration.cli.conftest import Arbor, add_memory
from tests.support.command_tree import commands

#: An argument that a shell passes in Latin-1, as Python reads it.
_LATIN_1 = os.fsdecode(b"caf\xe9")
#: A belief that a memory cannot support and contradict.
_BOTH = ("--supports-belief", "Ice melts.", "--against-belief", "Ice melts.")
_TENANT_COMMANDS = {
    path: command
    for path, command in commands().items()
    if any("--tenant" in param.opts for param in command.params) and path != ("demo",)
}


def _required_arguments(command: click.Command, file: Path) -> list[str]:
    """Return arguments and options that satisfy the parser, without regard to their meaning."""
    arguments: list[str] = []
    for param in command.params:
        if isinstance(param, click.Argument):
            arguments.append(_value_of(param, file))
        elif isinstance(param, click.Option) and param.required:
            arguments += [param.opts[0]] if param.is_flag else [param.opts[0], _value_of(param, file)]
    return arguments


def _value_of(param: click.Parameter, file: Path) -> str:
    if isinstance(param.type, click.Choice):
        return str(param.type.choices[0])
    if isinstance(param.type, click.Path | click.File):
        return str(file)
    if param.type is click.UUID:
        return str(UUID(int=1))
    if isinstance(param.type, click.IntRange):
        return "1"
    return "recall: x" if "--step" in param.opts else "x"


def test_every_command_resolves_its_tenant(
    arbor: Arbor, one_tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # `arbor mcp` sets this variable in its process, which is that of the test.
    monkeypatch.setenv("ARBOR_DB_POOL_SIZE", "0")
    file = tmp_path / "file.txt"
    file.write_text("Ann: Hello.")
    workflow = tmp_path / "workflow.dot"
    workflow.write_text(SOURCE)
    for path, command in _TENANT_COMMANDS.items():
        extra_of: dict[tuple[str, ...], tuple[str, ...]] = {
            ("tenant", "user", "create"): ("--generate", "--password-file", str(tmp_path / "new")),
            ("contact", "hook", "try"): ("--hook", "x"),
            ("contact", "hook", "change"): ("--all-events",),
            ("workflow", "change"): ("--disable",),
        }
        extra = extra_of.get(path, ())
        # A workflow is read before its tenant.
        arguments = _required_arguments(command, workflow if path[0] == "workflow" else file)
        ran = arbor(*path, *arguments, *extra, "--tenant", "nowhere")
        assert (ran.code, "nowhere" in ran.err) == (1, True), (path, ran)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("agent", "policy", "set", "Vega", "--adaptive"), "heartbeats get rarer"),
        (("recall", "Vega", "quince", "--min-importance", "1"), "nothing of that kind"),
        (("memory", "thoughts", "Vega", "-n", "3"), "has not thought"),
        (("memory", "cluster", "list", "Vega", "-k", "3"), "has no cluster yet"),
        (("memory", "concept", "list", "Vega"), "has no concept yet"),
        (("memory", "buffer", "list", "Vega", "-k", "3"), "buffer is empty"),
        (("memory", "mind", "active", "Vega", "-k", "3"), "Nothing is active"),
        (("tenant", "member", "list", "acme", "--json"), "acme"),
        (("memory", "code", "list", "Vega", "-n", "3"), "has no such code"),
        (("memory", "reembed", "--batch", "7", "--no-seed", "--tenant", "acme"), "Every agent's vectors"),
        (("goal", "list", "Vega", "--all"), "goal"),
        (
            (
                *("goal", "add", "Vega", "Row", "--state", "queued", "--blocked-by", "the tide"),
                *("--type", "explore", "--priority", "80"),
            ),
            "is queued",
        ),
        (("self", "belief", "add", "Vega", "Ice melts.", "--stability", "0.9"), "is held"),
        (("self", "identity", "list", "Vega", "--all"), "aspect"),
        (("self", "identity", "add", "Vega", "I am calm.", "--stability", "0.9"), "is held"),
        (("self", "proposal", "add", "Vega", "Ice melts.", "--kind", "insight"), "waits"),
        (("self", "mood", "Vega", "--last", "3"), "Vega feels"),
        (("self", "experiences", "Vega", "--last", "3"), "has no experiences yet"),
        (("inbox", "list", "--limit", "3"), "Nothing here"),
        (("contact", "outbox", "list", "--limit", "3"), "No messages"),
        (("contact", "channel", "add", "all", "--kind", "inbox", "--audience", "user"), "is added"),
        (("tenant", "limit", "acme", "--tokens", "1000"), "tokens 1,000"),
    ],
)
def test_an_option_is_accepted(arbor: Arbor, vega: str, arguments: tuple[str, ...], shown: str) -> None:
    ran = arbor(*arguments)
    assert ran.code == 0, ran.err
    assert shown in ran.out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("agent", "run", "Vega", "--here", "--timeout", "5"), "leave it out, or --here"),
        (("agent", "capability", "grant", "Vega", "recall", "--time-zone", "Europe/Rome"), "without hours"),
        (("chat", "Vega", "--message", "Hello.", "--limit", "3"), "that --history shows"),
        (("contact", "hook", "change", "river"), "--map, --event"),
        (("memory", "add", "Vega", "It held.", "--type", "semantic", *_BOTH), "give one of the options"),
        (("memory", "concept", "list", "Vega", "-k", "3"), "--limit is for --memories"),
        (("ops", "pipeline", "run", "--dry", "--set", "mode=reflection"), "set by --mode"),
        (("ops", "pipeline", "validate", "--tenant", "acme"), "name an AGENT"),
        (
            ("agent", "policy", "set", "Vega", "--cost", "recall=2", "--cost", "recall=3"),
            "two values for recall",
        ),
        (("recall", "Vega", "quince", "--episodes", "-k", "150"), "1 to 100 episodes, asked for 150"),
        (("self", "belief", "filter", "Vega", "Ice melts.", "--clear", "--word", "ice"), "or --clear"),
        (("self", "identity", "revise", "Vega", "I am calm."), "--strength, --stability or --status"),
        (("signals", "--names", "--agent", "Vega"), "leave out the other options"),
        (("signals", "--follow", "--limit", "3"), "leave out --limit"),
        (("tenant", "user", "create", "mia", "--generate", "--role", "owner"), "with --tenant"),
        (("token", "create", "ci", "--tasks-only", "--role", "owner"), "leave out --role"),
        (("up", "--only", "worker", "--port", "9000"), "add web to --only"),
        (("workflow", "change", "report"), "--file, --description"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    arbor: Arbor, vega: str, arguments: tuple[str, ...], reason: str
) -> None:
    belief = arbor("self", "belief", "add", vega, "Ice melts.", "--json").json["id"]
    aspect = arbor("self", "identity", "add", vega, "I am calm.", "--json").json["id"]
    ids = {"Ice melts.": belief, "I am calm.": aspect}
    ran = arbor(*(ids.get(argument, argument) for argument in arguments))
    assert (ran.code in {1, 2}, ran.out) == (True, "")
    assert reason in ran.err


_NO_AGENT, _NO_GOAL = "there is no agent ''", "Vega has no goal ''"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ("agent", "capability", "delegate", "Vega", "ID", "--to", "Lyra", "--resource", ""),
            "name an action",
        ),
        (("approval", "list", "--agent", ""), _NO_AGENT),
        (("audit", "export", "--agent", ""), _NO_AGENT),
        (("contact", "hook", "create", "ops", "--agent", ""), _NO_AGENT),
        (("contact", "hook", "deliveries", ""), "there is no hook ''"),
        (("contact", "webhook", "create", "ops", "--url", "https://example.org/x", "--agent", ""), _NO_AGENT),
        (("goal", "add", "Vega", "Row", "--parent", ""), _NO_GOAL),
        (
            ("goal", "block", "Vega", "Map", "--by", "the tide", "--by-goal", ""),
            "--by TEXT or --by-goal GOAL",
        ),
        (("goal", "edit", "Vega", "Map", "--parent", "", "--no-deadline"), _NO_GOAL),
        (("memory", "graph", "contradictions", "Vega", ""), "nothing with the id ''"),
        (("memory", "reembed", "--agent", ""), _NO_AGENT),
        (("tenant", "user", "create", "mia", "--generate", "--tenant", ""), "there is no tenant ''"),
        (("token", "create", "ci", "--agent", ""), _NO_AGENT),
        (("workflow", "run", "list", "--workflow", ""), "there is no workflow ''"),
    ],
)
def test_an_empty_name_does_not_mean_all(
    arbor: Arbor, vega: str, arguments: tuple[str, ...], reason: str
) -> None:
    arbor("agent", "create", "Lyra", "--template", "Scout")
    arbor("goal", "add", vega, "Map")
    grant = arbor("agent", "capability", "grant", vega, "inquire_deep", "--depth", "1", "--json").json["id"]
    ran = arbor(*(grant if argument == "ID" else argument for argument in arguments))
    assert (ran.code in {1, 2}, ran.out) == (True, ""), ran
    assert reason in ran.err


def test_an_empty_secret_is_refused(arbor: Arbor, vega: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("\n")
    for arguments in (
        ("contact", "hook", "create", "river", "--agent", vega, "--secret-file", str(file)),
        ("provider", "add", "openai", "--url", "https://models.example/v1", "--key-file", str(file)),
        ("provider", "add", "openai", "--url", "https://models.example/v1", "--key-stdin"),
        ("tool", "server", "add", "weather", "--url", "https://tools.example/mcp", "--secret-stdin"),
    ):
        ran = arbor(*arguments, stdin="\n")
        assert (ran.code, "must contain a secret, but is empty" in ran.err) == (1, True), ran


@pytest.mark.parametrize(
    "arguments",
    [
        ("contact", "hook", "deliveries", "river"),
        ("contact", "webhook", "deliveries", "river"),
        ("tool", "list", "--server", "river"),
    ],
)
def test_a_list_names_what_does_not_exist(arbor: Arbor, vega: str, arguments: tuple[str, ...]) -> None:
    ran = arbor(*arguments)
    assert (ran.code, "'river'; `arbor " in ran.err) == (1, True), ran


@pytest.mark.parametrize(
    "arguments", [("agent", "resume", "Vega", "--json"), ("agent", "sleep", "Vega", "--json")]
)
def test_a_refused_act_prints_no_json(arbor: Arbor, vega: str, arguments: tuple[str, ...]) -> None:
    # The agent was never started.
    ran = arbor(*arguments)
    assert (ran.code, ran.out) == (1, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("agent", "tell", "Vega", _LATIN_1),
        ("agent", "identity", "suspend", "Vega", "--reason", _LATIN_1),
        ("audit", "search", _LATIN_1),
        ("recall", "Vega", _LATIN_1),
        ("memory", "code", "list", "Vega", "--about", _LATIN_1),
        ("goal", "add", "Vega", _LATIN_1),
        ("goal", "add", "Vega", "Row", "--description", _LATIN_1),
        ("goal", "add", "Vega", "Row", "--blocked-by", _LATIN_1),
        ("workflow", "create", "review", "FILE", "--description", _LATIN_1),
        ("agent", "show", _LATIN_1),
        ("tenant", "user", "enable", _LATIN_1),
    ],
)
def test_an_argument_that_is_not_utf_8_is_refused(
    arbor: Arbor, vega: str, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    file = tmp_path / "review.dot"
    file.write_text(SOURCE)
    ran = arbor(*(str(file) if argument == "FILE" else argument for argument in arguments))
    assert (ran.code, len(ran.err.splitlines())) == (1, 1), ran


@pytest.mark.parametrize(
    "arguments",
    [
        ("agent", "template", "validate"),
        ("agent", "template", "add"),
        ("skill", "check"),
        ("skill", "add"),
        ("workflow", "check"),
        ("workflow", "create", "review"),
        ("contact", "hook", "try"),
        ("audit", "verify", "--heads"),
    ],
)
def test_a_file_that_is_not_utf_8_is_refused(
    arbor: Arbor, one_tenant: str, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    file = tmp_path / "latin-1.txt"
    file.write_bytes("café".encode("latin-1"))
    ran = arbor(*arguments, str(file))
    assert (ran.code, ran.err) == (1, f"arbor: {file} must be text in UTF-8\n")


def test_a_memory_is_added_with_all_its_parts(arbor: Arbor, vega: str) -> None:
    arbor("self", "belief", "add", vega, "The ferry is safe.")
    (belief,) = (
        row["id"]
        for row in arbor("self", "belief", "list", vega, "--json").json["beliefs"]
        if row["statement"] == "The ferry is safe."
    )
    facts = ("--context", "ice", "--done", "waited", "--result", "late", "--feeling", "worry")
    event = add_memory(arbor, "The ferry stopped.", "episodic", *facts)
    fact = add_memory(arbor, "It held.", "semantic", "--category", "ferry", "--supports-belief", belief)
    lesson = ("--pattern", "ice, then delay", "--evidence", "May", "--applies-to", "spring")
    plan = add_memory(arbor, "Leave early.", "strategic", *lesson)
    detail = arbor("memory", "show", vega, event, "--json").json["detail"]
    assert (detail["context"], detail["action"], detail["result"]) == ("ice", "waited", "late")
    shown = arbor("memory", "show", vega, fact, "--json").json
    assert shown["detail"]["category"] == "ferry"
    assert [row["relation"] for row in shown["relations"]] == ["supports"]
    detail = arbor("memory", "show", vega, plan, "--json").json["detail"]
    assert (detail["pattern"], detail["evidence"]) == ("ice, then delay", ["May"])
    ran = arbor("memory", "restore", vega, event, "--reason", "needed", "--for-good", "--json")
    assert ran.code == 0, ran.err


def test_a_goal_is_blocked_planned_and_loses_its_deadline(arbor: Arbor, vega: str) -> None:
    assert arbor("goal", "add", vega, "Map", "--deadline", "2030-01-01").code == 0
    assert arbor("goal", "block", vega, "Map", "--by", "the tide").code == 0
    steps = ("--step", "recall: what is known", "--cost", "3")
    assert arbor("goal", "plan", "add", vega, "Map", *steps, "--json").json["estimated_cost"] == 3
    assert arbor("goal", "edit", vega, "Map", "--no-deadline").code == 0
    assert arbor("goal", "show", vega, "Map", "--json").json["deadline"] is None


def test_the_self_is_changed_with_every_option(arbor: Arbor, vega: str) -> None:
    belief = arbor("self", "belief", "add", vega, "Ice melts.", "--json").json["id"]
    revised = arbor("self", "belief", "revise", vega, belief, "--stability", "0.9", "--json").json
    assert revised["stability"] == 0.9
    aspect = arbor("self", "identity", "add", vega, "I am calm.", "--json").json["id"]
    assert arbor("self", "identity", "drop", vega, aspect, "--reason", "no longer").code == 0
    options = ("--response", "negotiate", "--type", "ethical", "--description", "No gossip.")
    weights = ("--flexibility", "0.5", "--importance", "0.9", "--pattern", "gossip")
    assert arbor("self", "boundary", "add", vega, "calm", *options, *weights).code == 0
    (row,) = (
        line
        for line in arbor("self", "boundary", "list", vega, "--json").json["boundaries"]
        if line["name"] == "calm"
    )
    assert (row["response"], row["flexibility"], row["importance"]) == ("negotiate", 0.5, 0.9)
    assert row["description"] == "No gossip."
