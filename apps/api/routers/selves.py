"""The self of an agent: beliefs, aspects, preferences, proposals, inner state."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field, WithJsonSchema

from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of
from apps.api.rows import Input, own_row, rows_of
from apps.selves.models import Belief, Experience, IdentityAspect, PeerModel, Preference, Proposal
from apps.selves.services.aspects import add_aspect, drop_aspect, revise_aspect
from apps.selves.services.beliefs import add_belief, revise_belief
from apps.selves.services.changes import REASON_LENGTH
from apps.selves.services.decisions import ProposalVerdict, decide_proposal
from apps.selves.services.inner_state import read_inner_state
from apps.selves.services.preferences import set_preference, unset_preference
from apps.selves.services.proposals import propose_by_person
from arbor.errors import AlreadyExists
from arbor.selves.proposals import PERSON_CONFIDENCE, NewProposal, ProposalKind, ProposalStatus
from arbor.selves.values import (
    DEFAULT_CONFIDENCE,
    DEFAULT_STABILITY,
    DEFAULT_STRENGTH,
    TEXT_LENGTH,
    VALUE_LENGTH,
    AspectKind,
    AspectRevision,
    BeliefCategory,
    BeliefRevision,
    BeliefStatus,
    NewAspect,
    NewBelief,
)

router = Router()

#: The source of what a program adds to a self.
SOURCE = "operator"
_Share = Annotated[float, Field(ge=0, le=1)]
_Text = Annotated[str, Field(min_length=1, max_length=TEXT_LENGTH)]
#: The kinds of proposals that consist of a text; a preference has a key and a value, and `NewProposal` refuses one without.
_TEXT_KINDS = [kind.value for kind in ProposalKind if kind is not ProposalKind.PREFERENCE]
_TextKind = Annotated[ProposalKind, WithJsonSchema({"type": "string", "enum": _TEXT_KINDS})]
_Reason = Annotated[str, Field(max_length=REASON_LENGTH, description="For the record.")]


class BeliefResource(Schema):
    """A belief."""

    id: UUID
    statement: str
    category: BeliefCategory
    confidence: float = Field(description="0 to 1.")
    stability: float = Field(description="0 to 1: how hard it is to change.")
    status: BeliefStatus
    source: str
    created_at: datetime
    updated_at: datetime


class BeliefInput(Input):
    """A new belief."""

    statement: _Text
    category: BeliefCategory = BeliefCategory.WORLD
    confidence: _Share = DEFAULT_CONFIDENCE
    stability: _Share = DEFAULT_STABILITY


class BeliefChange(Input):
    """A change of a belief; null: unchanged."""

    confidence: _Share | None = None
    stability: _Share | None = None
    status: BeliefStatus | None = None
    reason: _Reason = ""


class AspectResource(Schema):
    """An aspect of an agent's identity."""

    id: UUID
    kind: AspectKind
    content: str
    strength: float = Field(
        description="0 to 1: of a trait its strength, of a value its importance, of a capability the proficiency."
    )
    stability: float
    status: BeliefStatus
    source: str
    created_at: datetime
    updated_at: datetime


class AspectInput(Input):
    """A new aspect."""

    content: _Text
    kind: AspectKind
    strength: _Share = DEFAULT_STRENGTH
    stability: _Share = DEFAULT_STABILITY


class AspectChange(Input):
    """A change of an aspect; null: unchanged."""

    strength: _Share | None = None
    stability: _Share | None = None
    status: BeliefStatus | None = None
    reason: _Reason = ""


class PreferenceResource(Schema):
    """A preference under a key."""

    key: str
    value: str
    source: str
    updated_at: datetime


class PreferenceInput(Input):
    """The value of a preference."""

    value: Annotated[str, Field(min_length=1, max_length=VALUE_LENGTH)]


class ProposalResource(Schema):
    """A change of the self that waits for a decision, or was decided."""

    id: UUID
    kind: ProposalKind
    content: str
    change: Any
    confidence: float
    evidence: Any
    status: ProposalStatus
    source: str
    deferrals: int
    reason: str
    decided_by: str
    created_at: datetime
    decided_at: datetime | None


class ProposalInput(Input):
    """A new proposal."""

    content: _Text
    kind: _TextKind = ProposalKind.INSIGHT
    confidence: _Share = PERSON_CONFIDENCE


class DecisionReason(Input):
    """The reason of a decision."""

    reason: _Reason = ""


class DriveResource(Schema):
    """A drive and its level."""

    name: str
    level: float = Field(description="0 to 1.")
    urgent: bool


class InnerResource(Schema):
    """The drives and the mood of an agent, now."""

    drives: list[DriveResource]
    valence: float = Field(description="-1 to 1.")
    arousal: float = Field(description="0 to 1.")
    next_urgent_at: datetime | None


