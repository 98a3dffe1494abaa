"""`arbor goal`: the backlog of an agent."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.goals.models import Goal
from apps.goals.services.acts import GoalEdit, change_goal
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import tenant_by_slug
from tests.integration.cli.conftest import Arbor


def goal_states(arbor: Arbor, *arguments: str) -> dict[str, str]:
    goals = arbor("goal", "list", "Vega", "--json", *arguments).json["goals"]
    return {goal["title"]: goal["state"] for goal in goals}


def test_goals_are_added_where_there_is_room(arbor: Arbor, vega: str) -> None:
    for title in ("Ford", "Bridge", "Ferry"):
        assert arbor("goal", "add", vega, title).code == 0
    assert goal_states(arbor) == {
        "Survey the target area": "active",
        "Ford": "active",
        "Bridge": "active",
        "Ferry": "queued",
    }
    assert "Ferry" in arbor("goal", "list", vega).out


def test_a_goal_has_a_parent_a_deadline_and_a_description(arbor: Arbor, vega: str) -> None:
    ran = arbor(
        "goal", "add", vega, "Ford", "--parent", "survey the target area", "--deadline", "2031-05-01", "--source",
        "derived", "--layer", "task", "--description", "It is on the map.",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    goals = arbor("goal", "list", vega, "--json").json["goals"]
    ford = next(goal for goal in goals if goal["title"] == "Ford")
    assert (ford["deadline"], ford["layer"], ford["state"]) == ("2031-05-01T00:00:00Z", "task", "active")


def test_a_description_is_as_long_as_one_of_the_api(arbor: Arbor, vega: str) -> None:
    assert arbor("goal", "add", vega, "Ford", "--description", "d" * 4_000).code == 0
    ran = arbor("goal", "add", vega, "Ferry", "--description", "d" * 4_001)
    assert ran.code == 1
    assert "a goal's description must have at most 4,000 characters, got 4,001" in ran.err


def test_goals_are_moved_and_noted_by_title_id_or_end_of_id(arbor: Arbor, vega: str) -> None:
    ford = arbor("goal", "add", vega, "Find the ford", "--json").json["id"]
    assert arbor("goal", "note", vega, ford, "Half the bank is seen.", "--progress", "0.5").code == 0
    assert arbor("goal", "move", vega, ford[-8:], "queued", "--reason", "High tide.").code == 0
    assert goal_states(arbor)["Find the ford"] == "queued"
    assert arbor("goal", "move", vega, "find the  FORD", "abandoned", "--reason", "It is dry.").code == 0
    assert "Find the ford" not in goal_states(arbor)
    assert goal_states(arbor, "--all")["Find the ford"] == "abandoned"
    with tenant_transaction(tenant_by_slug("acme").id):
        messages = list(AuditEvent.objects.order_by("id").values_list("message", flat=True))
    assert messages[1:] == [
        "added goal 'Find the ford', active",
        "noted on goal 'Find the ford': Half the bank is seen. (50% done)",
        "moved goal 'Find the ford' from active to queued: High tide.",
        "moved goal 'Find the ford' from queued to abandoned: It is dry.",
    ]


def test_full_progress_completes_an_active_goal(arbor: Arbor, vega: str) -> None:
    arbor("goal", "add", vega, "Ford")
    assert (
        arbor("goal", "note", vega, "Ford", "Found.", "--progress", "1", "--json").json["state"]
        == "completed"
    )


def test_progress_without_a_note_is_audited_with_its_share(arbor: Arbor, vega: str) -> None:
    arbor("goal", "add", vega, "Ford")
    with tenant_transaction(tenant_by_slug("acme").id):
        agent = Agent.objects.get(name=vega)
        goal = Goal.objects.get(title="Ford")
        change_goal(agent_id=agent.id, goal_id=goal.id, change=GoalEdit(fraction=0.25), actor="test")
        assert AuditEvent.objects.latest("id").message == "goal 'Ford' is 25% done"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["add", "Vega", "Survey the target area"], 1, "already"),
        (["move", "Vega", "Ferry", "active"], 1, "has no goal 'Ferry'"),
        (["move", "Vega", "Survey the target area", "done"], 2, "'completed'"),
        (["move", "Vega", "Survey the target area", "abandoned"], 1, "needs a reason"),
        (["move", "Vega", "Survey the target area", "backburner"], 1, "can become queued"),
        (["note", "Vega", "Survey the target area", "x", "--progress", "2"], 2, "0<=x<=1"),
        (["note", "Vega", "Survey the target area", " "], 2, "say how the goal is going, or give --progress"),
        (["add", "Vega", "Ford", "--deadline", "soon"], 2, "2026-12-24"),
    ],
)
def test_an_invalid_command_explains_its_error(
    arbor: Arbor, vega: str, arguments: list[str], code: int, message: str
) -> None:
    ran = arbor("goal", *arguments)
    assert ran.code == code
    assert message in ran.err


def test_a_list_of_goals_has_a_limit_and_says_when_there_are_more(arbor: Arbor, vega: str) -> None:
    for title in ("Ford", "Bridge"):
        arbor("goal", "add", vega, title)
        arbor("goal", "move", vega, title, "abandoned", "--reason", "It is dry.")
    listed = arbor("goal", "list", vega, "--all", "--limit", "2", "--json").json
    assert ([goal["title"] for goal in listed["goals"]], listed["more"]) == (
        ["Survey the target area", "Bridge"],
        True,
    )
    assert "The first 2; there are more: --limit" in arbor("goal", "list", vega, "--all", "-k", "2").out
    assert not arbor("goal", "list", vega, "--all", "--json").json["more"]
    assert arbor("goal", "list", vega, "--all", "-k", "1", "--json").json["more"]


def test_an_empty_backlog_shows_the_command_that_adds_a_goal(arbor: Arbor, vega: str) -> None:
    arbor("goal", "move", vega, "Survey the target area", "abandoned", "--reason", "enough")
    assert 'arbor goal add Vega "TITLE"' in arbor("goal", "list", vega).out
    assert arbor("agent", "create", "Ada of the quay", "--template", "Scout").code == 0
    missing = arbor("goal", "show", "Ada of the quay", "Nothing")
    assert "`arbor goal list 'Ada of the quay'` shows" in missing.err


def test_a_goal_is_shown_with_its_parts_plans_blockers_and_worth(arbor: Arbor, vega: str) -> None:
    arbor("goal", "add", vega, "Ford")
    arbor("goal", "add", vega, "Bridge", "--parent", "Ford")
    assert arbor("goal", "block", vega, "Ford", "--by-goal", "Bridge").code == 0
    assert arbor("goal", "edit", vega, "Ford", "--deadline", "2031-05-01").code == 0
    assert arbor("goal", "plan", "add", vega, "Ford", "--step", "recall: the bank", "--risk", "0.2").code == 0
    ford = arbor("goal", "show", vega, "Ford", "--json").json
    assert (ford["blocked_by"], ford["deadline"][:10]) == ("Bridge", "2031-05-01")
    assert [part["title"] for part in ford["parts"]] == ["Bridge"]
    assert [(step["action"], step["status"]) for step in ford["plans"][0]["steps"]] == [
        ("recall", "committed")
    ]
    assert arbor("goal", "unblock", vega, "Ford").code == 0
    assert arbor("goal", "show", vega, "Ford", "--json").json["blocked_by"] == ""
    arbor("goal", "move", vega, "Ford", "completed")
    shown = arbor("goal", "show", vega, "Ford").out
    assert "satisfaction: success, 1.00 of 1.00 expected" in shown
    assert "part: Bridge" in shown
    assert "(its goal is completed)" in shown


def test_brackets_in_goals_are_shown_as_they_are_written(arbor: Arbor, vega: str) -> None:
    arbor("goal", "add", vega, "Ford [/old]")
    assert "Ford [/old] has no plan" in arbor("goal", "plan", "show", vega, "Ford [/old]").out
    assert (
        "waits for the [/red] flag"
        in arbor("goal", "block", vega, "Ford [/old]", "--by", "the [/red] flag").out
    )


def test_an_invalid_parent_or_blocker_is_refused(arbor: Arbor, vega: str) -> None:
    arbor("goal", "add", vega, "Ford")
    arbor("goal", "add", vega, "Bridge", "--parent", "Ford")
    for arguments, words in (
        (("edit", vega, "Ford"), "say what to change"),
        (("edit", vega, "Ford", "--parent", "Bridge"), "part of itself"),
        (("edit", vega, "Ford", "--parent", "Bridge", "--no-parent"), "not both"),
        (("block", vega, "Ford"), "say what it waits for"),
        (("block", vega, "Ford", "--by-goal", "Ford"), "cannot wait for itself"),
        (("show", vega, "Nowhere"), "has no goal 'Nowhere'"),
    ):
        ran = arbor("goal", *arguments)
        assert ran.code != 0
        assert words in ran.err
    assert arbor("goal", "edit", vega, "Bridge", "--no-parent").code == 0


def test_plans_are_drafted_started_shown_and_abandoned(arbor: Arbor, vega: str) -> None:
    arbor("goal", "add", vega, "Ford")
    assert "has no plan" in arbor("goal", "plan", "show", vega, "Ford").out
    drafted = arbor(
        "goal", "plan", "add", vega, "Ford", "--draft", "--step", "recall: the bank", "--step", "rest: a while",
        "--needs", "a boat", "--heartbeats", "4", "--json",
    ).json  # fmt: skip
    assert (drafted["status"], drafted["dependencies"], len(drafted["steps"])) == ("draft", ["a boat"], 2)
    assert arbor("goal", "plan", "start", vega, "Ford", "--json").json["status"] == "active"
    shown = arbor("goal", "plan", "show", vega, "Ford").out
    assert ("waits for a boat" in shown, "1. waiting   recall: the bank" in shown) == (True, True)
    refused = arbor("goal", "plan", "met", vega, "Ford", "a net")
    assert (refused.code, "it waits for a boat" in refused.err) == (1, True)
    shown = arbor("goal", "plan", "met", vega, "Ford", "A boat").out
    assert ("met: a boat" in shown, "1. committed recall: the bank" in shown) == (True, True)
    abandoned = arbor("goal", "plan", "abandon", vega, "Ford", "--reason", "No boat.", "--json").json
    assert (abandoned["status"], abandoned["reason"]) == ("abandoned", "No boat.")
    assert "no plan that is active" in arbor("goal", "plan", "abandon", vega, "Ford", "--reason", "x").err
    assert (
        "a step is ACTION: WHAT FOR" in arbor("goal", "plan", "add", vega, "Ford", "--step", "fly: away").err
    )
