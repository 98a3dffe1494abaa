"""Goals: what the beat did to them, as the reply says and as the actions turned out."""

from __future__ import annotations

from apps.heartbeats.handlers.goal_changes import Changes, is_work
from arbor.clock import Clock
from arbor.heartbeat.decision import Decision, Verdict
from arbor.heartbeat.guarding import paths_of
from arbor.heartbeat.reply import Reply
from arbor.heartbeat.results import ActionOutcome, ActionResult
from arbor.pipeline.engine import Context, NodeResult, Phase

#: Put off, not tried: the intent waits on, and the try does not count.
_PUT_OFF = (Verdict.TOO_LITTLE_ENERGY, Verdict.TOO_MANY, Verdict.TOO_SOON, Verdict.UNAVAILABLE)


class Goals:
    """Applies the reply's goal updates and new goals, the outcome of intents, and what other actions did for a goal."""

    phase = Phase.INSIDE

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run(self, context: Context) -> NodeResult:
        """Change the backlog; an item the backlog refuses is dropped with its reason, the others stand."""
        reply: Reply = context["reply"]
        served = _served(context["results"], context["decisions"])
        put_off = _put_off(context["results"], context["decisions"])
        meant = _meant(context["results"])
        if not (served or put_off or meant or reply.goal_updates or reply.new_goals):
            return NodeResult()
        changes = Changes(context, self._clock.now())
        for result in served:
            changes.apply(f"actions[{result.index}].intent_id", changes.intent, result)
        for result in put_off:
            changes.apply(f"actions[{result.index}].intent_id", changes.put_off, result)
        for result in meant:
            changes.serve(result)
        untaken = context.get("untaken", [])
        for path, goal in zip(paths_of("new_goals", reply.new_goals, untaken), reply.new_goals, strict=True):
            changes.apply(path, changes.add, goal)
        paths = paths_of("goal_updates", reply.goal_updates, untaken)
        for path, update in zip(paths, reply.goal_updates, strict=True):
            changes.apply(path, changes.update, update)
        saved = changes.save()
        return NodeResult(
            updates={**saved.updates, **_in_hand(context, changes.untried)}, changed=saved.changed
        )


def _served(results: list[ActionResult], decisions: list[Decision]) -> list[ActionResult]:
    """Return the results of intents that were tried: what worked first, for a step that fails may end its plan."""
    put_off = {decision.index for decision in decisions if decision.verdict in _PUT_OFF}
    put_off |= {result.index for result in _put_off(results, decisions)}
    tried = [result for result in results if result.intent_id and result.index not in put_off]
    return sorted(tried, key=lambda result: result.outcome in (ActionOutcome.FAILURE, ActionOutcome.BLOCKED))


def _meant(results: list[ActionResult]) -> list[ActionResult]:
    """Return the results of actions that did something for a goal, without being a step that was planned for it."""
    return [result for result in results if not result.intent_id and is_work(result)]


def _in_hand(context: Context, untried: set[str]) -> dict[str, list[str]]:
    """Return which intents the beat has had in hand: one that was let go counts anew if a later turn takes it up."""
    back = untried & {*context.get("counted", [])}
    return {"served": [each for each in context.get("served", []) if each not in back]} if back else {}


def _put_off(results: list[ActionResult], decisions: list[Decision]) -> list[ActionResult]:
    """Return the results of intents that were to be carried out, and whose action then found that it is too soon."""
    ran = {decision.index for decision in decisions if decision.runs}
    return [
        result
        for result in results
        if result.intent_id and result.index in ran and result.outcome is ActionOutcome.BLOCKED
    ]
