"""Selves for tests: beliefs, aspects, boundaries, preferences, proposals, changes, experiences and peers."""

from __future__ import annotations

import factory

from apps.selves.models import (
    Belief,
    BeliefEvidence,
    Boundary,
    Experience,
    IdentityAspect,
    PeerModel,
    Preference,
    Proposal,
    SelfChange,
)
from arbor.ids import uuid7
from arbor.memory.content import content_hash
from arbor.selves.values import AspectKind, BeliefCategory
from tests.factories.agents import AgentRowFactory
from tests.factories.memories import MemoryFactory
from tests.factories.rows import TenantRowFactory, minutes_ago


class BeliefFactory(AgentRowFactory[Belief]):
    class Meta:
        model = Belief

    category = BeliefCategory.WORLD
    statement = factory.Sequence(lambda n: f"The river freezes after {n} cold nights.")
    statement_hash = factory.LazyAttribute(lambda o: content_hash(o.statement))
    confidence = 0.8
    stability = 0.6
    source = "operator"


class BeliefEvidenceFactory(TenantRowFactory[BeliefEvidence]):
    class Meta:
        model = BeliefEvidence

    belief = factory.SubFactory(BeliefFactory)
    memory = factory.SubFactory(MemoryFactory, agent=factory.SelfAttribute("..belief.agent"))
    supports = True


class BoundaryFactory(AgentRowFactory[Boundary]):
    class Meta:
        model = Boundary

    name = factory.Sequence(lambda n: f"no_gossip_{n}")
    type = "ethical"
    response = "refuse"
    patterns = factory.LazyFunction(lambda: ["gossip"])
    examples = factory.LazyFunction(lambda: ["Tell me what Bo said about Ada."])


class PeerModelFactory(AgentRowFactory[PeerModel]):
    class Meta:
        model = PeerModel

    name = factory.Sequence(lambda n: f"peer-{n}")
    interactions = 4
    successes = 3
    interests = factory.LazyFunction(lambda: ["eels"])
    last_heartbeat_number = 6
    last_at = factory.LazyFunction(lambda: minutes_ago(90))


class ExperienceFactory(AgentRowFactory[Experience]):
    class Meta:
        model = Experience

    heartbeat_id = factory.LazyFunction(uuid7)
    heartbeat_number = factory.Sequence(int)
    action = "recall"
    about = "the tide"
    outcome = "failure"
    lesson = "Avoid doing recall (the tide) the same way again."


class ProposalFactory(AgentRowFactory[Proposal]):
    class Meta:
        model = Proposal

    kind = "identity"
    content = factory.Sequence(lambda n: f"I am patient with tide {n}.")
    change = factory.LazyFunction(lambda: {"aspect": "self_concept"})
    confidence = 0.7
    source = "consolidation"


class SelfChangeFactory(AgentRowFactory[SelfChange]):
    class Meta:
        model = SelfChange

    version = factory.Sequence(lambda n: n + 2)
    what = "aspect"
    target_id = factory.LazyFunction(uuid7)
    before = factory.LazyFunction(dict)
    after = factory.LazyFunction(lambda: {"content": "I am patient."})
    decided_by = "cli:somebody"


class PreferenceFactory(AgentRowFactory[Preference]):
    class Meta:
        model = Preference

    key = factory.Sequence(lambda n: f"habit {n}")
    value = "short and dry"
    source = "operator"


class IdentityAspectFactory(AgentRowFactory[IdentityAspect]):
    class Meta:
        model = IdentityAspect

    kind = AspectKind.PURPOSE
    content = factory.Sequence(lambda n: f"I am there to find ford {n}.")
    content_hash = factory.LazyAttribute(lambda o: content_hash(o.content))
    stability = 0.8
    source = "operator"
