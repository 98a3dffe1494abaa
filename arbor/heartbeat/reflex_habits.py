"""Decisions of the reflex policy about proposals, and its potential goals."""

from __future__ import annotations

from typing import Any

from arbor.heartbeat.reflex_draft import Draft, excerpt
from arbor.heartbeat.reply import ProposalChoice
from arbor.heartbeat.self_views import ProposalView

#: A rule cannot judge a proposal, so its confidence decides.
SURE_ENOUGH = 0.8


def decide_proposals(proposals: list[ProposalView], draft: Draft) -> None:
    """Accept confident proposals, defer others once, then reject them."""
    for proposal in proposals:
        choice, reason = _choice(proposal)
        draft.decide(proposal.id, choice, reason)


def _choice(proposal: ProposalView) -> tuple[ProposalChoice, str]:
    sure = f"it was proposed with {proposal.confidence:.0%} confidence"
    if proposal.confidence >= SURE_ENOUGH:
        return ProposalChoice.ACCEPT, f"{sure}, which is enough for a rule"
    if not proposal.deferrals:
        return ProposalChoice.DEFER, f"{sure}; it may wait for more"
    return ProposalChoice.REJECT, f"{sure}, and has waited already"


def potential_goals(about: str) -> list[dict[str, Any]]:
    """Return two potential goals about a subject: to find out more, and to sort what is known."""
    subject = excerpt(about, 100).rstrip("?.!")
    return [
        {
            "title": f"Find out more about {subject}",
            "description": "I can say in my own words what it is about and how I know.",
            "rationale": "It keeps coming back to me.",
            "state": "queued",
        },
        {
            "title": f"Put in order what I know about {subject}",
            "description": "What belongs together is tied together, and what is overtaken is put away.",
            "rationale": "What is found out is worth little if it cannot be found again.",
            "state": "backburner",
        },
    ]
