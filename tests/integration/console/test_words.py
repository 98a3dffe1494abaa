"""Words on the console's pages: one for each thing, and words where ids and raw values could stand."""

from __future__ import annotations

from django.contrib import admin
from django.test import Client, RequestFactory
from django.urls import resolve, reverse
from django.utils.text import capfirst

from apps.console.navigation import sidebar
from tests.integration.console.conftest import World


def test_a_link_of_the_navigation_is_called_as_the_list_it_leads_to(database: None) -> None:
    reverse("admin:index")  # the pages are found with the addresses
    models = {
        f"{model._meta.app_label}_{model._meta.model_name}_changelist": model for model in admin.site._registry
    }
    named = 0
    for group in sidebar(RequestFactory().get("/")):
        for item in group["items"]:
            model = models.get(str(resolve(str(item["link"])).url_name))
            if model is not None:
                assert item["title"] == capfirst(model._meta.verbose_name_plural)
                named += 1
    assert named > 30


def test_a_list_is_called_by_what_is_in_it(viewer: Client, world: World) -> None:
    for page, name in (
        ("memories_edge", "relation"),
        ("heartbeats_dailyusage", "day of usage"),
        ("memories_upkeep", "memory in upkeep"),
    ):
        text = viewer.get(reverse(f"admin:{page}_changelist")).content.decode()
        title = text.partition("<title>")[2].partition("</title>")[0]
        assert "Select" not in title
        assert f"1 {name}" in " ".join(text.split())
