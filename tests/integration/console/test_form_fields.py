"""Each field of each form that creates or changes a row: another value changes what is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from django import forms
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from apps.agents.models import Agent
from apps.console.admin.proposals import DecisionForm
from apps.console.admin.tenants import NewAccountForm
from apps.console.forms import DestroyAgentForm, NewAgentForm, NewChannelForm, ServiceForm
from apps.console.operator.documents import NewDocumentsForm
from apps.console.operator.hook_forms import MappingForm, NewHookForm, NewWebhookForm
from apps.console.operator.tools import NewToolServerForm
from apps.console.operator.workflows import WorkflowForm
from apps.console.site import SignInForm
from apps.contacts.models import Channel, Hook, SignalWebhook
from apps.contacts.services.signing_secrets import SecretPair
from apps.knowledge.models import Document
from apps.queues import captured
from apps.tenants.models import User
from apps.tenants.scope import tenant_transaction
from apps.tools.models import ToolServer
from apps.workflows.models import Workflow
from apps.workflows.services.definitions import version_of
from arbor.contacts.hooks import HookMapping
from arbor.errors import SealBroken
from tests.factories.agents import AgentFactory
from tests.factories.workflows import SOURCE
from tests.support.console import World

#: The base of forms, and forms without a row of their own, whose fields are tested beside their acts.
OTHER_FORMS = {ServiceForm, SignInForm, DecisionForm, DestroyAgentForm}
#: The field of a sample, which is tried and not stored.
SAMPLE = "sample"
PASSWORD, OWN_SECRET = "correct horse battery", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

HOOK = {"kind": "json", "agent": "Vega", **HookMapping().as_json()}
MAPPING_CHANGES: dict[str, Any] = {
    "events": "push",
    "urgent_from": "0.7",
    **{name: f"a new {name}" for name in ("event", "title", "text", "sender")},
    "importance": "high",
}
WORKFLOW_CHANGES: dict[str, Any] = {
    "description": "Weekly.",
    "source": SOURCE.replace("Publish", "Print"),
    "agent": "Vega",
    "cron": "0 7 * * *",
    "zone": "Europe/Berlin",
    "scheduled_input": '{"topic": "rain"}',
}
WITH_CRON = {"cron": {"scheduled_input": WORKFLOW_CHANGES["scheduled_input"]}}


@dataclass(frozen=True, kw_only=True)
class FormCase:
    """A form with a valid payload, and another valid value of each of its fields."""

    form: type[forms.Form]
    model: type[Model]
    page: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any]
    #: Further fields that the change of a field needs.
    along: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: The field that names the new row; empty for a form that changes a row.
    named_by: str = "name"
    #: The lookup of that name.
    lookup: str = "name"


CASES = [
    FormCase(
        form=NewAgentForm,
        model=Agent,
        page="agents_agent_add",
        payload={"template": "Scout"},
        changes={
            "template": "Researcher",
            "interval_s": "77",
            "model": "openai/gpt-5-mini",
            "start": "on",
        },
    ),
    FormCase(
        form=NewChannelForm,
        model=Channel,
        page="contacts_channel_add",
        payload={"kind": "email", "target": "eve@example.org", "audience": "user"},
        changes={
            "kind": "inbox",
            "target": "ann@example.org",
            "audience": "public",
            "agent": "Vega",
        },
        along={"kind": {"target": ""}},
    ),
    FormCase(
        form=NewHookForm,
        model=Hook,
        page="contacts_hook_add",
        payload=HOOK,
        changes={
            **MAPPING_CHANGES,
            "agent": "Lyra",
            "kind": "github",
            "signature_header": "X-Signature",
            "secret": OWN_SECRET,
        },
    ),
    FormCase(
        form=MappingForm,
        model=Hook,
        page="hook-edit",
        payload=HOOK,
        changes=MAPPING_CHANGES,
        named_by="",
    ),
    FormCase(
        form=NewWebhookForm,
        model=SignalWebhook,
        page="contacts_signalwebhook_add",
        payload={"url": "https://example.org/a"},
        changes={
            "url": "https://example.org/b",
            "signals": "agent.created",
            "agent": "Vega",
        },
    ),
    FormCase(
        form=NewToolServerForm,
        model=ToolServer,
        page="tools_toolserver_add",
        payload={"url": "https://example.org/mcp"},
        changes={"url": "https://example.org/b", "secret": "t0ken"},
    ),
    FormCase(
        form=WorkflowForm,
        model=Workflow,
        page="workflows_workflow_add",
        payload={"source": SOURCE, "zone": "UTC"},
        changes=WORKFLOW_CHANGES,
        along=WITH_CRON,
    ),
    FormCase(
        form=WorkflowForm,
        model=Workflow,
        page="workflow-edit",
        payload={"source": SOURCE, "zone": "UTC"},
        changes=WORKFLOW_CHANGES,
        along=WITH_CRON,
        named_by="",
    ),
    FormCase(
        form=NewDocumentsForm,
        model=Document,
        page="knowledge_document_add",
        changes={"category": "policies", "publish": "on"},
        named_by="chosen",
    ),
    FormCase(
        form=NewAccountForm,
        model=User,
        page="tenants_user_add",
        payload={"password": PASSWORD},
        changes={"superuser": "on", "password": "another horse battery"},
        named_by="username",
        lookup="username",
    ),
]


@pytest.fixture(autouse=True)
def _no_messages() -> Iterator[None]:
    """Capture the messages to the fleet."""
    with captured():
        yield


def has_own_secret(hook: Hook) -> bool:
    """Return whether the hook has the sender's secret; the secret of the world's hook cannot be opened."""
    with suppress(SealBroken):
        return SecretPair.of(hook).current == OWN_SECRET
    return False


#: The stored value of each field, by model.
STORED: Mapping[type[Model], Callable[[Any], Mapping[str, Any]]] = {
    Agent: lambda row: {
        "template": row.template_name,
        "interval_s": row.schedule.interval_s,
        "model": row.model,
        "start": row.status,
    },
    Channel: lambda row: {
        "kind": row.kind,
        "target": row.target,
        "audience": row.audience,
        "agent": row.agent_id,
    },
    Hook: lambda row: {
        **row.mapping,
        "events": row.events,
        "urgent_from": row.urgent_from,
        "agent": row.agent_id,
        "kind": row.kind,
        "signature_header": row.signature_header,
        "secret": has_own_secret(row),
    },
    SignalWebhook: lambda row: {"url": row.url, "signals": row.signals, "agent": row.agent_id},
    ToolServer: lambda row: {"url": row.url, "secret": bool(row.sealed_secret)},
    Workflow: lambda row: {
        "description": row.description,
        "source": version_of(row).source,
        "agent": row.agent_id,
        "cron": row.cron,
        "zone": row.zone,
        "scheduled_input": row.scheduled_input,
    },
    Document: lambda row: {"category": row.category, "publish": row.status},
    User: lambda row: {"superuser": row.is_superuser, "password": row.check_password(PASSWORD)},
}


def console_forms() -> set[type[forms.BaseForm]]:
    """Return the forms of the console."""
    found: set[type[forms.BaseForm]] = set()
    waiting: list[type[forms.BaseForm]] = [forms.Form]
    while waiting:
        subclasses = waiting.pop().__subclasses__()
        waiting += subclasses
        found |= {form for form in subclasses if form.__module__.startswith("apps.console.")}
    return found


def test_each_field_of_each_form_is_in_the_table() -> None:
    assert console_forms() == {case.form for case in CASES} | OTHER_FORMS
    for case in CASES:
        listed = {*case.changes, case.named_by or "name"}
        assert listed >= {*case.form.base_fields} - {SAMPLE} >= {*case.changes}, case.page


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.page)
def test_another_value_of_a_field_is_stored(
    case: FormCase, chief: Client, world: World, templates: None
) -> None:
    with tenant_transaction(world.tenant.id):
        AgentFactory(name="Vega")
        AgentFactory(name="Lyra")
    changed = [] if case.named_by else [next(row.pk for row in world.rows if isinstance(row, case.model))]
    address = reverse(f"admin:{case.page}", args=changed)
    stored: dict[str, Mapping[str, Any]] = {}
    for number, name in enumerate(["", *case.changes]):
        change = {name: case.changes[name], **case.along.get(name, {})} if name else {}
        title = f"row-{number}"
        files = {"chosen": [SimpleUploadedFile(f"{title}.md", b"Leave")]}
        new = files if case.form is NewDocumentsForm else {case.named_by: title}
        chief.post(address, {**case.payload, **change, **new})
        with tenant_transaction(world.tenant.id):
            key = {"pk": changed[0]} if changed else {f"{case.lookup}__startswith": title}
            stored[name] = STORED[case.model](case.model._default_manager.get(**key))
        if name:
            assert stored[name][name] != stored[""][name], name
