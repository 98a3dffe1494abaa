"""Operations of people and of maintenance on one agent, each in a transaction of its own."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from apps.agents.models import Agent
from apps.contacts.services.chat import open_session
from apps.fleet.contact import message_agent
from apps.fleet.lifecycle import destroy_agent, pause_agent
from apps.memories.models import BufferItem
from apps.memories.services.graph.relations import NewRelation, relate
from apps.memories.services.retention.buffer import add_buffer_items, promote
from apps.memories.services.store.create import Creation, create_memories
from apps.selves.models import Belief
from apps.selves.services.beliefs import add_belief, revise_belief
from apps.selves.services.decisions import ProposalVerdict, decide_proposal
from apps.selves.services.evidence import record_new_evidence
from apps.selves.services.proposals import propose, propose_by_person
from apps.tenants.scope import tenant_transaction
from arbor.memory.buffer import NewBufferItem
from arbor.memory.details import SemanticDetail
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation
from arbor.selves.proposals import NewProposal, ProposalKind
from arbor.selves.values import BeliefCategory, BeliefRevision, NewBelief
from tests.integration.heartbeats.heartbeat_runner import store_memory
from tests.support.races import in_tenant

type Operation = Callable[[], object]

ANN = "cli:ann"


class Writers:
    """Operations of people and of maintenance on one agent, by name."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.ground = store_memory(agent, "I waited for the ferry, twice.")
        with tenant_transaction(agent.tenant_id):
            new = NewBelief(
                statement="Ferries are late.",
                category=BeliefCategory.WORLD,
                confidence=0.6,
                stability=0.2,
                source="test",
            )
            self.belief: Belief = add_belief(agent_id=agent.id, belief=new, actor=ANN)
            add_buffer_items(
                agent_id=agent.id, items=[NewBufferItem(content="A parcel came.", importance=0.9)]
            )
            self.item_id: UUID = BufferItem.objects.get(agent_id=agent.id).id
            self.proposals = {
                kind: self._propose(kind) for kind in (ProposalKind.IDENTITY, ProposalKind.FACT)
            }

    def open_conversation(self) -> object:
        return open_session(agent_id=self.agent.id, person=ANN)

    def pause(self) -> object:
        return pause_agent(agent_id=self.agent.id, actor=ANN)

    def message(self) -> object:
        return message_agent(agent_id=self.agent.id, text="Are you there?", actor=ANN)

    def destroy(self) -> object:
        return destroy_agent(agent_id=self.agent.id, confirm=self.agent.name, actor=ANN)

    def _decide(self, kind: ProposalKind, decision: ProposalVerdict) -> object:
        return decide_proposal(proposal_id=self.proposals[kind], decision=decision, decided_by=ANN)

    def accept_identity(self) -> object:
        return self._decide(ProposalKind.IDENTITY, ProposalVerdict.ACCEPT)

    def accept_fact(self) -> object:
        return self._decide(ProposalKind.FACT, ProposalVerdict.ACCEPT)

    def propose(self) -> object:
        new = NewProposal(kind=ProposalKind.FACT, content="The sea is calm.", confidence=0.7, source=ANN)
        return propose_by_person(agent_id=self.agent.id, new=new)

    def reject(self) -> object:
        return self._decide(ProposalKind.FACT, ProposalVerdict.REJECT)

    def defer(self) -> object:
        return self._decide(ProposalKind.FACT, ProposalVerdict.DEFER)

    def believe(self) -> object:
        new = NewBelief(
            statement="The sea is calm.",
            category=BeliefCategory.WORLD,
            confidence=0.6,
            stability=0.2,
            source="test",
        )
        return add_belief(agent_id=self.agent.id, belief=new, actor=ANN)

    def doubt_belief(self) -> object:
        return revise_belief(belief_id=self.belief.id, revision=BeliefRevision(confidence=0.5), actor=ANN)

    def relate_belief(self) -> object:
        ends = (
            GraphNode(GraphNodeKind.MEMORY, UUID(self.ground)),
            GraphNode(GraphNodeKind.BELIEF, self.belief.id),
        )
        return relate(
            agent_id=self.agent.id,
            new=NewRelation(source=ends[0], target=ends[1], relation=Relation.SUPPORTS),
        )

    def teach_against_belief(self) -> object:
        creation = Creation(
            content="The ferry was early.",
            detail=SemanticDetail(),
            source="operator",
            beliefs={self.belief.id: Relation.CONTRADICTS},
        )
        return create_memories(
            tenant_id=self.agent.tenant_id,
            agent_id=self.agent.id,
            creations=[creation],
            actor=ANN,
            update_trust=record_new_evidence,
        )

    def promote_item(self) -> object:
        return promote(
            tenant_id=self.agent.tenant_id, agent_id=self.agent.id, item_id=self.item_id, actor=ANN
        )

    def operation(self, name: str) -> Operation:
        """Return the operation of this name, in a transaction of its own."""

        operation: Operation = getattr(self, name)
        return operation if name in _OWN_TRANSACTIONS else in_tenant(self.agent.tenant_id, operation)

    def _propose(self, kind: ProposalKind) -> UUID:
        new = NewProposal(
            kind=kind,
            content=f"I wait ({kind}).",
            confidence=0.7,
            source="test",
            change={"aspect": "self_concept"} if kind is ProposalKind.IDENTITY else {},
            evidence=[self.ground],
        )
        return UUID(str(propose(agent_id=self.agent.id, proposals=[new]).made[0].id))


#: Operations whose services open their transactions themselves.
_OWN_TRANSACTIONS = frozenset({"teach_against_belief", "promote_item"})
