"""Plans: what the reply breaks goals into, and the intents that the beat takes in hand."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from apps.goals.services.backlogs import lock_backlog, save_backlog
from apps.heartbeats.handlers.goal_changes import Changes
from arbor.clock import Clock
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.guarding import paths_of
from arbor.heartbeat.reply import Reply
from arbor.ids import read_id
from arbor.pipeline.engine import Context, NodeResult, Phase


class StoreDecompositions:
    """Makes plans of the reply's decompositions, and locks the intents that its actions are going to carry out."""

    phase = Phase.INSIDE

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run(self, context: Context) -> NodeResult:
        """Change the backlog; nothing is read or written for a reply that neither plans nor serves an intent."""
        taken = _take_in_hand(context, self._clock.now())
        reply: Reply = context["reply"]
        if not reply.decompositions:
            return NodeResult(updates=taken)
        changes = Changes(context, self._clock.now())
        paths = paths_of("decompositions", reply.decompositions, context.get("untaken", []))
        for path, decomposition in zip(paths, reply.decompositions, strict=True):
            changes.apply(path, changes.decompose, decomposition)
        saved = changes.save()
        return NodeResult(updates={**taken, **saved.updates}, changed=saved.changed)


def _take_in_hand(context: Context, now: datetime) -> dict[str, list[str]]:
    """Lock the intents of the actions that run.

    Return which this heartbeat has had in hand so far (`served`), and on which of them this turn counted it (`counted`).
    """
    decisions: list[Decision] = context["decisions"]
    wanted = [each for decision in decisions if decision.runs and (each := read_id(decision.intent_id))]
    if not wanted:
        # None of this turn, whatever an earlier one counted.
        return {"counted": []} if context.get("counted") else {}
    before = context.get("served", [])
    backlog = lock_backlog(UUID(context["agent_id"]), now=now, heartbeat_id=UUID(context["heartbeat_id"]))
    backlog.take_in_hand(wanted, again=[UUID(each) for each in before])
    save_backlog(backlog)
    counted = [each for each in dict.fromkeys(map(str, wanted)) if each not in before]
    return {"served": [*before, *counted], "counted": counted}
