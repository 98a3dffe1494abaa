"""Pages of all models in the operator's console: lists, filters, forms."""

from apps.console.admin import (  # noqa: F401
    access,
    agent_parts,
    agents,
    approvals,
    audit,
    authority,
    calls,
    contacts,
    goals,
    graph,
    heartbeats,
    hooks,
    memories,
    proposals,
    seeds,
    selves,
    tenants,
    tools,
    trust_tiers,
    upkeep,
)
