"""Orient the agent: check for problems, choose focus and mode, check the percepts' boundaries, recall."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from arbor.goals.goal_rules import GoalRule, calls_for_work
from arbor.goals.values import GoalLayer, GoalState
from arbor.heartbeat.effects import LevelChange
from arbor.heartbeat.failure_modes import RecentActivity, notices_of
from arbor.heartbeat.focus import NOT_IN_CONSOLIDATION, focus_text, mode_of
from arbor.heartbeat.guards import boundary_matches_of
from arbor.heartbeat.influence import influence_of
from arbor.heartbeat.inputs import Opening
from arbor.heartbeat.needs import BufferItems, Embedding
from arbor.heartbeat.own_past import own_past_filter, recall_memories
from arbor.heartbeat.pacing import (
    BY_ITSELF,
    ENDS_WHEN_IDLE,
    NextHeartbeat,
    WakeReasons,
    idle_reason,
    next_heartbeat,
    off_hours_reason,
)
from arbor.heartbeat.situation import BufferItemView, MemoryView, Mode, Situation
from arbor.heartbeat.state import Focus, HeartbeatState
from arbor.heartbeat.steps.authority import approved_requests
from arbor.heartbeat.usage import BudgetLevel, limit_skip_reason, renewed_at
from arbor.memory.episodes import summarized_episode
from arbor.memory.values import Recalled
from arbor.pipeline.engine import NodeResult, Steps
from arbor.selves.drives import (
    TRIGGERING_DRIVES,
    Drives,
    after_idle_heartbeat,
    next_urgent_at,
    read_drives,
    satisfy_by_contact,
)
from arbor.values import replace

#: The origin of seed 000 recalls five memories.
RELEVANT_SHOWN = 5
#: The modes whose heartbeats count as reflections of an agent with a blocked goal: in each, the agent chooses goals or works on one.
_REFLECTING_WHILE_BLOCKED = frozenset({Mode.REFLECTION, Mode.PLAN_EXECUTION, Mode.GOAL_PURSUIT})
#: The most buffer items that are shown.
BUFFER_ITEMS_SHOWN = 3


def observe(heartbeat: HeartbeatState) -> NodeResult[HeartbeatState]:
    """Record the initial energy."""
    return NodeResult(state=replace(heartbeat, energy_start=heartbeat.situation.energy))


def background_checks(heartbeat: HeartbeatState) -> NodeResult[HeartbeatState]:
    """Detect problems, and a change of the budget level."""
    opening = require_opening(heartbeat)
    recent_activity = opening.recent_activity
    notices = notices_of(recent_activity)
    changed = [f"noticed {notice.kind.value.replace('_', ' ')}" for notice in notices]
    heartbeat = heartbeat.with_situation(notices=notices, degradation=recent_activity.level)
    heartbeat = heartbeat.with_state(notices=[notice.model_dump(mode="json") for notice in notices])
    if recent_activity.level is not opening.level_before:
        changed.insert(0, f"budget: {opening.level_before} → {recent_activity.level}")
        nearest = recent_activity.nearest_limit
        whose = nearest.whose.replace("your", "its", 1) if nearest else ""
        left = f"{nearest.left:.0%} of {whose} {nearest.what}" if nearest else "all of it"
        heartbeat = heartbeat.with_effects(
            level=LevelChange(before=opening.level_before, after=recent_activity.level, left=left)
        )
    return NodeResult(state=heartbeat, changed=tuple(changed))


def idle(heartbeat: HeartbeatState) -> NodeResult[HeartbeatState]:
    """Skip the heartbeat if it is idle or not allowed; `idle` is the reason."""
    opening, now = require_opening(heartbeat), heartbeat.situation.environment.now
    reason, until = _why_idle(heartbeat, opening)
    if not reason:
        return NodeResult(state=heartbeat.with_state(idle_heartbeats=0))
    idle_heartbeats = opening.idle_heartbeats + 1
    # Before `urgent_at`, which assumes that the drives have moved until now: they stopped when the heartbeat was due.
    heartbeat = heartbeat.with_state(
        idle_heartbeats=idle_heartbeats,
        stale_heartbeats=heartbeat.situation.stale_heartbeats + 1,
        drives=after_idle_heartbeat(_drives(heartbeat, now), now=now).to_json(),
    )
    following = next_heartbeat(
        heartbeat.schedule,
        now=now,
        idle_heartbeats=idle_heartbeats,
        shift=heartbeat.shift,
        urgent_at=urgent_at(heartbeat),
    )
    if until is not None:
        following = _after_renewal(heartbeat, following, until)
    return NodeResult(state=with_next(replace(heartbeat, idle=reason), following), changed=(reason,))


def _after_renewal(heartbeat: HeartbeatState, following: NextHeartbeat, renewal: datetime) -> NextHeartbeat:
    """Return the next heartbeat after one that the daily budget did not permit: waiting for the renewal is no idleness.

    A halted agent has it after the renewal. Other agents wait no longer than until the renewal, or one interval if that is later.
    Where a user waits, the agent goes on at the renewal, even outside its active hours.
    """
    schedule, situation = heartbeat.schedule, heartbeat.situation
    user_waiting = situation.environment.user_waiting
    # Spread the agents that wait for the new day.
    spread = renewal + schedule.interval * abs(heartbeat.shift)
    due = spread if user_waiting else max(spread, situation.environment.now + schedule.interval)
    is_early = situation.degradation is BudgetLevel.HALT and following.due_at < renewal
    if not is_early and following.due_at <= due:
        return following
    due = spread if is_early else due
    hours = None if user_waiting else schedule.hours
    return NextHeartbeat(due_at=hours.at_or_after(due) if hours else due)


def with_next(heartbeat: HeartbeatState, following: NextHeartbeat) -> HeartbeatState:
    """Return the state with the next heartbeat; the drives move until then, within the active hours."""
    now = heartbeat.situation.environment.now
    hours = heartbeat.schedule.hours
    until = following.due_at if hours is None else min(following.due_at, hours.end_from(now))
    drives = _drives(heartbeat, now).model_copy(update={"until": until})
    heartbeat = heartbeat.with_state(drives=drives.to_json())
    return replace(heartbeat, next=following)


def require_opening(heartbeat: HeartbeatState) -> Opening:
    """Return the facts for the first leg; raises RuntimeError in a later one."""
    if heartbeat.opening is None:
        raise RuntimeError("this step belongs before the first call of a model")
    return heartbeat.opening


def urgent_at(heartbeat: HeartbeatState) -> datetime | None:
    """Return when the next drive becomes urgent, if one will."""
    now = heartbeat.situation.environment.now
    following = next_urgent_at(_drives(heartbeat, now), now)
    return following[0] if following else None


def _drives(heartbeat: HeartbeatState, now: datetime) -> Drives:
    """Return the drives as this heartbeat changed them, or else as it found them; the latest contact counts."""
    return satisfy_by_contact(
        read_drives(heartbeat.state.drives or heartbeat.selfhood.drives, now), heartbeat.selfhood.contact
    )


def _why_idle(heartbeat: HeartbeatState, opening: Opening) -> tuple[str, datetime | None]:
    """Return the skip reason, empty if none, and when the daily budget is renewed if that is the reason."""
    situation = heartbeat.situation
    now = situation.environment.now
    asked_for = heartbeat.trigger not in BY_ITSELF
    level = situation.degradation
    user_waiting = situation.environment.user_waiting
    reason = limit_skip_reason(
        level,
        user_waiting=user_waiting,
        asked_for=asked_for,
        serves_goal=bool(_work(situation)),
        now=now,
    )
    if reason:
        return reason, renewed_at(now)
    if reason := off_hours_reason(heartbeat.schedule.hours, now=now, asked_for=asked_for or user_waiting):
        return reason, None
    rules = heartbeat.rules
    reasons = _wake_reasons(heartbeat, opening)
    return idle_reason(reasons, reflect_every=rules.reflect_every, pause=rules.reflect_pause), None


def _wake_reasons(heartbeat: HeartbeatState, opening: Opening) -> WakeReasons:
    situation = heartbeat.situation
    memory, now = situation.working_memory, situation.environment.now
    by_rule = situation.model_is_reflex
    # The thoughts of a new agent are those of its template.
    thinks = situation.heartbeat_number > 1 and memory.thoughts
    since_thought = now - memory.thoughts[-1].at if thinks else None
    # Rules find nothing to consolidate a few seconds after their last thought.
    is_early = by_rule and since_thought is not None and since_thought < heartbeat.rules.reflect_pause
    drives = _drives(heartbeat, now)
    # An agent that thinks about a blocked goal does so in the mode of a goal.
    modes = _REFLECTING_WHILE_BLOCKED if _blocked_goals(situation) else {Mode.REFLECTION}
    reflected = (
        number
        for number, recent in enumerate(opening.recent_activity.heartbeats, start=1)
        if recent.status == "done" and recent.mode in modes
    )
    return WakeReasons(
        asked_for=heartbeat.trigger not in ENDS_WHEN_IDLE,
        percepts=len(situation.percepts),
        signals=sum(not signals.source for signals in situation.signals),
        work=_work(situation) + len(approved_requests(heartbeat)),
        proposals=_new_proposals(situation, None if by_rule else heartbeat.found.last_heartbeat_at),
        goals_to_activate=_has_goals_to_activate(situation, opening.recent_activity),
        urgent_drive=any(drives.is_pressing(drive, now) for drive in TRIGGERING_DRIVES),
        consolidation=mode_of(situation) is Mode.CONSOLIDATION and not is_early,
        since_reflection=next(reflected, None),
        since_thought=since_thought,
        wonders=bool(not by_rule or memory.curiosity or not thinks),
    )


def _work(situation: Situation) -> int:
    """Return the number of goals and intents to work on, without the goal to spend less, blocked ones and those whose plan waits.

    An agent thinks about its blocked goals as often as it reflects: a model call at each interval would unblock none.
    """
    blocked = _blocked_goals(situation)
    saving = {goal.id for goal in situation.goals if goal.rule == GoalRule.SURVIVAL} | blocked
    waiting = situation.waiting_goals | blocked
    goals = sum(
        calls_for_work(goal.layer, goal.rule) and goal.id not in waiting for goal in situation.active_goals
    )
    return goals + sum(intent.goal_id not in saving for intent in situation.pending_intents)


def _has_goals_to_activate(situation: Situation, recent: RecentActivity) -> bool:
    """Return whether a reflection should choose among queued goals: no goal is active, and the agent worked on one since it reflected.

    If the reflection activates none, the next one is as far away as without goals.
    """
    if any(goal.layer is not GoalLayer.ASPIRATION for goal in situation.active_goals):
        return False
    modes = (past.mode for past in recent.heartbeats if past.status == "done")
    if next((mode for mode in modes if mode in _REFLECTING_WHILE_BLOCKED), "") in ("", Mode.REFLECTION):
        return False
    queued = situation.goals_in(GoalState.QUEUED)
    return any(calls_for_work(goal.layer, goal.rule) and not goal.blocked_by for goal in queued)


def _blocked_goals(situation: Situation) -> frozenset[str]:
    return frozenset(goal.id for goal in situation.active_goals if goal.blocked_by)


def _new_proposals(situation: Situation, since: datetime | None) -> int:
    """Return the number of proposals since the last heartbeat: those that a model has left undecided wait for the next reflection.

    Conversations show no proposals, so a thought of a conversation leaves them new.
    """
    times = [proposal.at for proposal in situation.proposals]
    return sum(since is None or at is None or at > since for at in times)


def focus(heartbeat: HeartbeatState) -> Steps[HeartbeatState]:
    """Choose the query of the recall, and embed it with the percepts."""
    situation = heartbeat.situation
    text = focus_text(situation)
    percept_texts = [percept.content for percept in situation.percepts if percept.content.strip()]
    vectors: dict[str, Any] = {}
    if text or percept_texts:
        vectors = yield Embedding(
            model=heartbeat.embedding_model,
            queries=[text] if text else [],
            plain=percept_texts,
            boundaries=heartbeat.selfhood.boundaries if percept_texts else None,
        )
    return NodeResult(
        state=replace(heartbeat, focus=Focus(text=text, vector=vectors.get(text), vectors=vectors))
    )


def guard(heartbeat: HeartbeatState) -> NodeResult[HeartbeatState]:
    """Add the boundary matches of the percepts to the situation."""
    situation = heartbeat.situation
    if not situation.percepts:
        return NodeResult(state=heartbeat)
    vectors = heartbeat.focus.vectors if heartbeat.focus else {}
    matches = boundary_matches_of(situation.percepts, heartbeat.boundaries, vectors)
    return NodeResult(
        state=heartbeat.with_situation(boundary_matches=matches),
        changed=tuple(dict.fromkeys(f"{match.boundary}: {match.why}" for match in matches)),
    )


def orient(heartbeat: HeartbeatState) -> Steps[HeartbeatState]:
    """Recall memories and buffer items about the focus, and the past that bears on the work."""
    focused = heartbeat.focus or Focus(text="")
    if not focused.text:
        return NodeResult(state=replace(heartbeat.with_situation(relevant=[], held=[]), focus=None))
    opening = heartbeat.opening
    memories: list[Recalled] = yield from recall_memories(
        heartbeat,
        focused.text,
        vector=focused.vector,
        limit=RELEVANT_SHOWN,
        only=own_past_filter(heartbeat.situation),
        filters=opening.filters if opening else (),
        # The mood biases this recall, not those of actions.
        mood=opening.mood if opening else None,
    )
    buffer_items: list[BufferItemView] = []
    if opening and opening.buffer_item_count:
        buffer_items = yield BufferItems(
            text=focused.text,
            vector=focused.vector,
            model=heartbeat.embedding_model,
            limit=BUFFER_ITEMS_SHOWN,
        )
    heartbeat = heartbeat.with_situation(
        relevant=[memory_view(memory) for memory in memories], held=buffer_items
    )
    heartbeat = heartbeat.with_recall(memories)
    if opening:
        heartbeat = heartbeat.with_situation(**influence_of(heartbeat.situation, opening.past))
    return NodeResult(state=replace(heartbeat, focus=None))


def select_mode(heartbeat: HeartbeatState) -> NodeResult[HeartbeatState]:
    """Choose the mode, and for consolidation its own actions."""
    mode = mode_of(heartbeat.situation)
    if mode is Mode.CONSOLIDATION:
        offers = heartbeat.situation.actions
        heartbeat = heartbeat.with_situation(
            actions=[offer for offer in offers if offer.name not in NOT_IN_CONSOLIDATION]
        )
    return NodeResult(state=replace(heartbeat.with_situation(mode=mode), mode=mode.value))


def memory_view(memory: Recalled) -> MemoryView:
    return MemoryView(
        id=str(memory.id),
        type=memory.type,
        content=memory.content,
        role=memory.role,
        episode=str(summarized_episode(memory.session) or ""),
        at=memory.occurred_at,
        importance=memory.importance,
        trust=memory.trust,
        score=round(memory.score, 4) if memory.components.total else None,
        details=list(memory.details),
    )
