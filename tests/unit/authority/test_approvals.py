"""Permissions by mode and approval, and streaks of approvals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from arbor.agents.capabilities import SCHEME
from arbor.authority.approvals import (
    MAX_PENDING,
    TRANSITIONS,
    ApprovalStatus,
    ApprovalView,
    Permission,
    permission_of,
    streak_of,
    suggestion_of,
)
from arbor.authority.modes import ModeDecision, ModeSource, TrustMode

_NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
_RESOURCE = f"{SCHEME}actions/execute/reach_out_public"
_YES, _NO, _LATE = ApprovalStatus.EXECUTED, ApprovalStatus.DENIED, ApprovalStatus.EXPIRED


def _mode(mode: TrustMode) -> ModeDecision:
    return ModeDecision(mode=mode, prefix=_RESOURCE, source=ModeSource.RULE)


def _approval(
    status: ApprovalStatus,
    *,
    body_hash: str = "a",
    resource: str = _RESOURCE,
    hours: float = 1,
    number: int = 1,
) -> ApprovalView:
    return ApprovalView(
        id=UUID(int=number),
        status=status,
        action="reach_out_public",
        resource=resource,
        body_hash=body_hash,
        expires_at=_NOW + timedelta(hours=hours),
    )


def _permission(
    mode: TrustMode, *approvals: ApprovalView, asked: tuple[tuple[str, str], ...] = ()
) -> Permission:
    return permission_of(
        _mode(mode), resource=_RESOURCE, body_hash="a", approvals=approvals, now=_NOW, asked=asked
    ).permission


@pytest.mark.parametrize(
    ("mode", "approvals", "permission"),
    [
        (TrustMode.BLOCK, (), Permission.REFUSED),
        (TrustMode.BLOCK, (_approval(ApprovalStatus.APPROVED),), Permission.REFUSED),
        (TrustMode.ALLOW, (), Permission.RUN),
        (TrustMode.AUTO, (), Permission.RUN),
        (TrustMode.ASK, (), Permission.ASK),
        (TrustMode.ASK, (_approval(ApprovalStatus.APPROVED),), Permission.APPROVED),
        (TrustMode.ASK, (_approval(ApprovalStatus.PENDING),), Permission.WAITS),
        (TrustMode.ASK, (_approval(ApprovalStatus.DENIED),), Permission.REFUSED),
        (TrustMode.ASK, (_approval(ApprovalStatus.EXECUTED),), Permission.ASK),
        (TrustMode.ASK, (_approval(ApprovalStatus.APPROVED, hours=0),), Permission.ASK),
        (TrustMode.ASK, (_approval(ApprovalStatus.DENIED, hours=-1),), Permission.ASK),
        (TrustMode.ASK, (_approval(ApprovalStatus.APPROVED, body_hash="b"),), Permission.ASK),
        (TrustMode.ASK, (_approval(ApprovalStatus.APPROVED, resource=f"{_RESOURCE}/x"),), Permission.ASK),
    ],
)
def test_mode_and_approvals_decide(
    mode: TrustMode, approvals: tuple[ApprovalView, ...], permission: Permission
) -> None:
    assert _permission(mode, *approvals) is permission


def test_same_request_is_asked_once_a_heartbeat() -> None:
    assert _permission(TrustMode.ASK, asked=((_RESOURCE, "a"),)) is Permission.FULL
    assert _permission(TrustMode.ASK, asked=((_RESOURCE, "b"),)) is Permission.ASK
    assert _permission(TrustMode.ASK, asked=((f"{_RESOURCE}/x", "a"),)) is Permission.ASK


def test_waiting_requests_are_bounded() -> None:
    waiting = [
        _approval(ApprovalStatus.PENDING, body_hash=f"{number}", number=number)
        for number in range(MAX_PENDING - 1)
    ]
    assert _permission(TrustMode.ASK, *waiting) is Permission.ASK
    assert _permission(TrustMode.ASK, *waiting, asked=((_RESOURCE, "b"),)) is Permission.FULL
    assert _permission(TrustMode.ASK, *waiting, asked=((f"{_RESOURCE}/x", "b"),)) is Permission.FULL


def test_decided_request_is_final_unless_approved() -> None:
    for status in ApprovalStatus:
        changeable = status in (ApprovalStatus.PENDING, ApprovalStatus.APPROVED)
        assert bool(TRANSITIONS[status]) is changeable


@pytest.mark.parametrize(
    ("latest_first", "streak"),
    [((), 0), ((_YES, _YES), 2), ((_YES, _NO, _YES), 1), ((_NO, _YES, _YES, _YES), 0), ((_LATE, _YES), 1)],
)
def test_denial_ends_streak(latest_first: tuple[ApprovalStatus, ...], streak: int) -> None:
    assert streak_of(latest_first) == streak


@pytest.mark.parametrize(
    ("resource", "approvals", "suggested"),
    [
        (f"{SCHEME}actions/execute/remember", 2, False),
        (f"{SCHEME}actions/execute/remember", 3, True),
        (_RESOURCE, 4, False),
        (_RESOURCE, 5, True),
        (f"{SCHEME}actions/execute/mcp.github.close", 4, False),
        (f"{SCHEME}shell/exec", 50, False),
    ],
)
def test_streaks_suggest_by_resource(resource: str, approvals: int, suggested: bool) -> None:
    assert (suggestion_of(resource, [_YES] * approvals) is not None) is suggested
