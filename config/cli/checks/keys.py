"""Check the master key and the agents' sealed keys."""

from __future__ import annotations

from django.conf import settings

from apps.agents.models import AgentKey
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS, tenant_transaction
from arbor.agents.identity import SealedKey, open_private_key
from arbor.errors import ArborError
from config.cli.checks.finding import Finding, fail, ok

_TENANTS_TRIED, _KEYS_TRIED = 20, 3


def check_master_key() -> Finding:
    """Check that there is a master key."""
    if settings.ARBOR_MASTER_KEY is None:
        return fail(
            "master key",
            "there is none: agents cannot be made and their keys not opened",
            "run `arbor up` once, or set ARBOR_MASTER_KEY_FILE",
        )
    return ok("master key", "present")


def check_keys() -> Finding:
    """Check that the agents' sealed keys open under this master key."""
    if settings.ARBOR_MASTER_KEY is None:
        return fail("agents' keys", "cannot be opened without the master key", "bring the master key back")
    keys = [key for tenant in Tenant.objects.using(OPS).all()[:_TENANTS_TRIED] for key in _some_keys(tenant)]
    for key in keys:
        try:
            open_private_key(
                SealedKey.from_json(key.sealed_private_key),
                master_key=settings.ARBOR_MASTER_KEY,
                agent_public_id=key.agent.public_id,
                tenant_id=str(key.tenant_id),
            )
        except ArborError as error:
            return fail("agents' keys", str(error), "start with the master key the agents were made under")
    return ok("agents' keys", f"{len(keys)} tried, all open" if keys else "no agents yet")


def _some_keys(tenant: Tenant) -> list[AgentKey]:
    # As the application does: the operations role may not read keys.
    with tenant_transaction(tenant.id):
        return list(AgentKey.objects.select_related("agent")[:_KEYS_TRIED])
