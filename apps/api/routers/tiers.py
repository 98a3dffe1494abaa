"""Trust tiers of agents, the calibration of their proposals, and the drift of their selves since birth."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from apps.api.requests import access_of
from apps.api.rows import Input
from apps.authority.models import TrustScore
from apps.authority.services import trust_tiers
from apps.selves.services.calibration import calibrations_of
from apps.selves.services.drift import measure_self_drift
from arbor.agents.template import TrustTier
from arbor.authority.trust_tiers import TrustPart
from arbor.selves.drift import Drift, DriftChange
from arbor.selves.proposals import ProposalKind

router = Router()

_Share = Annotated[float, Field(description="0 to 1.")]


class TrustPartResource(Schema):
    """A part of a trust score."""

    part: TrustPart
    good: float = Field(description="The number of good records; a partial success counts half.")
    total: int = Field(
        description="The number of records, such as actions or heartbeats of the last 30 days."
    )
    share: _Share
    points: float = Field(description="The part's points of the 100 of the score.")
    most: float = Field(description="The most points that the part can give.")


class TrustTierResource(Schema):
    """An agent's trust tier, and the score that moves it."""

    tier: TrustTier
    since: datetime
    by_person: bool = Field(description="A person set the tier: no score lowers it, a breach does.")
    score: float | None = Field(description="0 to 100; null before the first computation.")
    parts: list[TrustPartResource]
    computed_at: datetime | None


class TierChangeResource(Schema):
    """A change of an agent's trust tier."""

    id: UUID
    before: TrustTier
    after: TrustTier
    score: float | None
    decided_by: str
    reason: str
    at: datetime


class TierChangeList(Schema):
    """The changes of an agent's trust tier, the latest first."""

    items: list[TierChangeResource]


class TierInput(Input):
    """The new tier of an agent."""

    tier: TrustTier
    reason: Annotated[str, Field(max_length=trust_tiers.REASON_LENGTH, description="For the record.")] = ""


class CalibrationResource(Schema):
    """The judgment of the latest decided proposals of one kind."""

    kind: ProposalKind
    right: int
    wrong: int
    rejected: int
    threshold: float | None = Field(
        description="The confidence from which the kind is proposed; null: the kind has no threshold."
    )
    computed_at: datetime


class CalibrationList(Schema):
    """The calibration of an agent's proposals by kind."""

    items: list[CalibrationResource]


class DriftedPartResource(Schema):
    """A value or trait, with its weight at birth and now; 0 where it is not there."""

    name: str
    change: DriftChange
    at_birth: _Share
    now: _Share


class DriftResource(Schema):
    """The drift of values or traits."""

    share: float = Field(description="0: as at birth, 1: nothing in common.")
    parts: list[DriftedPartResource]


class SelfDriftResource(Schema):
    """The distance of a self from its birth."""

    share: float = Field(description="The larger share: that of the values or that of the traits.")
    values: DriftResource
    traits: DriftResource


@router.get("/agents/{uuid:agent_id}/tier", response=TrustTierResource, summary="Show a trust tier")
def show_tier(request: HttpRequest, agent_id: UUID) -> TrustScore:
    """Show an agent's trust tier, and its score with the parts."""
    return trust_tiers.trust_score_of(agent_id)


@router.put("/agents/{uuid:agent_id}/tier", response=TrustTierResource, summary="Set a trust tier")
def set_tier(request: HttpRequest, agent_id: UUID, wanted: TierInput) -> TrustScore:
    """Set an agent's trust tier; no score lowers it afterwards."""
    return trust_tiers.set_tier(
        agent_id=agent_id, tier=wanted.tier, reason=wanted.reason, actor=access_of(request).actor
    )


@router.get(
    "/agents/{uuid:agent_id}/tier/changes", response=TierChangeList, summary="List changes of a trust tier"
)
def list_tier_changes(request: HttpRequest, agent_id: UUID) -> TierChangeList:
    """List the latest 100 changes of an agent's trust tier."""
    changes = trust_tiers.tier_changes_of(agent_id)
    return TierChangeList(items=[TierChangeResource.model_validate(change) for change in changes])


@router.get(
    "/agents/{uuid:agent_id}/calibration",
    response=CalibrationList,
    summary="Show the calibration of proposals",
)
def show_calibration(request: HttpRequest, agent_id: UUID) -> CalibrationList:
    """Show how often an agent's accepted proposals proved right, by kind, and the thresholds that follow."""
    rows = calibrations_of(agent_id)
    return CalibrationList(items=[CalibrationResource.model_validate(row) for row in rows])


@router.get("/agents/{uuid:agent_id}/drift", response=SelfDriftResource, summary="Measure drift since birth")
def show_drift(request: HttpRequest, agent_id: UUID) -> SelfDriftResource:
    """Measure the drift of an agent's values and traits since its birth."""
    drift = measure_self_drift(agent_id)
    return SelfDriftResource(share=drift.share, values=_drift(drift.values), traits=_drift(drift.traits))


def _drift(drift: Drift) -> DriftResource:
    return DriftResource(
        share=drift.share, parts=[DriftedPartResource.model_validate(part) for part in drift.parts]
    )
