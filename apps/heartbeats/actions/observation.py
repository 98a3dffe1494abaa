"""The actions `observe` and `review_goals`: describe environment and goals again, at no cost (seed 004, 3.2.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.db.models import Q

from apps.agents.models import Percept, PerceptKind
from apps.heartbeats.actions.context import ActionContext
from apps.heartbeats.services.situations.goal_situation import goal_views
from arbor.contacts.cooldown import format_hours
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.guards import boundary_matches_of
from arbor.heartbeat.prompts.sections.goals import overview
from arbor.heartbeat.results import QUOTE_LENGTH, ActionOutcome, ActionResult, action_result
from arbor.heartbeat.situation import PerceptView, Situation
from arbor.quotations import counted, shorten
from arbor.selves.boundaries import DEFAULT_BOUNDARIES
from arbor.selves.boundary_check import boundaries_in_force

#: The most percepts that are listed, and the most characters of each.
_MAX_PERCEPTS = 5
_MAX_PERCEPT_LENGTH = 500


def observe(context: ActionContext, decision: Decision) -> ActionResult:
    """Describe the environment again, with pending percepts that this heartbeat does not take in; they stay pending.

    These percepts are matched with boundaries by their words only; the next heartbeat also matches their meaning.
    """
    situation, environment = context.situation, context.situation.environment
    known = [percept.id for percept in situation.percepts]
    pending = list(
        Percept.objects.filter(agent_id=context.agent_id, heartbeat_id__isnull=True)
        .exclude(id__in=known)
        .alias(is_user_message=Q(kind=PerceptKind.USER_MESSAGE))
        # The order in which the next heartbeat takes them in.
        .order_by("-is_user_message", "-urgent", "at")[:_MAX_PERCEPTS]
    )
    presence = "is waiting" if environment.user_waiting else "is not waiting"
    hours = environment.hours_since_user
    lines = [
        f"It is {context.now:%Y-%m-%d %H:%M} UTC. {situation.energy:g} of {situation.max_energy:g} {situation.energy_unit}"
        " were there when this round trip began.",
        f"A user {presence}; "
        + (
            "none has ever been in touch."
            if hours is None
            else f"the last contact was {format_hours(hours)} ago."
        ),
        *(f"Waits for your next heartbeat, {percept.kind}: {_shown(percept)}" for percept in pending),
        *_boundary_lines(situation, pending),
    ]
    if pending:
        lines.append("Your next heartbeat takes in what waits: do not act on it twice.")
    percepts = counted(len(pending), "pending percept") if pending else "no pending percept"
    summary = f"looked around and saw {percepts}"
    return action_result(decision, ActionOutcome.SUCCESS, summary, brought="\n".join(lines))


def _shown(percept: Percept) -> str:
    if percept.sealed is not None:
        return "a message that is sealed until then."
    return shorten(percept.content, _MAX_PERCEPT_LENGTH)


def _boundary_lines(situation: Situation, pending: Sequence[Percept]) -> Iterator[str]:
    """Yield a line of text for each boundary that a listed percept matches, worded as in the prompt."""
    views = [
        PerceptView(id=str(percept.id), kind=percept.kind, content=percept.content, at=percept.at)
        for percept in pending
    ]
    rules = boundaries_in_force(DEFAULT_BOUNDARIES, situation.terms.boundaries if situation.terms else [])
    for match in boundary_matches_of(views, rules, {}):
        yield f"It touches your boundary {match.boundary} ({match.response}), for {match.why}: {match.description}"


def review_goals(context: ActionContext, decision: Decision) -> ActionResult:
    """List the issues found when the heartbeat began, and all goals that are open now. One statement."""
    issues = context.situation.issues
    listed = "; ".join(shorten(f"{issue.advice}: {issue.text}", QUOTE_LENGTH) for issue in issues)
    attention = f"{counted(len(issues), 'issue')}: {listed}" if issues else "no issue"
    summary = f"reviewed the goals and found {attention}"
    goals = goal_views(agent_id=context.agent_id, traits=None, now=context.now)
    return action_result(decision, ActionOutcome.SUCCESS, summary, brought=overview(goals))
