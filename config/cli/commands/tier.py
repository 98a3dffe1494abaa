"""The commands about the trust tiers of agents."""

from __future__ import annotations

from config.cli.kit.declarations import agent_command, argument, group, one_of, option

#: The tiers (`arbor.agents.template.TrustTier`), from the lowest to the highest.
TIERS = ("untrusted", "probationary", "trusted", "veteran", "autonomous")

TIER = group(
    "tier",
    "Show and set the trust tiers of agents, which decide what waits for a person.",
    agent_command(
        "show",
        "Show an agent's trust tier, and its score with the parts.",
        run="agents.tiers:show_tier",
        examples=("arbor agent tier show Vega",),
    ),
    agent_command(
        "history",
        "List the changes of an agent's trust tier, the latest first.",
        run="agents.tiers:list_changes",
        examples=("arbor agent tier history Vega",),
    ),
    agent_command(
        "set",
        "Set an agent's trust tier: no score lowers it afterwards, a breach does.",
        argument("tier", type=one_of(TIERS)),
        option("--reason", default="", help="Why, for the record."),
        run="agents.tiers:set_tier",
        examples=('arbor agent tier set Vega veteran --reason "knows its work"',),
    ),
)
