"""Templates: built-in ones, which follow the code, and a tenant's own."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.agents.models import BuiltinTemplate, Template
from apps.agents.services.templates import (
    SeedChange,
    UnreadableTemplate,
    add_template,
    find_template,
    list_templates,
    seed_builtin_templates,
    update_template,
)
from apps.audit.models import AuditAction, AuditEvent
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS, tenant_transaction
from arbor.agents.template import TemplateSource
from arbor.errors import AlreadyExists, NotFound, PipelineInvalid, TemplateInvalid
from tests.integration.agents.conftest import ACTOR

TEXT = """---
name: Gardener
version: "{version}"
character: {{name: Gardener}}
actions: [rest, recall]
---

## Description

Waters what others planted.
"""
BUILT_IN = 14


def seed(*arguments: str) -> Any:
    out = StringIO()
    call_command("seed_templates", *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_seeding_writes_all_built_in_templates_once(database: None) -> None:
    assert set(seed()["changes"].values()) == {"new"}
    assert set(seed()["changes"].values()) == {"unchanged"}
    assert BuiltinTemplate.objects.count() == BUILT_IN


def test_own_templates_are_listed_before_built_in_ones(tenant: Tenant) -> None:
    seed_builtin_templates()
    names = ("Zinnia", "aster")
    with tenant_transaction(tenant.id):
        for name in names:
            add_template(text=TEXT.format(version="1").replace("Gardener", name), actor=ACTOR)
        listed = [template.name for template in list_templates()]
    assert (listed[:2], listed[2:]) == (["aster", "Zinnia"], sorted(listed[2:], key=str.casefold))


def test_seeding_says_what_it_changed_and_removed(database: None) -> None:
    seed_builtin_templates()
    BuiltinTemplate.objects.using(OPS).filter(name="Scout").update(content_hash="older")
    BuiltinTemplate.objects.using(OPS).filter(name="Alder").update(name="Elder")
    changes = seed()["changes"]
    assert {name: change for name, change in changes.items() if change != "unchanged"} == {
        "Scout": "changed",
        "Alder": "new",
        "Elder": "removed",
    }
    assert set(seed_builtin_templates().values()) == {SeedChange.UNCHANGED}


def test_the_check_reports_pending_changes_without_making_them(database: None) -> None:
    with pytest.raises(CommandError) as failure:
        call_command("seed_templates", "--check", verbosity=0)
    assert failure.value.returncode == 1
    assert BuiltinTemplate.objects.count() == 0
    seed_builtin_templates()
    call_command("seed_templates", "--check", verbosity=0)


def test_seeding_without_json_lists_the_names(database: None) -> None:
    out = StringIO()
    call_command("seed_templates", stdout=out)
    assert "  new        Scout" in out.getvalue()
    assert f"{BUILT_IN} new, 0 changed, 0 unchanged, 0 removed" in out.getvalue()


def test_a_tenants_template_is_its_own(tenant: Tenant, other_tenant: Tenant) -> None:
    seed_builtin_templates()
    with tenant_transaction(tenant.id):
        add_template(text=TEXT.format(version=1), actor=ACTOR)
        assert len(list_templates()) == BUILT_IN + 1
        assert find_template("GARDENER").origin is TemplateSource.USER
    with tenant_transaction(other_tenant.id), pytest.raises(NotFound, match="Gardener"):
        find_template("Gardener")


def test_a_tenants_template_hides_the_built_in_one(tenant: Tenant) -> None:
    seed_builtin_templates()
    with tenant_transaction(tenant.id):
        add_template(text=TEXT.replace("Gardener", "SCOUT").format(version=1), actor=ACTOR)
        assert len(list_templates()) == BUILT_IN
        assert find_template("Scout").name == "SCOUT"


def test_a_template_is_changed_by_its_name_and_audited(tenant: Tenant) -> None:
    with tenant_transaction(tenant.id):
        add_template(text=TEXT.format(version=1), actor=ACTOR)
        assert update_template(text=TEXT.format(version=2), actor=ACTOR).version == "2"
        update_template(text=TEXT.format(version=2), actor=ACTOR)
        events = AuditEvent.objects.filter(action=AuditAction.TEMPLATE_CHANGED).order_by("id")
        assert [event.message for event in events] == [
            "added template Gardener 1",
            "changed template Gardener from 1 to 2",
        ]
        assert Template.objects.get().spec["description"] == "Waters what others planted."


def test_invalid_missing_and_duplicate_templates_are_refused(tenant: Tenant) -> None:
    with tenant_transaction(tenant.id):
        with pytest.raises(TemplateInvalid, match="unknown action 'fly'"):
            add_template(text=TEXT.format(version=1).replace("recall", "fly"), actor=ACTOR)
        with pytest.raises(NotFound, match="no template 'Gardener' of its own"):
            update_template(text=TEXT.format(version=1), actor=ACTOR)
        add_template(text=TEXT.format(version=1), actor=ACTOR)
        with pytest.raises(AlreadyExists, match="update it"):
            add_template(text=TEXT.format(version=1).replace("Gardener", "gardener"), actor=ACTOR)


def test_a_pipeline_that_cannot_run_is_refused(tenant: Tenant) -> None:
    pipeline = "\n## Pipeline\n\n```dot\ndigraph g { a [shape=Mdiamond]; b [type=dance]; a -> b }\n```\n"
    with tenant_transaction(tenant.id), pytest.raises(PipelineInvalid, match="dance"):
        add_template(text=TEXT.format(version=1) + pipeline, actor=ACTOR)


def test_an_unreadable_template_hides_no_other(tenant: Tenant) -> None:
    seed_builtin_templates()
    fault = "user template Gardener was stored by another version"
    with tenant_transaction(tenant.id):
        add_template(text=TEXT.format(version=1), actor=ACTOR)
        Template.objects.update(spec={"name": "Gardener"})
        listed = {template.name: template for template in list_templates()}
        assert len(listed) == BUILT_IN + 1
        unreadable = listed["Gardener"]
        assert isinstance(unreadable, UnreadableTemplate)
        assert fault in unreadable.fault
        assert find_template("Scout").spec.name == "Scout"
        with pytest.raises(TemplateInvalid, match=fault):
            find_template("Gardener")
        with pytest.raises(NotFound, match="Gardener"):
            find_template("Nobody")
        update_template(text=TEXT.format(version=1), actor=ACTOR)
        assert find_template("Gardener").spec.name == "Gardener"
