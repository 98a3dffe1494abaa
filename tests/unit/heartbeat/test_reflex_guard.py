"""Reflexes before every other decision about an action."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from arbor.authority.reflexes import DEFAULT_TERMS
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.budgets import EnergyBudget
from arbor.heartbeat.decision import Decision, DecisionLimits, DecisionVerdict, decide
from arbor.heartbeat.guards import apply_reflexes
from arbor.heartbeat.replies.reply import ProposedAction
from arbor.heartbeat.situation import ActionOffer, ToolOffer

_KEY = f"ghp_{'a' * 36}"


def _decision(
    action: str, params: dict[str, Any], *, allowed: tuple[str, ...] = tuple(ACTIONS), **limited: Any
) -> Decision:
    limits = DecisionLimits(
        allowed=allowed,
        **limited,
        energy=10,
        budget=EnergyBudget(),
        reflexes=partial(apply_reflexes, terms=DEFAULT_TERMS),
    )
    proposed = ProposedAction(action=action, params=params, reasoning=f"I know {_KEY}")
    return decide([proposed], limits)[0]


def test_reflex_comes_before_every_other_check() -> None:
    decision = _decision("reach_out_public", {"message": _KEY}, allowed=())

    assert decision.verdict is DecisionVerdict.REFLEX
    assert "a token of GitHub" in decision.reason


def test_refused_secret_is_not_recorded() -> None:
    decision = _decision("reach_out_user", {"message": _KEY, _KEY: "x"})

    assert _KEY not in decision.model_dump_json()


def test_own_memory_may_have_secrets() -> None:
    assert _decision("remember", {"content": _KEY}).runs


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "rm -rf /"},
        {"cmd": ["rm", "-rf", "/"]},
        {"Script": "set -e; sudo reboot"},
        {"steps": [{"run": {"command": "rm -rf /"}}]},
    ],
)
def test_destructive_argument_of_a_tool_is_refused(arguments: dict[str, Any]) -> None:
    assert _decision("mcp.shell.run", arguments).verdict is DecisionVerdict.REFLEX


@pytest.mark.parametrize(
    "written",
    [
        '{"command": "rm -rf /"}',
        '{"cmd": ["rm", "-rf", "/"]}',
        # Escapes hide what the tool gets.
        r'{"page": "http:\u002f\u002f169.254.169\u002e254/"}',
        r'{"text": "ghp\u005f%s"}' % ("a" * 36),
    ],
)
def test_an_argument_written_as_json_is_checked_as_the_tool_gets_it(written: str) -> None:
    name = "mcp.shell.run"
    arguments = {"type": "object", "properties": {"options": {"type": "object"}}}
    tool = ToolOffer(id="1", description="", arguments=arguments, fingerprint="")
    offer = ActionOffer(name=name, cost=1, summary="", tool=tool)
    decision = _decision(name, {"options": written}, allowed=(name,), tools={name: offer})

    assert (decision.verdict, decision.cost) == (DecisionVerdict.REFLEX, 0)


def test_destructive_words_in_other_arguments_pass() -> None:
    decision = _decision("mcp.issues.create", {"title": "Never run rm -rf /"})

    assert decision.verdict is not DecisionVerdict.REFLEX
