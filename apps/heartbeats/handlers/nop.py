"""Nop: a heartbeat of which no reply could be used."""

from __future__ import annotations

from uuid import UUID

import structlog
from django.db.models import F

from apps.agents.models import AgentState
from apps.agents.services.dormancy import make_dormant
from apps.heartbeats.handlers.standing import noticed_after
from apps.heartbeats.handlers.terms import budget_in
from arbor.heartbeat.budgets import BudgetKind
from arbor.pipeline.engine import Context, NodeResult, Phase

log = structlog.get_logger(__name__)

#: Seed 003, 10.7: heartbeats in a row without a usable reply.
NOPS_TO_WARN = 3
NOPS_TO_DORMANCY = 10


class Nop:
    """Records that no reply could be used: nothing is done, no energy comes back, and it counts.

    Of a cycle's ticks it takes one, so that a cycle ends whatever its replies are (seed 003, 10.7).
    """

    phase = Phase.INSIDE

    def run(self, context: Context) -> NodeResult:
        """Count it; three in a row warn, ten send the agent to sleep."""
        agent_id = UUID(context["agent_id"])
        budget, left = budget_in(context), context["situation"].energy
        ticks = budget.settle(max(0.0, left - 1), rests=0) if budget.kind is BudgetKind.TICKS else {}
        AgentState.objects.filter(agent_id=agent_id).update(nops=F("nops") + 1, **ticks)
        nops: int = AgentState.objects.values_list("nops", flat=True).get(agent_id=agent_id)
        if nops >= NOPS_TO_DORMANCY:
            make_dormant(agent_id=agent_id, reason=f"{nops} heartbeats in a row without a usable reply")
        elif nops >= NOPS_TO_WARN:
            log.warning(
                "no_usable_replies",
                agent=context["situation"].name,
                in_a_row=nops,
                dormant_at=NOPS_TO_DORMANCY,
            )
        record = {**context["record"], "situation": context["situation"]}
        state = noticed_after(context.get("state", {}), nops=nops)
        return NodeResult(
            updates={"record": record, "state": state},
            changed=(f"{nops} heartbeats in a row without a usable reply",),
        )
