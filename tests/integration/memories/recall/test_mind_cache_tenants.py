"""The mind cache and tenants: a cached mind is used for its own tenant only, while that tenant is active."""

from __future__ import annotations

from uuid import uuid4

from django.db import connections

from apps.agents.models import Agent
from apps.fleet.administration import resume_tenant, suspend_tenant
from apps.fleet.lifecycle import destroy_agent
from apps.memories.services.recall.mind_cache import MindCache
from apps.memories.services.recall.recaller import Recaller
from apps.tenants.scope import APP, tenant_transaction
from arbor.memory.recall.recall_request import RecallRequest
from tests.integration.memories.conftest import NOON
from tests.integration.memories.recall.cache_and_scan import Checker, caching
from tests.support.memories import TALK

ACTOR = "cli:test"


def test_a_suspended_tenants_mind_is_evicted_and_not_used(checker: Checker, cache: MindCache) -> None:
    assert len(cache) == 1
    suspend_tenant(slug="acme", actor=ACTOR)
    checker.recall(cache)
    assert (len(cache), cache.nbytes) == (0, 0)
    resume_tenant(slug="acme", actor=ACTOR)
    checker.recall(cache)
    assert len(cache) == 1


def test_a_destroyed_agent_has_no_cached_mind(checker: Checker, mind: Agent, cache: MindCache) -> None:
    with tenant_transaction(mind.tenant_id):
        destroy_agent(agent_id=mind.id, confirm=mind.name, actor=ACTOR)
    assert checker.recall(cache) == []
    assert len(cache) == 0


def test_a_cached_mind_is_hidden_from_other_tenants(
    checker: Checker, mind: Agent, foreign_mind: Agent, cache: MindCache
) -> None:
    request = RecallRequest(agent_id=mind.id, text="boat", limit=10, now=NOON)
    with tenant_transaction(foreign_mind.tenant_id), caching(cache):
        assert Recaller().recall([request]) == [[]]
    with tenant_transaction(mind.tenant_id), caching(cache):
        assert len(Recaller().recall([request])[0]) == len(TALK)


def test_cached_minds_are_read_under_row_security(checker: Checker, mind: Agent, cache: MindCache) -> None:
    # The scope names the right tenant, but row-level security hides its rows.
    request = RecallRequest(agent_id=mind.id, text="boat", limit=10, now=NOON)
    with tenant_transaction(mind.tenant_id), caching(cache):
        with connections[APP].cursor() as cursor:
            cursor.execute("SELECT set_config('arbor.tenant_id', %s, true)", [str(uuid4())])
        assert Recaller().recall([request]) == [[]]
