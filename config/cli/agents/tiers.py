"""Show and set the trust tiers of agents."""

from __future__ import annotations

from rich.console import Group
from rich.markup import escape

from apps.authority.models import TrustScore
from apps.authority.services import trust_tiers
from arbor.agents.template import TrustTier
from config.cli.kit.columns import OutputColumn, listing, table_of
from config.cli.kit.declarations import Output
from config.cli.kit.output import format_relative_time
from config.cli.kit.tenancy import ChosenAgent, actor, in_agent_transaction

_PART_COLUMNS = (
    OutputColumn(head="part", value=lambda part: part["part"]),
    OutputColumn(head="good", value=lambda part: f"{part['good']:g} of {part['total']}"),
    OutputColumn(head="points", value=lambda part: f"{part['points']:.1f} of {part['most']:g}"),
)
_CHANGE_COLUMNS = (
    OutputColumn("at", "when", cell=format_relative_time),
    OutputColumn("before", "before"),
    OutputColumn("after", "after"),
    OutputColumn("score", "score"),
    OutputColumn("decided_by", "by"),
    OutputColumn("reason", "reason"),
)


@in_agent_transaction
def show_tier(agent: ChosenAgent) -> Output:
    """Show an agent's tier and score with its parts."""
    return _tier_output(agent, trust_tiers.trust_score_of(agent.id))


@in_agent_transaction
def list_changes(agent: ChosenAgent) -> Output:
    """List the changes of an agent's tier, the latest first."""
    return listing(
        "changes",
        trust_tiers.tier_changes_of(agent.id),
        _CHANGE_COLUMNS,
        about={"agent": agent.name},
        empty=f"The tier of {escape(agent.name)} has not changed yet.",
    )


@in_agent_transaction
def set_tier(agent: ChosenAgent, *, tier: str, reason: str) -> Output:
    """Set an agent's tier."""
    score = trust_tiers.set_tier(agent_id=agent.id, tier=TrustTier(tier), actor=actor(), reason=reason)
    return _tier_output(agent, score)


def _tier_output(agent: ChosenAgent, score: TrustScore) -> Output:
    value = {
        "agent": agent.name,
        "tier": score.tier,
        "since": score.since,
        "by_person": score.by_person,
        "score": score.score,
        "parts": score.parts,
        "computed_at": score.computed_at,
    }
    decided = " by a person's decision" if score.by_person else ""
    head = f"[bold]{escape(agent.name)}[/bold] is {score.tier}{decided} since {format_relative_time(score.since)}."
    if score.score is None:
        return Output(value, text=f"{head} Maintenance has not scored it yet.")
    table = table_of(score.parts, _PART_COLUMNS, title=f"score: {score.score:g} of 100")
    return Output(value, text=Group(head, table))