class ExperienceResource(Schema):
    """An action with its outcome and lesson."""

    id: UUID
    heartbeat_id: UUID
    heartbeat_number: int
    action: str
    about: str
    outcome: str
    lesson: str
    at: datetime


class PeerResource(Schema):
    """Somebody an agent deals with."""

    id: UUID
    name: str
    is_agent: bool
    interactions: int
    successes: int
    competence: float
    reliability: float
    interests: list[str]
    last_at: datetime | None


@router.get("/agents/{uuid:agent_id}/beliefs", response=ListPage[BeliefResource], summary="List beliefs")
def list_beliefs(
    request: HttpRequest, agent_id: UUID, page: Paging, status: BeliefStatus | None = None
) -> ListPage[BeliefResource]:
    """List an agent's beliefs, the oldest first."""
    rows = rows_of(Belief, agent_id, status=status)
    return page_of(rows, page, order="created_at", to_resource=BeliefResource.model_validate)


@router.post("/agents/{uuid:agent_id}/beliefs", response={201: BeliefResource}, summary="Add a belief")
def create_belief(request: HttpRequest, agent_id: UUID, belief: BeliefInput) -> Status[BeliefResource]:
    """Add a belief on behalf of a person."""
    new = NewBelief(**belief.model_dump(), source=SOURCE)
    row = add_belief(agent_id=agent_id, belief=new, actor=access_of(request).actor)
    return Status(201, BeliefResource.model_validate(row))


@router.get(
    "/agents/{uuid:agent_id}/beliefs/{uuid:belief_id}", response=BeliefResource, summary="Show a belief"
)
def show_belief(request: HttpRequest, agent_id: UUID, belief_id: UUID) -> BeliefResource:
    """Show a belief."""
    return BeliefResource.model_validate(own_row(Belief, agent_id=agent_id, row_id=belief_id))


@router.patch(
    "/agents/{uuid:agent_id}/beliefs/{uuid:belief_id}", response=BeliefResource, summary="Revise a belief"
)
def change_belief(
    request: HttpRequest, agent_id: UUID, belief_id: UUID, change: BeliefChange
) -> BeliefResource:
    """Revise a belief; `dropped` as its status drops the belief, whose row stays for the record."""
    row = own_row(Belief, agent_id=agent_id, row_id=belief_id)
    revision = BeliefRevision(**change.model_dump())
    revised = revise_belief(belief_id=row.id, revision=revision, actor=access_of(request).actor)
    return BeliefResource.model_validate(revised)


@router.get("/agents/{uuid:agent_id}/aspects", response=ListPage[AspectResource], summary="List aspects")
def list_aspects(
    request: HttpRequest, agent_id: UUID, page: Paging, status: BeliefStatus | None = None
) -> ListPage[AspectResource]:
    """List the aspects of an agent's identity, the oldest first."""
    rows = rows_of(IdentityAspect, agent_id, status=status)
    return page_of(rows, page, order="created_at", to_resource=AspectResource.model_validate)


@router.post("/agents/{uuid:agent_id}/aspects", response={201: AspectResource}, summary="Add an aspect")
def create_aspect(request: HttpRequest, agent_id: UUID, aspect: AspectInput) -> Status[AspectResource]:
    """Add an aspect to an agent's identity."""
    new = NewAspect(**aspect.model_dump(), source=SOURCE)
    row = add_aspect(agent_id=agent_id, aspect=new, actor=access_of(request).actor)
    return Status(201, AspectResource.model_validate(row))


@router.patch(
    "/agents/{uuid:agent_id}/aspects/{uuid:aspect_id}", response=AspectResource, summary="Revise an aspect"
)
def change_aspect(
    request: HttpRequest, agent_id: UUID, aspect_id: UUID, change: AspectChange
) -> AspectResource:
    """Revise an aspect's strength, stability or status."""
    row = own_row(IdentityAspect, agent_id=agent_id, row_id=aspect_id)
    revision = AspectRevision(**change.model_dump())
    revised = revise_aspect(aspect_id=row.id, actor=access_of(request).actor, revision=revision)
    return AspectResource.model_validate(revised)


@router.post(
    "/agents/{uuid:agent_id}/aspects/{uuid:aspect_id}/drop", response=AspectResource, summary="Drop an aspect"
)
def remove_aspect(
    request: HttpRequest, agent_id: UUID, aspect_id: UUID, why: DecisionReason
) -> AspectResource:
    """Drop an aspect. Its row stays for the record."""
    row = own_row(IdentityAspect, agent_id=agent_id, row_id=aspect_id)
    dropped = drop_aspect(aspect_id=row.id, actor=access_of(request).actor, reason=why.reason)
    return AspectResource.model_validate(dropped)


