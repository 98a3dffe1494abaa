"""Saved seeds for tests."""

from __future__ import annotations

import factory

from apps.fleet.models import SavedSeed
from arbor.ids import uuid7
from tests.factories.rows import TenantRowFactory, minutes_ago


class SavedSeedFactory(TenantRowFactory[SavedSeed]):
    class Meta:
        model = SavedSeed

    agent_id = factory.LazyFunction(uuid7)
    name = "Vega"
    public_id = "agent_" + "ab" * 32
    reason = "restore"
    digest = "cd" * 32
    bytes = 123_456
    rows = factory.LazyFunction(lambda: {"memories": 12})
    actor = "user:ann"
    at = factory.LazyFunction(lambda: minutes_ago(9))
