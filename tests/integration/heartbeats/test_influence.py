"""The past in prompts: from what happened to the prompt of the next heartbeat whose work is like it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from apps.agents.models import Agent
from apps.authority.models import ActionApproval
from apps.authority.services.approvals import approve, deny
from apps.authority.services.grants import grant_capability
from apps.authority.services.modes import set_mode
from apps.contacts.models import OutboxMessage
from apps.fleet.contact import answer_message, message_agent
from apps.goals.models import Goal
from apps.goals.services.goals import create_goal, move_goal
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.workflows.models import WorkflowRun
from arbor.authority.grants import action_resource
from arbor.authority.modes import TrustMode
from arbor.goals.values import GoalState
from tests.factories.authority import allow_also
from tests.factories.goals import IntentFactory
from tests.factories.selves import ExperienceFactory
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import (
    HeartbeatRunner,
    Script,
    action_of,
    reply_of,
    store_memory,
)
from tests.integration.workflows.workflow_setup import (
    current_steps,
    define_workflow,
    start_new_workflow,
    start_workflow,
)
from tests.support.rows import reload

PERSON = "user:nora"
ATTEMPTS = "## Earlier attempts at tasks like this"
TALLIES = "## What succeeded in situations like this"
PRECEDENTS = "## What people decided about requests like yours"
PUBLICATIONS = "## What became of what you wrote"
HANDLERS = "## Who handled work like this"


@pytest.fixture
def send_message(agent: Agent) -> Callable[[str], None]:
    """Return a function that sends a person's message to the agent."""

    def send(text: str) -> None:
        with tenant_transaction(agent.tenant_id):
            message_agent(agent_id=agent.id, text=text, actor=PERSON)

    return send


def section_of(prompt: str, heading: str) -> str:
    """Return a section of a prompt; empty if the prompt has none with this heading."""
    _, found, rest = prompt.partition(heading)
    return rest.split("\n## ")[0] if found else ""


def test_a_new_task_brings_the_attempt_that_failed(
    agent: Agent, heartbeats: HeartbeatRunner, send_message: Callable[[str], None]
) -> None:
    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id).update(effort=3)
        failed = create_goal(agent_id=agent.id, title="Chart the north reef by boat")
        IntentFactory(
            agent=agent, goal=failed, description="Hire a boat", status="failed", last_error="no boat is free"
        )
        move_goal(goal_id=failed.id, to=GoalState.ABANDONED, reason="the sea was too rough")
    assert ATTEMPTS not in heartbeats.run(reply_of())

    send_message("Please chart the south reef with the boat.")
    shown = section_of(heartbeats.run(reply_of()), ATTEMPTS)
    assert "Chart the north reef by boat: given up: the sea was too rough" in shown
    assert "no boat is free" in shown

    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id, state=GoalState.ACTIVE).update(state=GoalState.BACKBURNER)
        new = create_goal(agent_id=agent.id, title="Chart the east reef by boat")
        move_goal(goal_id=new.id, to=GoalState.ACTIVE)
    assert "the sea was too rough" in section_of(heartbeats.run(reply_of()), ATTEMPTS)


def test_actions_that_worked_in_like_situations_are_counted(
    agent: Agent, heartbeats: HeartbeatRunner, send_message: Callable[[str], None]
) -> None:
    with tenant_transaction(agent.tenant_id):
        store_memory(agent, "The harbour light is broken since Monday.")
    heartbeats.run(reply_of(actions=[action_of("recall", query="the harbour light")]), reply_of())
    with tenant_transaction(agent.tenant_id):
        for about, lesson, heartbeat_number in (
            ("the tide", "Avoid tides.", 9),
            ("harbour light", "Ask the keeper.", 2),
        ):
            ExperienceFactory(
                agent=agent, action="observe", about=about, lesson=lesson, heartbeat_number=heartbeat_number
            )

    send_message("Is the harbour light repaired?")
    prompt = heartbeats.run(reply_of())
    assert "observe (0 of 1), recall (1 of 1)" in section_of(prompt, TALLIES)
    lessons = section_of(prompt, "## What you have learned from acting")
    assert 0 < lessons.index("Ask the keeper.") < lessons.index("Avoid tides.")

    send_message("Good morning to you!")
    assert TALLIES not in heartbeats.run(reply_of())


