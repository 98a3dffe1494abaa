"""Builders of the inputs of heartbeat rules."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from arbor.authority.approvals import ApprovalStatus
from arbor.contacts.cooldown import REACH_OUT_AGENT
from arbor.goals.intents import IntentStatus
from arbor.goals.plans import PlanStatus, StepStatus
from arbor.goals.review import Advice
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.prompts.prompt import build_prompt
from arbor.heartbeat.reflex.policy import reflex_reply
from arbor.heartbeat.situation import (
    ApprovalRequestView,
    BufferItemView,
    ClusterView,
    Environment,
    LastHeartbeat,
    MemoryView,
    Mode,
    Notice,
    NoticeKind,
    PerceptView,
    Situation,
)
from arbor.heartbeat.views import (
    ActionTallyView,
    AspectView,
    AttemptView,
    BeliefView,
    ContradictionView,
    DriveView,
    ExperienceView,
    GoalView,
    IntentView,
    IssueView,
    MatchedBoundary,
    MoodView,
    PeerView,
    PlanView,
    PrecedentView,
    PreferenceView,
    ProposalView,
    PublicationView,
    StepHandlerView,
    StepView,
    SubscribedSignal,
)
from arbor.heartbeat.working_memory import Thought, WorkingMemory
from arbor.memory.values import MemoryType
from arbor.selves.boundaries import BoundaryResponse
from arbor.selves.drives import Drive
from arbor.selves.proposals import ProposalKind
from arbor.selves.values import AspectKind, BeliefCategory, BeliefStatus

NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
NONCE = "4f9c2b7a81d06e35"
CHARACTER = "# Character\nMira is patient."


def goal(name: str = "harbour", **changes: Any) -> GoalView:
    values: dict[str, Any] = {
        "id": f"goal-{name}",
        "title": f"Map the {name}",
        "description": f"Every part of the {name} has a name",
        "state": GoalState.ACTIVE,
        "layer": GoalLayer.OBJECTIVE,
        "source": GoalSource.ROLE,
        "priority": 2.0,
    }
    return GoalView(**(values | changes))


def intent(name: str = "look", **changes: Any) -> IntentView:
    values: dict[str, Any] = {
        "id": f"intent-{name}",
        "goal_id": "goal-harbour",
        "action": "recall",
        "description": f"First, {name}",
        "status": IntentStatus.PENDING,
    }
    return IntentView(**(values | changes))


def memory(name: str = "pier", **changes: Any) -> MemoryView:
    values: dict[str, Any] = {
        "id": f"memory-{name}",
        "type": MemoryType.EPISODIC,
        "content": f"The {name} was rebuilt after the storm",
        "role": "Ada",
        "at": NOW,
    }
    return MemoryView(**(values | changes))


def percept(content: str = "The ferry is late", **changes: Any) -> PerceptView:
    values: dict[str, Any] = {"id": "percept-1", "kind": "user_message", "content": content, "at": NOW}
    return PerceptView(**(values | changes))


def proposal(name: str = "maps", **changes: Any) -> ProposalView:
    values: dict[str, Any] = {
        "id": f"proposal-{name}",
        "kind": ProposalKind.IDENTITY,
        "content": f"I like {name}",
        "confidence": 0.8,
    }
    return ProposalView(**(values | changes))


def situation(**changes: Any) -> Situation:
    values: dict[str, Any] = {
        "agent_id": "0198c0de-0000-7000-8000-000000000001",
        "name": "Mira",
        "public_id": "agent_ab12",
        "tenant": "acme",
        "heartbeat_number": 3,
        "mode": Mode.REFLECTION,
        "environment": Environment(now=NOW),
        "energy": 10.0,
        "max_energy": 20.0,
        # All that an agent without other agents beside it can do.
        "actions": ACTIONS.offers([name for name in ACTIONS if name != REACH_OUT_AGENT]),
    }
    return Situation(**(values | changes))


def full_situation() -> Situation:
    """Return a situation that fills each section of the prompt except the tools."""
    return situation(
        mode=Mode.GOAL_PURSUIT,
        environment=Environment(now=NOW, user_waiting=True, hours_since_user=2.5, pending_percepts=7),
        goals=[
            goal("harbour", notes=["counted the piers"], fraction=0.4, deadline=NOW, flags=["stale"]),
            goal("market", state=GoalState.QUEUED),
            goal("attic", state=GoalState.BACKBURNER),
        ],
        aspects=[AspectView(id="aspect-1", kind=AspectKind.SELF_CONCEPT, content="A maker of maps")],
        beliefs=[
            BeliefView(
                id="belief-1",
                category=BeliefCategory.WORLD,
                statement="The tide keeps its hours",
                confidence=0.9,
            ),
            BeliefView(
                id="belief-2",
                category=BeliefCategory.OTHERS,
                statement="Pilots exaggerate",
                confidence=0.4,
                status=BeliefStatus.QUESTIONED,
            ),
        ],
        intents=[intent("look"), intent("ask", action="reflect", attempts=1)],
        recent=[memory("pier"), memory("crane")],
        relevant=[memory("lighthouse", score=0.7)],
        signals=[
            SubscribedSignal(
                name="memory.goal_achieved",
                source="Ben",
                count=2,
                at=NOW,
                subjects=["Chart the reef", "Rest"],
            )
        ],
        clusters=[
            ClusterView(
                name="The harbour at night",
                keywords=["lamps", "tide"],
                emotional_valence=0.5,
                emotional_intensity=0.7,
                activation=1.2,
            ),
            ClusterView(name="Accounts", keywords=["ledger"], emotional_valence=-0.9),
            ClusterView(name="Lost keys", emotional_valence=-0.4, emotional_intensity=0.3),
        ],
        plans=[
            PlanView(
                id="plan-1",
                goal_id="goal-harbour",
                status=PlanStatus.ACTIVE,
                steps=[
                    StepView(
                        position=1, action="recall", description="Look first", status=StepStatus.COMMITTED
                    )
                ],
            )
        ],
        approvals=[
            ApprovalRequestView(
                id="approval-1",
                status=ApprovalStatus.DENIED,
                action="reach_out_public",
                about="The harbour is open",
                reason="not before Monday",
            )
        ],
        issues=[IssueView(advice=Advice.ATTEND, text="It is stale", goal_id="goal-harbour")],
        mood=MoodView(valence=0.3, arousal=0.6),
        drives=[DriveView(name=Drive.CURIOSITY, level=0.9, urgent=True)],
        capabilities=[ActionTallyView(action="recall", attempts=4, successes=3)],
        experiences=[
            ExperienceView(
                action="recall", outcome="failure", lesson="Ask for one thing at a time", heartbeat_number=2
            )
        ],
        preferences=[PreferenceView(key="tone", value="brief")],
        peers=[PeerView(name="Otto", trust=0.5, present=True)],
        contradictions=[
            ContradictionView(
                belief_id="belief-1",
                statement="The tide keeps its hours",
                memory_id="memory-late",
                content="The tide was late",
            )
        ],
        proposals=[
            ProposalView(id="proposal-1", kind=ProposalKind.IDENTITY, content="I like maps", confidence=0.8)
        ],
        boundary_matches=[
            MatchedBoundary(
                boundary="no_harm",
                response=BoundaryResponse.FLAG,
                description="I do not hurt",
                why="it says hurt",
                about="percept-1",
            )
        ],
        held=[BufferItemView(content="Somebody sang on the quay", at=NOW)],
        notices=[Notice(kind=NoticeKind.HOARDING, text="You hardly use your energy")],
        percepts=[percept()],
        attempts=[AttemptView(title="Map the old pier", outcome="failure", at=NOW, reasons=["no boat"])],
        tallies=[ActionTallyView(action="recall", attempts=3, successes=1)],
        precedents=[
            PrecedentView(
                action="reach_out_public", about="The pier", approved=False, reason="too early", at=NOW
            )
        ],
        publications=[
            PublicationView(audience="public", content="The reef", at=NOW, outcome="read, not answered")
        ],
        handlers=[StepHandlerView(name="Bert", steps=3, completed=2, tries=1.3, error="it was dark")],
        working_memory=WorkingMemory(
            thoughts=[Thought(text="The tide is out", at=NOW)],
            concerns=["the map is old"],
            curiosity=["who built the lighthouse"],
            engagement=0.6,
        ),
        last_heartbeat=LastHeartbeat(
            number=2, mode=Mode.REFLECTION, narrative="I rested.", outcomes=["rest: rested"]
        ),
    )


def section(name: str, **changes: Any) -> str:
    """Return the text of one section of the prompt; `changes` are fields of the situation."""
    prompt = build_prompt(situation(**changes), CHARACTER, NONCE)
    return next(part.text for part in prompt.sections if part.name == name)


def reflex(view: Situation) -> dict[str, Any]:
    """Return the reply of the reflex policy to a situation given as JSON, as its adapter gives it."""
    return reflex_reply(view.model_dump(mode="json"))


def action_names(reply: dict[str, Any]) -> list[str]:
    """Return the names of a reply's actions, in order."""
    return [action["action"] for action in reply["actions"]]
