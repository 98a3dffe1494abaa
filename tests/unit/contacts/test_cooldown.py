"""The cool-down of messages to users and the public."""

from __future__ import annotations

from datetime import timedelta

import pytest

from arbor.contacts.cooldown import (
    REACH_OUT_PUBLIC,
    REACH_OUT_USER,
    ContactLimits,
    format_hours,
    refusals,
)
from arbor.errors import ConfigurationInvalid


@pytest.mark.parametrize(
    ("since_reach_out", "since_user", "refused"),
    [
        # never wrote
        (None, None, False),
        (None, 0.1, False),
        (None, 100.0, False),
        # wrote, nobody answered
        (0.0, None, True),
        (3.99, None, True),
        (4.0, None, False),
        (9.0, None, False),
        # the user wrote before the agent did, or in the same moment
        (1.0, 1.5, True),
        (1.0, 1.0, True),
        (3.9, 50.0, True),
        (4.1, 50.0, False),
        # the user wrote since
        (1.0, 0.5, False),
        (0.01, 0.0, False),
    ],
)
def test_a_user_is_left_alone_for_four_hours_unless_they_wrote(
    since_reach_out: float | None, since_user: float | None, refused: bool
) -> None:
    reasons = refusals(hours_since_reach_out=since_reach_out, hours_since_user=since_user, public_today=0)
    assert (REACH_OUT_USER in reasons) is refused
    assert REACH_OUT_PUBLIC not in reasons


def test_a_refusal_states_its_reason_and_end() -> None:
    reasons = refusals(hours_since_reach_out=1.5, hours_since_user=None, public_today=0)
    assert reasons[REACH_OUT_USER] == (
        "you last wrote to your user 1.5 hours ago and they have not written since; it is possible again in 2.5 hours"
    )


@pytest.mark.parametrize(
    ("today", "allowed", "refused"), [(0, 4, False), (3, 4, False), (4, 4, True), (9, 4, True)]
)
def test_public_messages_are_bounded_in_a_day(today: int, allowed: int, refused: bool) -> None:
    limits = ContactLimits(public_per_day=allowed)
    reasons = refusals(hours_since_reach_out=None, hours_since_user=None, public_today=today, limits=limits)
    assert (REACH_OUT_PUBLIC in reasons) is refused


def test_one_public_message_is_counted_as_one() -> None:
    limits = ContactLimits(public_per_day=1)
    reasons = refusals(hours_since_reach_out=None, hours_since_user=None, public_today=1, limits=limits)
    assert reasons[REACH_OUT_PUBLIC].startswith(
        "you wrote in public once in the last 24 hours, where once is allowed;"
    )


def test_limits_can_forbid_public_messages_and_drop_the_cool_down() -> None:
    limits = ContactLimits(public_per_day=0, cooldown=timedelta(0))
    reasons = refusals(hours_since_reach_out=0.0, hours_since_user=None, public_today=0, limits=limits)
    assert reasons == {REACH_OUT_PUBLIC: "this installation lets no agent write in public"}


@pytest.mark.parametrize("wrong", [{"cooldown": timedelta(seconds=-1)}, {"public_per_day": -1}])
def test_negative_limits_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationInvalid, match=r"0 (hours )?or more"):
        ContactLimits(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("hours", "words"),
    [(0.0, "1 minute"), (0.5, "30 minutes"), (1.4, "84 minutes"), (1.5, "1.5 hours"), (26.0, "26.0 hours")],
)
def test_a_duration_is_printed_in_words(hours: float, words: str) -> None:
    assert format_hours(hours) == words
