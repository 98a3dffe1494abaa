"""The implementation of `arbor.runtime.AgentRuntime`, for programs that embed Arbor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from uuid import UUID

from apps.agents.models import Agent, AgentState, HeartbeatSchedule, ScheduleState
from apps.agents.services.lookup import find_agent, genome_of
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.contacts.services.program_turns import AskedTurn, finalize_turn, prepare_turn
from apps.fleet.creation import create_agent
from apps.fleet.lifecycle import (
    pause_agent,
    resume_agent,
    sleep_agent,
    start_agent,
    stop_agent,
    wake_agent,
)
from apps.fleet.peer_models import find_peer_model
from apps.goals.services.acts import add_goal
from apps.heartbeats.services.inline import allocate, allocate_cycle, run_one_heartbeat, run_ticks
from apps.heartbeats.services.situations.goal_situation import goal_views, plan_views
from apps.heartbeats.services.situations.situation import load_agent
from apps.memories.services.recall.recaller import recall
from apps.memories.services.store.create import teach_agent
from apps.tenants.scope import tenant_transaction
from arbor.agents.genome import AgentGenome
from arbor.agents.lifecycle import AgentStatus
from arbor.errors import GoalStackFull, Invalid, LimitReached, TransitionIllegal
from arbor.goals.plans import PlanStatus
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.views import PlanView
from arbor.heartbeat.working_memory import WorkingMemory, as_stored
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.values import MemoryType, NewMemory, Recalled
from arbor.runtime import (
    AgentRef,
    ConversationAnswer,
    ConversationPrompt,
    Cycle,
    GoalStack,
    LoadedAgent,
    NewGoal,
    Peer,
    Tick,
)
from arbor.selves.trust import trust

#: The services that lead from one status to another; other changes are refused.
_VERBS: Mapping[tuple[AgentStatus, AgentStatus], Callable[..., Agent]] = MappingProxyType(
    {
        (AgentStatus.CREATED, AgentStatus.ACTIVE): start_agent,
        (AgentStatus.STOPPED, AgentStatus.ACTIVE): start_agent,
        (AgentStatus.PAUSED, AgentStatus.ACTIVE): resume_agent,
        (AgentStatus.DORMANT, AgentStatus.ACTIVE): wake_agent,
        (AgentStatus.ACTIVE, AgentStatus.PAUSED): pause_agent,
        (AgentStatus.ACTIVE, AgentStatus.DORMANT): sleep_agent,
        (AgentStatus.ACTIVE, AgentStatus.STOPPED): stop_agent,
        (AgentStatus.PAUSED, AgentStatus.STOPPED): stop_agent,
        (AgentStatus.DORMANT, AgentStatus.STOPPED): stop_agent,
    }
)


class Runtime:
    """The runtime of one tenant. `actor` is the name in the audit log."""

    def __init__(self, *, tenant_id: UUID, actor: str) -> None:
        self._tenant_id = tenant_id
        self._actor = actor

    def spawn(
        self,
        *,
        name: str,
        template: str,
        genome: AgentGenome | None = None,
        ticks: int = 0,
        parent: AgentRef | None = None,
        interval: timedelta | None = None,
        model: str = "",
    ) -> UUID:
        """Create an agent and start it."""
        with tenant_transaction(self._tenant_id):
            parent_id = find_agent(parent).id if parent is not None else None
            agent = create_agent(
                name=name, template_name=template, actor=self._actor, interval=interval, model=model
            )
            if genome is not None:
                agent.genome = genome.model_dump(mode="json")
                agent.save(update_fields=["genome"])
            if parent_id is not None:
                self._audit(agent.id, f"spawned {agent.name} as a child", {"parent": str(parent_id)})
            if ticks:
                allocate(agent_id=agent.id, ticks=ticks, actor=self._actor)
            start_agent(agent_id=agent.id, actor=self._actor)
            agent_id: UUID = agent.id
        return agent_id

    def tick(self, agent: AgentRef) -> Tick:
        """Run one heartbeat in this process."""
        return run_one_heartbeat(agent_id=self._id(agent), tenant_id=self._tenant_id)

    def allocate_ticks(self, agent: AgentRef, ticks: int) -> int:
        """Set an agent's ticks to those of a new cycle."""
        with tenant_transaction(self._tenant_id):
            return allocate(agent_id=find_agent(agent).id, ticks=ticks, actor=self._actor)

    def run_cycle(self, agent: AgentRef, tick_budget: int | None = None) -> Cycle:
        """Run heartbeats until the ticks are used up or nothing is left to do."""
        agent_id = self._id(agent)
        if tick_budget is not None:
            with tenant_transaction(self._tenant_id):
                allocate_cycle(agent_id=agent_id, ticks=tick_budget, actor=self._actor)
        return run_ticks(agent_id=agent_id, tenant_id=self._tenant_id)

    def status(self, agent: AgentRef) -> AgentStatus:
        """Return an agent's status."""
        with tenant_transaction(self._tenant_id):
            return AgentStatus(find_agent(agent).status)

    def set_status(self, agent: AgentRef, status: AgentStatus) -> AgentStatus:
        """Bring an agent to a status by the one operation that leads to it."""
        wanted = _parse_member(AgentStatus, status, "status")
        with tenant_transaction(self._tenant_id):
            row = find_agent(agent)
            present = AgentStatus(row.status)
            if present is wanted:
                return wanted
            verb = _VERBS.get((present, wanted))
            if verb is None:
                possible = ", ".join(after for (before, after) in _VERBS if before is present) or "nothing"
                raise TransitionIllegal(f"{row.name} is {present}; it can become {possible}, not {wanted}")
            return AgentStatus(verb(agent_id=row.id, actor=self._actor).status)

    def inject_goal(self, agent: AgentRef, goal: NewGoal) -> UUID:
        """Add a goal to an agent."""
        with tenant_transaction(self._tenant_id):
            agent_id = find_agent(agent).id
            try:
                created = add_goal(
                    agent_id=agent_id,
                    title=goal.title,
                    description=goal.description,
                    layer=_parse_member(GoalLayer, goal.layer, "goal's layer"),
                    source=_parse_member(GoalSource, goal.source, "goal's source"),
                    state=None
                    if goal.state is None
                    else _parse_member(GoalState, goal.state, "goal's state"),
                    parent_id=goal.parent_id,
                    deadline=goal.deadline,
                    actor=self._actor,
                )
            except LimitReached as error:
                raise GoalStackFull(str(error)) from error
            goal_id: UUID = created.id
        return goal_id

    def goals(self, agent: AgentRef) -> GoalStack:
        """Return an agent's open goals."""
        with tenant_transaction(self._tenant_id):
            row = find_agent(agent)
            genome = genome_of(row)
            views = goal_views(
                agent_id=row.id, traits=genome.traits if genome else None, now=datetime.now(UTC)
            )
        return GoalStack(
            aspirations=[view for view in views if view.layer is GoalLayer.ASPIRATION],
            objectives=[view for view in views if view.layer is GoalLayer.OBJECTIVE],
            tasks=[view for view in views if view.layer is GoalLayer.TASK],
        )

    def active_plan(self, agent: AgentRef) -> PlanView | None:
        """Return the active plan of the agent's most important goal that has one."""
        goals = sorted(
            self.goals(agent).all, key=lambda goal: (goal.state is not GoalState.ACTIVE, -goal.priority)
        )
        order = {goal.id: place for place, goal in enumerate(goals)}
        with tenant_transaction(self._tenant_id):
            plans = [
                plan for plan in plan_views(agent_id=find_agent(agent).id) if plan.status is PlanStatus.ACTIVE
            ]
        return min(plans, key=lambda plan: order.get(plan.goal_id, len(order)), default=None)

    def peer_model(self, agent: AgentRef, peer: AgentRef) -> Peer | None:
        """Return an agent's model of another agent, or of a person by name."""
        with tenant_transaction(self._tenant_id):
            agent_id = find_agent(agent).id
            model = find_peer_model(agent_id, peer)
            if model is None:
                return None
            heartbeats = AgentState.objects.values_list("heartbeats", flat=True).get(agent_id=agent_id)
        return Peer(
            name=model.name,
            agent_id=model.peer_id,
            competence=model.competence,
            reliability=model.reliability,
            interests=model.interests,
            interactions=model.interactions,
            successes=model.successes,
            last_at=model.last_at,
            trust=trust(
                successes=model.successes,
                interactions=model.interactions,
                # The trust at the agent's next heartbeat.
                heartbeat_number=heartbeats + 1,
                last_heartbeat_number=model.last_heartbeat_number,
            ),
        )

    def flush_memory(self, agent: AgentRef, working_memory: WorkingMemory | None = None) -> int:
        """Store an agent's working memory, as given or unchanged, and return its size in bytes."""
        with tenant_transaction(self._tenant_id):
            row = find_agent(agent)
            # Lock in the order of heartbeats, to avoid deadlocks: schedule, then state.
            schedule = HeartbeatSchedule.objects.select_for_update().get(agent_id=row.id)
            if schedule.state in (ScheduleState.QUEUED, ScheduleState.RUNNING):
                raise TransitionIllegal(
                    f"{row.name} has a heartbeat under way, which stores the working memory itself; flush when it has ended"
                )
            state = AgentState.objects.select_for_update().get(agent_id=row.id)
            memory = working_memory or WorkingMemory.model_validate(state.working_memory)
            text = as_stored(memory)
            state.working_memory = memory.model_dump(mode="json")
            state.save(update_fields=["working_memory"])
            if working_memory is not None:
                self._audit(row.id, "stored its working memory", {"bytes": len(text.encode())})
        return len(text.encode())

    def load(self, agent: AgentRef) -> LoadedAgent:
        """Return an agent's full state."""
        with tenant_transaction(self._tenant_id):
            return load_agent(agent if isinstance(agent, UUID) else find_agent(agent).id)

    def remember(
        self,
        agent: AgentRef,
        content: str,
        *,
        type: MemoryType = MemoryType.SEMANTIC,  # noqa: A002 (the name that callers know)
        importance: float | None = None,
        occurred_at: datetime | None = None,
    ) -> UUID:
        """Store a memory and return its id."""
        memory = NewMemory(
            content=content,
            type=_parse_member(MemoryType, type, "memory's type"),
            importance=importance,
            occurred_at=occurred_at or datetime.now(UTC),
            source=self._actor,
        )
        stored = teach_agent(
            tenant_id=self._tenant_id, agent_id=self._id(agent), memory=memory, actor=self._actor
        )
        return stored.ids[0]

    def recall(self, agent: AgentRef, query: str, *, limit: int = 10) -> list[Recalled]:
        """Return an agent's memories about a query, the best first."""
        request = RecallRequest(agent_id=self._id(agent), text=query, limit=limit)
        return recall(tenant_id=self._tenant_id, request=request)

    def prepare_conversation(self, agent: AgentRef, text: str, *, person: str) -> ConversationPrompt:
        """Store a person's turn and return the prompt for a model of the program's own."""
        agent_id = self._id(agent)
        turn = prepare_turn(tenant_id=self._tenant_id, agent_id=agent_id, person=person, text=text)
        request = turn.prepared.request
        return ConversationPrompt(
            agent_id=agent_id,
            conversation_id=turn.session_id,
            turn_id=turn.turn_id,
            system=request.system,
            user="\n\n".join(message.content for message in request.messages),
            schema=request.schema or {},
            recalled=turn.prepared.recalled,
        )

    def finalize_conversation(
        self, prompt: ConversationPrompt, reply: str, *, model: str = ""
    ) -> ConversationAnswer:
        """Store a model's answer after the check of boundaries, and remember both turns."""
        answer = finalize_turn(
            tenant_id=self._tenant_id,
            agent_id=prompt.agent_id,
            turn=AskedTurn(
                turn_id=prompt.turn_id, session_id=prompt.conversation_id, recalled=prompt.recalled
            ),
            reply=reply,
            model=model,
        )
        return ConversationAnswer(
            conversation_id=prompt.conversation_id,
            text=answer.content,
            boundaries=answer.detail.get("boundaries", []),
        )

    def nop_count(self, agent: AgentRef) -> int:
        """Return the number of heartbeats in a row without a usable reply."""
        with tenant_transaction(self._tenant_id):
            agent_id = find_agent(agent).id
            count: int = AgentState.objects.values_list("nops", flat=True).get(agent_id=agent_id)
        return count

    def _id(self, agent: AgentRef) -> UUID:
        with tenant_transaction(self._tenant_id):
            agent_id: UUID = find_agent(agent).id
        return agent_id

    def _audit(self, agent_id: UUID, message: str, detail: Mapping[str, object]) -> None:
        record(
            action=AuditAction.OPERATOR_ACT,
            actor=self._actor,
            agent_id=agent_id,
            message=message,
            detail=dict(detail),
        )


def _parse_member[S: StrEnum](kind: type[S], value: str, what: str) -> S:
    """Return the enum member with this value. Raises Invalid."""
    try:
        return kind(value)
    except ValueError:
        raise Invalid(f"a {what} is one of {', '.join(kind)}, got {value!r}") from None
