"""`python -m tests.acceptance.fleet.populate`: migrate a database and create the agents that standard input names.

A separate process, so that the process of the tests keeps its database connections. Reads `[{"name", "tenant", "model"}]`, writes
`[{"name", "agent_id"}]`.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
django.setup()

from django.core.management import call_command  # noqa: E402 (the models need Django set up)
from django.db.models.functions import Now  # noqa: E402

from apps.agents.models import Agent, HeartbeatSchedule  # noqa: E402
from apps.agents.services.templates import seed_builtin_templates  # noqa: E402
from apps.authority.models import ActionApproval  # noqa: E402
from apps.fleet.creation import create_agent  # noqa: E402
from apps.fleet.lifecycle import start_agent  # noqa: E402
from apps.tenants.scope import tenant_transaction  # noqa: E402
from apps.tenants.services import create_tenant  # noqa: E402
from arbor.authority.approvals import APPROVAL_LIFETIME, ApprovalStatus  # noqa: E402
from arbor.authority.grants import action_resource  # noqa: E402
from arbor.authority.requests import body_hash, canonical_body  # noqa: E402
from arbor.heartbeat.params.memory import RememberParams  # noqa: E402

INTERVAL = timedelta(hours=1)
TEMPLATES = ("Researcher", "Scout", "Monitor")


def main() -> None:
    """Create tenants and agents in the given order."""
    requested = json.load(sys.stdin)
    call_command("migrate", verbosity=0, interactive=False)
    seed_builtin_templates()
    tenants = {
        slug: create_tenant(slug=slug, name=slug.title()) for slug in {entry["tenant"] for entry in requested}
    }
    agents = []
    for number, entry in enumerate(requested):
        with tenant_transaction(tenants[entry["tenant"]].id):
            agent = create_agent(
                name=entry["name"],
                template_name=TEMPLATES[number % len(TEMPLATES)],
                actor="test",
                interval=INTERVAL,
                model=entry["model"],
            )
            start_agent(agent_id=agent.id, actor="test")
            _approve(agent)
            # The first heartbeat would be due at any moment of the interval; a test makes it due instead.
            HeartbeatSchedule.objects.filter(agent_id=agent.id).update(next_due_at=Now() + INTERVAL)
        agents.append({"name": agent.name, "agent_id": str(agent.id)})
    json.dump(agents, sys.stdout)


def _approve(agent: Agent) -> None:
    """Store an approved action of the agent, executed by its first heartbeat that decides."""
    params = RememberParams(content=f"An approval of {agent.name}.").model_dump(mode="json")
    now = datetime.now(UTC)
    ActionApproval.objects.create(
        tenant_id=agent.tenant_id,
        agent=agent,
        action="remember",
        resource=action_resource("remember"),
        body=canonical_body(params).decode(),
        body_hash=body_hash(params),
        about=params["content"],
        why="ask by the rule of a test",
        status=ApprovalStatus.APPROVED,
        asked_at=now,
        expires_at=now + APPROVAL_LIFETIME,
        decided_by="test",
        decided_at=now,
    )


if __name__ == "__main__":
    main()
