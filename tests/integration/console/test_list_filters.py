"""Lookups in the addresses of lists, which reach the database: those of a list's own filters are accepted, no others."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from apps.console.listing import ConsoleAdmin
from tests.support.console import World, list_of


def _lists() -> list[tuple[str, ConsoleAdmin]]:
    """Return the address of each list with its admin class."""
    return [
        (list_of(model), model_admin)
        for model, model_admin in admin.site._registry.items()
        if isinstance(model_admin, ConsoleAdmin)
    ]


@pytest.mark.parametrize(
    ("address", "lookup"),
    [
        ("admin:memories_memory_changelist", {"content__regex": "(a+)+$"}),
        ("admin:memories_memory_changelist", {"agent__character__contains": "secret"}),
        ("admin:contacts_channel_changelist", {"target__startswith": "https://"}),
        ("admin:contacts_channel_changelist", {"secret__isnull": "False"}),
        ("admin:agents_agent_changelist", {"name__iregex": "."}),
        ("admin:goals_goal_changelist", {"state__regex": "."}),
    ],
)
def test_a_lookup_beyond_the_filters_is_refused(
    owner: Client, world: World, address: str, lookup: dict[str, str]
) -> None:
    assert owner.get(reverse(address), lookup).status_code == 400


def test_each_filter_of_each_list_works(owner: Client, world: World) -> None:
    for address, model_admin in _lists():
        for entry in model_admin.list_filter:
            name = entry[0] if isinstance(entry, tuple) else entry
            if not isinstance(name, str):
                continue
            is_relation = model_admin.model._meta.get_field(name).is_relation
            lookup = {f"{name}__id__exact": str(world.agent.id)} if is_relation else {f"{name}__exact": "x"}
            response = owner.get(address, lookup)
            assert response.status_code in (200, 302, 403), (address, lookup)


def test_no_list_accepts_a_regular_expression(owner: Client, world: World) -> None:
    for address, model_admin in _lists():
        response = owner.get(address, {f"{model_admin.model._meta.pk.name}__regex": "(a+)+$"})
        assert response.status_code in (400, 403), address
