"""Parameters of actions that services execute: another value of each one changes what is stored."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Model

from apps.agents.models import Agent, Percept
from apps.audit.models import AuditEvent
from apps.contacts.models import Channel, OutboxMessage
from apps.heartbeats.actions import ACTIONS
from apps.heartbeats.actions.context import ActionContext
from apps.memories.models import Cluster, Edge, Memory
from apps.selves.models import Belief, SelfChange
from apps.selves.services.beliefs import add_belief
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, tenant_transaction
from apps.workflows.models import WorkflowRun, WorkflowStep
from arbor.contacts.values import Audience, ChannelKind
from arbor.heartbeat.actions import ACTIONS as SPECS
from arbor.heartbeat.decision import Decision, DecisionVerdict
from arbor.heartbeat.results import ActionOutcome
from arbor.memory.text.narratives import split_narrative
from arbor.selves.values import BeliefCategory, NewBelief
from arbor.workflows.values import WorkflowStepKind
from tests.factories.workflows import WorkflowFactory, WorkflowStepFactory, WorkflowVersionFactory
from tests.integration.heartbeats.actions.conftest import RunReplies, store_cluster, store_medium_fact
from tests.integration.heartbeats.conftest import last_heartbeat
from tests.integration.heartbeats.heartbeat_runner import reply_of
from tests.unit.heartbeat.builders import situation

#: The tables that these actions change, with the columns that differ between two runs of the same action.
TABLES: dict[type[Model], tuple[str, ...]] = {
    Memory: ("revision",),
    Edge: (),
    Belief: (),
    SelfChange: (),
    Cluster: (),
    Channel: (),
    OutboxMessage: (),
    # Encrypted anew each time.
    Percept: ("sealed",),
    WorkflowRun: (),
    WorkflowStep: (),
    AuditEvent: ("id", "position"),
}
_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_TIME = re.compile(r"datetime\.datetime\([^)]*\)|\d{4}-\d\d-\d\dT[\d:.]+(?:\+00:00|Z)")


@dataclass(frozen=True, kw_only=True)
class ServiceCase:
    """An action with its parameters, and another value of each one; words in braces are names of rows."""

    action: str
    params: dict[str, Any]
    changed: dict[str, Any] = field(default_factory=dict)


MESSAGE = {"intent": "news", "content": "The reef is red."}
OTHER_MESSAGE = {"intent": "a warning", "content": "The reef is dead.", "subject": "Reef"}
REVISED = {"verdict": "revise", "reason": "sounded"}
CASES = [
    ServiceCase(
        action="connect",
        params={"from_id": "{fact}", "to_id": "{other}", "relation": "causes"},
        changed={"from_id": "{belief}", "to_id": "{belief}", "relation": "supports"},
    ),
    ServiceCase(
        action="maintain",
        params={"target": "memory", "id": "{fact}", **REVISED, "content": "It is eleven fathoms deep."},
        changed={
            "id": "{other}",
            "verdict": "doubt",
            "content": "It is twelve fathoms deep.",
            "importance": 0.9,
            "reason": "guessed",
        },
    ),
    ServiceCase(
        action="maintain",
        params={"target": "memory", "id": "{fact}", **REVISED, "importance": 0.8},
        changed={"importance": 0.9, "reason": "guessed"},
    ),
    ServiceCase(
        action="maintain",
        params={"target": "belief", "id": "{belief}", **REVISED, "confidence": 0.6},
        changed={"verdict": "doubt", "confidence": 0.7, "reason": "guessed"},
    ),
    ServiceCase(
        action="maintain",
        params={"target": "cluster", "id": "{cluster}", **REVISED, "content": "depths"},
        changed={"verdict": "doubt", "content": "reefs", "reason": "guessed"},
    ),
    ServiceCase(action="reach_out_user", params=MESSAGE, changed=OTHER_MESSAGE),
    ServiceCase(
        action="reach_out_public",
        params={**MESSAGE, "platform": "board"},
        changed={**OTHER_MESSAGE, "platform": "wall"},
    ),
    ServiceCase(
        action="reach_out_agent",
        params={"to": "Lyra", "content": "Hello."},
        changed={"to": "Vega", "content": "Good day."},
    ),
    ServiceCase(
        action="start_workflow",
        params={"workflow": "review", "input": {"topic": "rain"}},
        changed={"workflow": "report", "input": {"topic": "wind"}},
    ),
    ServiceCase(
        action="complete_step",
        params={"step": "{step}", "output": "Done."},
        changed={"step": "{next}", "output": "Done at last.", "failed": True},
    ),
]


@pytest.fixture
def rows(
    agent: Agent, tenant: Tenant, run_replies: RunReplies, new_agent: Callable[..., Agent]
) -> dict[str, str]:
    """Create what the actions name; return the ids by name."""
    run_replies(reply_of())
    for name in ("Lyra", "Vega"):
        new_agent(tenant, name)
    ids = {
        "fact": store_medium_fact(agent, "The reef is ten fathoms deep."),
        "other": store_medium_fact(agent, "The ferry leaves at noon."),
    }
    ids["cluster"] = store_cluster(agent, ids["fact"])
    with tenant_transaction(agent.tenant_id):
        Channel.objects.create(
            tenant_id=agent.tenant_id, name="wall", kind=ChannelKind.INBOX, audience=Audience.PUBLIC
        )
        for name in ("review", "report"):
            WorkflowVersionFactory(workflow=WorkflowFactory(name=name))
        for name in ("step", "next"):
            ids[name] = str(WorkflowStepFactory(agent=agent, kind=WorkflowStepKind.DELEGATE).id)
        belief = NewBelief(statement="Ice melts.", category=BeliefCategory.WORLD)
        ids["belief"] = str(add_belief(agent_id=agent.id, belief=belief, actor="test").id)
    return ids


def stored_rows() -> str:
    """Return all rows of the tables in words."""
    return str(
        [
            [
                {name: value for name, value in row.items() if name not in varying}
                for row in model._default_manager.order_by("pk").values()
            ]
            for model, varying in TABLES.items()
        ]
    )


def effect_of(agent: Agent, rows: dict[str, str], action: str, params: dict[str, Any]) -> str:
    """Return what is stored after an action, which is undone; ids and times that it created are left out."""
    named = {
        name: value.format(**rows) if isinstance(value, str) else value for name, value in params.items()
    }
    checked = SPECS[action].params.model_validate(named)
    with tenant_transaction(agent.tenant_id):
        known = {*_ID.findall(stored_rows()), *rows.values()}
        context = ActionContext(
            agent_id=agent.id,
            heartbeat_id=last_heartbeat(agent).id,
            now=datetime.now(UTC),
            situation=situation(agent_id=str(agent.id), public_id=agent.public_id),
            vectors={},
            model=None,
        )
        decision = Decision(
            index=0, action=action, params=checked.model_dump(mode="json"), verdict=DecisionVerdict.RUN
        )
        with transaction.atomic(using=APP):
            result = ACTIONS[action](context, decision)
            assert result.outcome is ActionOutcome.SUCCESS, result.summary
            # Clusters have no keywords from the phrases of results.
            assert split_narrative(f"I {result.summary}.").actions, result.summary
            words = stored_rows()
            transaction.set_rollback(True, using=APP)
    return _TIME.sub("", _ID.sub(lambda found: found[0] if found[0] in known else "new", words))


def test_the_table_names_every_action_of_a_service() -> None:
    silent = {"observe", "review_goals"}
    assert {case.action for case in CASES} | silent == set(ACTIONS)
    assert all(not SPECS[name].params.model_fields for name in silent)
    for action in ACTIONS:
        named = {name for case in CASES if case.action == action for name in case.changed}
        assert named | {"target"} >= {*SPECS[action].params.model_fields}, action


def test_another_value_of_a_parameter_is_stored(agent: Agent, rows: dict[str, str]) -> None:
    for case in CASES:
        usual = effect_of(agent, rows, case.action, case.params)
        assert effect_of(agent, rows, case.action, case.params) == usual, case
        for name, value in case.changed.items():
            params = {**case.params, name: value}
            if value == "doubt":
                params = {key: params[key] for key in params if key not in ("content", "confidence")}
            assert effect_of(agent, rows, case.action, params) != usual, (case, name)