def test_decisions_of_people_reach_the_next_request(
    agent: Agent, heartbeats: HeartbeatRunner, send_message: Callable[[str], None]
) -> None:
    with tenant_transaction(agent.tenant_id):
        set_mode(agent_id=agent.id, prefix=action_resource("remember"), mode=TrustMode.ASK, actor=PERSON)
    for text, decide, reason in (
        ("The reef is two fathoms deep.", approve, "measured twice"),
        ("The reef is full of gold.", deny, "hearsay"),
    ):
        heartbeats.run(reply_of(actions=[action_of("remember", content=text)]))
        with tenant_transaction(agent.tenant_id):
            request = ActionApproval.objects.get(agent_id=agent.id, about=text)
            decide(approval_id=request.id, actor=PERSON, reason=reason)
    heartbeats.run(reply_of())

    send_message("Remember: the reef is three fathoms deep.")
    prompt = heartbeats.run(reply_of())
    shown = section_of(prompt, PRECEDENTS)
    assert "remember “The reef is two fathoms deep.”: approved: measured twice" in shown
    # A denial that still counts is among the requests, and listed once.
    assert prompt.count("hearsay") == 1
    send_message("Good morning to you!")
    assert PRECEDENTS not in heartbeats.run(reply_of())


def intend_to_write(agent: Agent) -> None:
    """Commit the agent to write to a user, for its active goal."""
    goal = Goal.objects.filter(agent_id=agent.id, state=GoalState.ACTIVE).first()
    about = "Write to them of the post on the reef"
    IntentFactory(agent=agent, goal=goal, action="reach_out_user", description=about)


def test_answers_to_earlier_texts_reach_the_next_one(
    agent: Agent, heartbeats: HeartbeatRunner, fleet: Fleet
) -> None:
    with tenant_transaction(agent.tenant_id):
        allow_also(agent, "reach_out_user")
        set_mode(
            agent_id=agent.id, prefix=action_resource("reach_out_user"), mode=TrustMode.ALLOW, actor=PERSON
        )
    write = action_of("reach_out_user", content="The reef is charted.", intent="they asked")
    assert PUBLICATIONS not in heartbeats.run(reply_of(actions=[write]))
    with tenant_transaction(agent.tenant_id):
        message = OutboxMessage.objects.get(agent_id=agent.id)
        answer_message(message_id=message.id, text="Shorter, and with a map, please.", actor=PERSON)
        message.refresh_from_db()
        assert (message.answers, message.last_answer) == (1, "Shorter, and with a map, please.")
        intend_to_write(agent)

    shown = section_of(heartbeats.run(reply_of()), PUBLICATIONS)
    assert "“The reef is charted.”: answered once, at last: Shorter, and with a map, please." in shown


def test_agents_that_did_a_like_step_are_named_with_their_results(
    tenant: Tenant,
    agent: Agent,
    new_agent: Callable[..., Agent],
    fleet: Fleet,
    scripted: Script,
    heartbeats: HeartbeatRunner,
    send_message: Callable[[str], None],
) -> None:
    """From the answers of another agent's heartbeats to the prompt of the agent that gives work away."""
    with tenant_transaction(tenant.id):
        grant_capability(agent_id=agent.id, resource="arbor://workflows/execute/*", actor=PERSON)
    handler = new_agent(tenant, name="Bert")
    workflow = define_workflow(
        tenant, 'a [type=delegate, task="Draw the map of {input.topic}"]; start -> a -> done', agent=handler
    )
    send_message("Have somebody draw a map of the south reef.")
    assert HANDLERS not in heartbeats.run(reply_of())
    for topic, output, failed, shown in (
        ("the reef", "It is drawn.", False, "Bert: completed 1 of 1 step, 1 try each"),
        ("the sea", "The ink is gone.", True, "Bert: completed 1 of 2 steps, 1 try each"),
    ):
        run = start_workflow(workflow, topic=topic)
        fleet.run()
        answer_step(HeartbeatRunner(fleet, handler, scripted), run, output=output, failed=failed)
        send_message("Have somebody draw a map of the east reef.")
        named = section_of(heartbeats.run(reply_of()), HANDLERS)
        assert shown in named
        assert ("The ink is gone." in named) is failed


def test_results_that_a_workflow_measured_reach_the_next_text(
    tenant: Tenant, agent: Agent, fleet: Fleet, heartbeats: HeartbeatRunner
) -> None:
    with tenant_transaction(tenant.id):
        allow_also(agent, "reach_out_user")
        intend_to_write(agent)
    run = start_new_workflow(
        tenant,
        'views [type=delegate, task="Count the views of the post on the reef"]; start -> views -> done',
        agent=agent,
    )
    fleet.run()
    assert PUBLICATIONS not in answer_step(heartbeats, run, output="90 views, most on Monday")
    assert "90 views, most on Monday" in section_of(heartbeats.run(reply_of()), PUBLICATIONS)


def answer_step(heartbeats: HeartbeatRunner, run: WorkflowRun, *, output: str, failed: bool = False) -> str:
    """Let a heartbeat answer the run's waiting step; return its prompt."""
    (step,) = current_steps(run)
    action = action_of("complete_step", step=str(step.id), output=output, failed=failed)
    prompt = heartbeats.run(reply_of(actions=[action]))
    assert reload(run).status == ("failed" if failed else "succeeded")
    return prompt
