"""The page of one heartbeat: what it says of how the agent felt, and of what brought the beat about."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from apps.heartbeats.models import Trigger
from apps.tenants.scope import tenant_transaction
from tests.factories.heartbeats import HeartbeatFactory
from tests.integration.console.conftest import World


@pytest.mark.parametrize(
    ("trigger", "said"),
    [
        (Trigger.TIMER, "its timer"),
        (Trigger.EVENT, "an event"),
        (Trigger.DRIVE, "a drive"),
        (Trigger.MESSAGE, "a message"),
    ],
)
def test_a_beat_says_how_stirred_it_left_the_agent_and_what_brought_it_about(
    viewer: Client, world: World, trigger: Trigger, said: str
) -> None:
    with tenant_transaction(world.tenant.id):
        beat = HeartbeatFactory(trigger=trigger, emotional_valence=-0.25, arousal=0.75)
    page = viewer.get(reverse("admin:heartbeats_heartbeat_change", args=[beat.pk])).content.decode()
    facts = page.partition('id="beat-facts"')[2].partition("</dl>")[0]
    assert "-0.25" in facts
    assert "stirred 0.75 of 1" in facts
    assert f"<dd>{said}</dd>" in facts
