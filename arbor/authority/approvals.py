"""Approvals: actions that wait for a person, and streaks of approvals that suggest a rule."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from uuid import UUID

from arbor.authority.grants import ACTION_PREFIX
from arbor.authority.modes import ModeDecision, TrustMode, ceiling_of

#: The time that a request waits for a person, and that an approval waits for its execution.
APPROVAL_LIFETIME = timedelta(days=7)
#: Requests of one agent that wait at a time.
MAX_PENDING = 20


class ApprovalStatus(StrEnum):
    """The status of a request for approval."""

    #: The request waits for a person.
    PENDING = "pending"
    #: A person has approved it; the next heartbeat executes the action.
    APPROVED = "approved"
    #: A person has denied it.
    DENIED = "denied"
    #: Nobody decided in time, or the agent did not run in time.
    EXPIRED = "expired"
    #: The action was executed once.
    EXECUTED = "executed"
    #: The approved action was refused for another reason, such as a boundary.
    WITHDRAWN = "withdrawn"


#: The statuses that may follow each status.
TRANSITIONS: Mapping[ApprovalStatus, frozenset[ApprovalStatus]] = MappingProxyType(
    {
        # Executed without a decision: a rule allows the action by now.
        ApprovalStatus.PENDING: frozenset(
            {
                ApprovalStatus.APPROVED,
                ApprovalStatus.DENIED,
                ApprovalStatus.EXPIRED,
                ApprovalStatus.EXECUTED,
            }
        ),
        # A person may change their mind until the action runs.
        ApprovalStatus.APPROVED: frozenset(
            {
                ApprovalStatus.EXECUTED,
                ApprovalStatus.DENIED,
                ApprovalStatus.EXPIRED,
                ApprovalStatus.WITHDRAWN,
            }
        ),
        ApprovalStatus.DENIED: frozenset(),
        ApprovalStatus.EXPIRED: frozenset(),
        ApprovalStatus.EXECUTED: frozenset(),
        ApprovalStatus.WITHDRAWN: frozenset(),
    }
)

#: The statuses of requests that wait for a person, or for their execution.
OPEN_APPROVALS = (ApprovalStatus.PENDING, ApprovalStatus.APPROVED)


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalView:
    """A request for approval as a heartbeat reads it."""

    id: UUID
    status: ApprovalStatus
    action: str
    resource: str
    body_hash: str
    expires_at: datetime
    #: The complete parameters of an approved action as JSON; empty for other requests.
    body: str = ""
    #: The first text of the parameters, for prompts.
    about: str = ""
    reasoning: str = ""
    goal_id: str | None = None
    intent_id: str | None = None
    #: The person's reason of a denial.
    reason: str = ""

    def has_expired(self, now: datetime) -> bool:
        """Return whether the time of the request, or of its approval, is over."""
        return now >= self.expires_at


@dataclass(frozen=True, kw_only=True, slots=True)
class NewApproval:
    """A request for approval to store."""

    id: UUID
    action: str
    resource: str
    #: The complete parameters as JSON, and their hash.
    body: str
    body_hash: str
    about: str
    reasoning: str
    #: Why a person is asked: the rule and its source.
    why: str
    goal_id: str | None
    intent_id: str | None
    round_trip: int
    index: int
    asked_at: datetime
    expires_at: datetime


class Permission(StrEnum):
    """The consequence of a mode for one action."""

    #: The action runs.
    RUN = "run"
    #: The action runs because a person has approved it.
    APPROVED = "approved"
    #: A person is asked.
    ASK = "ask"
    #: A person was asked already.
    WAITS = "waits"
    #: A rule or a person refuses the action.
    REFUSED = "refused"
    #: The limit of waiting requests is reached, or this heartbeat has asked for the same already.
    FULL = "full"


@dataclass(frozen=True, kw_only=True, slots=True)
class PermissionDecision:
    """The permission of one action, with the request that it rests on and the reason if it does not run."""

    permission: Permission
    reason: str = ""
    approval: ApprovalView | None = None


def permission_of(
    mode: ModeDecision,
    *,
    resource: str,
    body_hash: str,
    approvals: Sequence[ApprovalView],
    now: datetime,
    asked: Collection[tuple[str, str]],
) -> PermissionDecision:
    """Apply a mode to one action with these parameters.

    `asked` are the requests that this heartbeat has made already, each as its resource and body hash.
    """
    if mode.mode is TrustMode.BLOCK:
        return PermissionDecision(permission=Permission.REFUSED, reason=f"a person blocks it: {mode}")
    valid = [approval for approval in approvals if not approval.has_expired(now)]
    same = {
        approval.status: approval
        for approval in valid
        if approval.resource == resource and approval.body_hash == body_hash
    }
    if mode.mode is not TrustMode.ASK:
        # A request for the same action is used up, so that the action does not run again.
        known = same.get(ApprovalStatus.APPROVED) or same.get(ApprovalStatus.PENDING)
        return PermissionDecision(permission=Permission.RUN, approval=known)
    if approved := same.get(ApprovalStatus.APPROVED):
        return PermissionDecision(permission=Permission.APPROVED, approval=approved)
    if pending := same.get(ApprovalStatus.PENDING):
        return PermissionDecision(
            permission=Permission.WAITS, reason="it waits for a person already", approval=pending
        )
    if denied := same.get(ApprovalStatus.DENIED):
        reason = f"a person has denied exactly this: {denied.reason or 'without a reason'}"
        return PermissionDecision(permission=Permission.REFUSED, reason=reason, approval=denied)
    if (resource, body_hash) in asked:
        return PermissionDecision(permission=Permission.FULL, reason="this heartbeat asks for it already")
    waiting = sum(approval.status is ApprovalStatus.PENDING for approval in valid)
    if waiting + len(asked) >= MAX_PENDING:
        reason = f"{MAX_PENDING} of your requests wait for a person; ask again when some are decided"
        return PermissionDecision(permission=Permission.FULL, reason=reason)
    return PermissionDecision(permission=Permission.ASK, reason=f"it waits for a person's approval: {mode}")


# --- Streaks -------------------------------------------------------------------------------------------

#: Approvals in a row after which `allow` is suggested: for an action that stays in the agent's mind, and for one that leaves it.
#: A resource under a ceiling is never suggested.
LOCAL_STREAK = 3
OUTWARD_STREAK = 5
_OUTWARD = ("reach_out_", "inquire_", "mcp.")
_YES = frozenset({ApprovalStatus.APPROVED, ApprovalStatus.EXECUTED})


@dataclass(frozen=True, kw_only=True, slots=True)
class Suggestion:
    """A rule that a person might set, because every recent request for the resource was approved."""

    resource: str
    approvals: int


def streak_of(latest_first: Iterable[ApprovalStatus]) -> int:
    """Count the approvals of a resource since the last denial; requests that nobody decided do not count."""
    approvals = 0
    for status in latest_first:
        if status is ApprovalStatus.DENIED:
            break
        approvals += status in _YES
    return approvals


def suggestion_of(resource: str, latest_first: Iterable[ApprovalStatus]) -> Suggestion | None:
    """Return the rule to suggest for a resource; None without a long enough streak, or if a ceiling forbids it."""
    if ceiling_of(resource).rank < TrustMode.ALLOW.rank:
        return None
    action = resource.removeprefix(ACTION_PREFIX)
    is_local = resource.startswith(ACTION_PREFIX) and not action.startswith(_OUTWARD)
    approvals = streak_of(latest_first)
    needed = LOCAL_STREAK if is_local else OUTWARD_STREAK
    return Suggestion(resource=resource, approvals=approvals) if approvals >= needed else None
