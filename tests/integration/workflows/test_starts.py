"""Starts of workflows, their inputs, and definitions that no run could execute."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.agents.models import Agent
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.workflows.models import Workflow
from apps.workflows.services.definitions import find_workflow
from apps.workflows.services.runs import RunRequest, start_run
from arbor.errors import Invalid
from arbor.workflows.values import WorkflowTrigger
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.workflows.workflow_setup import (
    define_workflow,
    outputs_of,
    start_workflow,
)


def test_a_start_by_the_same_key_returns_the_same_run(tenant: Tenant, agent: Agent, fleet: Fleet) -> None:
    workflow = define_workflow(tenant, 'a [type=note, text="x"]; start -> a -> done')
    first = RunRequest(workflow=workflow, actor="cli:eve", key="order-7", input={"a": 1})
    with tenant_transaction(tenant.id):
        run = start_run(request=first)
        assert start_run(request=first).id == run.id
        with pytest.raises(Invalid, match=f"has started the run {run.id} with another input"):
            start_run(request=replace(first, input={"a": 2}))
        with pytest.raises(Invalid, match="a key must have at most 200 characters"):
            start_run(request=replace(first, key="k" * 201))
        with pytest.raises(Invalid, match="half a surrogate pair"):
            start_run(request=replace(first, key="order-8", input={"a": "\ud800"}))
        # A key belongs to its actor and trigger: nobody else gets the run, least of all a schedule.
        others = [
            replace(first, actor="user:bob"),
            replace(first, trigger=WorkflowTrigger.SCHEDULE),
            replace(first, trigger=WorkflowTrigger.AGENT, actor="agent:x", agent_id=agent.id),
        ]
        assert len({run.id, *(start_run(request=other).id for other in others)}) == 4
    assert len(fleet.messages) == 4


def test_a_workflow_with_the_form_of_an_id_as_its_name_is_found(tenant: Tenant) -> None:
    workflow = define_workflow(tenant, 'a [type=note, text="x"]; start -> a -> done', name="0" * 32)
    with tenant_transaction(tenant.id):
        assert find_workflow(workflow.name) == find_workflow(workflow.id) == workflow
    # Its name is the other's id, and sorts before the other's name.
    named = define_workflow(tenant, 'a [type=note, text="x"]; start -> a -> done', name=str(workflow.id))
    with tenant_transaction(tenant.id):
        Workflow.objects.filter(id=workflow.id).update(name="report")
        assert (find_workflow(workflow.id), find_workflow(named.id)) == (workflow, named)


def test_a_start_names_what_is_missing(tenant: Tenant) -> None:
    workflow = define_workflow(tenant, 'a [type=prompt, prompt="{input.topic}"]; start -> a -> done')
    with tenant_transaction(tenant.id), pytest.raises(Invalid, match="the steps a name no agent"):
        start_run(request=RunRequest(workflow=workflow, actor="cli:eve"))
    workflow = define_workflow(
        tenant, 'a [type=note, text="{input.topic}"]; start -> a -> done', name="other"
    )
    with tenant_transaction(tenant.id), pytest.raises(Invalid, match="the input needs topic"):
        start_run(request=RunRequest(workflow=workflow, actor="cli:eve"))


@pytest.mark.parametrize("topic", ["a\0b", "half \ud83d of a pair", float("nan"), "x" * 64_001])
def test_an_input_that_cannot_be_stored_is_refused(tenant: Tenant, topic: object) -> None:
    workflow = define_workflow(tenant, 'a [type=note, text="{input.topic}"]; start -> a -> done')
    with tenant_transaction(tenant.id), pytest.raises(Invalid, match="the input"):
        start_run(request=RunRequest(workflow=workflow, input={"topic": topic}, actor="cli:eve"))


@pytest.mark.parametrize("topic", ["write \\u0000 for NUL", "雨" * 20_000])
def test_an_input_may_have_any_character_that_can_be_stored(tenant: Tenant, fleet: Fleet, topic: str) -> None:
    workflow = define_workflow(tenant, 'a [type=note, text="{input.topic}"]; start -> a -> done')
    run = start_workflow(workflow, topic=topic)
    fleet.run()
    assert outputs_of(run) == {"a": topic}


@pytest.mark.parametrize("model", ["opnai/gpt-4o", "openai/gpt 4o"])
def test_a_step_with_a_model_of_no_provider_is_refused(tenant: Tenant, model: str) -> None:
    body = f'a [type=prompt, prompt="Write.", model="{model}"]; start -> a -> done'
    with pytest.raises(Invalid, match="a model handle"):
        define_workflow(tenant, body)