@router.get(
    "/agents/{uuid:agent_id}/preferences", response=ListPage[PreferenceResource], summary="List preferences"
)
def list_preferences(request: HttpRequest, agent_id: UUID, page: Paging) -> ListPage[PreferenceResource]:
    """List an agent's preferences by key."""
    return page_of(
        rows_of(Preference, agent_id), page, order="key", to_resource=PreferenceResource.model_validate
    )


@router.put(
    "/agents/{uuid:agent_id}/preferences/{str:key}", response=PreferenceResource, summary="Set a preference"
)
def put_preference(
    request: HttpRequest, agent_id: UUID, key: str, preference: PreferenceInput
) -> PreferenceResource:
    """Set an agent's preference under a key."""
    row = set_preference(agent_id=agent_id, key=key, value=preference.value, actor=access_of(request).actor)
    return PreferenceResource.model_validate(row)


@router.delete(
    "/agents/{uuid:agent_id}/preferences/{str:key}",
    response=PreferenceResource,
    summary="Remove a preference",
)
def delete_preference(request: HttpRequest, agent_id: UUID, key: str) -> PreferenceResource:
    """Remove a preference, and return its last value."""
    row = unset_preference(agent_id=agent_id, key=key, actor=access_of(request).actor)
    return PreferenceResource.model_validate(row)


@router.get(
    "/agents/{uuid:agent_id}/proposals", response=ListPage[ProposalResource], summary="List proposals"
)
def list_proposals(
    request: HttpRequest, agent_id: UUID, page: Paging, status: ProposalStatus | None = None
) -> ListPage[ProposalResource]:
    """List proposals about an agent's self, the latest first; `status=pending`: the undecided ones."""
    rows = rows_of(Proposal, agent_id, status=status)
    return page_of(rows, page, order="-created_at", to_resource=ProposalResource.model_validate)


@router.post("/agents/{uuid:agent_id}/proposals", response={201: ProposalResource}, summary="Add a proposal")
def create_proposal(
    request: HttpRequest, agent_id: UUID, proposal: ProposalInput
) -> Status[ProposalResource]:
    """Add a proposal. The agent decides it at its next heartbeat, unless a person does before."""
    new = NewProposal(**proposal.model_dump(), source=SOURCE)
    outcome = propose_by_person(agent_id=agent_id, new=new)
    if not outcome.made:
        raise AlreadyExists("the same proposal waits for a decision already")
    return Status(201, ProposalResource.model_validate(outcome.made[0]))


@router.post(
    "/agents/{uuid:agent_id}/proposals/{uuid:proposal_id}/{verb}",
    response=ProposalResource,
    summary="Accept, reject or defer a proposal",
)
def decide(
    request: HttpRequest,
    agent_id: UUID,
    proposal_id: UUID,
    verb: Literal["accept", "reject", "defer"],
    why: DecisionReason,
) -> ProposalResource:
    """Decide a proposal on behalf of a person. A decided proposal is answered 409; an accepted one may be accepted again, which changes nothing."""
    own_row(Proposal, agent_id=agent_id, row_id=proposal_id)
    decided = decide_proposal(
        proposal_id=proposal_id,
        agent_id=agent_id,
        decision=ProposalVerdict(verb),
        decided_by=access_of(request).actor,
        reason=why.reason,
    )
    return ProposalResource.model_validate(decided)


@router.get("/agents/{uuid:agent_id}/inner-state", response=InnerResource, summary="Show drives and mood")
def show_inner_state(request: HttpRequest, agent_id: UUID) -> InnerResource:
    """Show an agent's drives and mood, now."""
    inner = read_inner_state(agent_id=agent_id, now=datetime.now(UTC))
    return InnerResource(
        drives=[DriveResource.model_validate(drive) for drive in inner.drives],
        valence=inner.mood.valence,
        arousal=inner.mood.arousal,
        next_urgent_at=inner.next_urgent_at,
    )


@router.get(
    "/agents/{uuid:agent_id}/experiences", response=ListPage[ExperienceResource], summary="List experiences"
)
def list_experiences(request: HttpRequest, agent_id: UUID, page: Paging) -> ListPage[ExperienceResource]:
    """List an agent's actions with their outcomes and lessons, the latest first."""
    return page_of(
        rows_of(Experience, agent_id),
        page,
        order="-heartbeat_number",
        to_resource=ExperienceResource.model_validate,
    )


@router.get("/agents/{uuid:agent_id}/peers", response=ListPage[PeerResource], summary="List peers")
def list_peers(request: HttpRequest, agent_id: UUID, page: Paging) -> ListPage[PeerResource]:
    """List the people and agents that an agent deals with, by name."""
    return page_of(rows_of(PeerModel, agent_id), page, order="name", to_resource=PeerResource.model_validate)
