"""Drives: levels over time, urgency and satisfaction."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.selves.drives import (
    BASELINE,
    RULES,
    SATISFACTION,
    URGENT,
    Drive,
    Drives,
    DriveState,
    after_heartbeat,
    after_idle_heartbeat,
    next_urgent_at,
    read_drives,
    satisfy_by_contact,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def hours(count: float) -> timedelta:
    return timedelta(hours=count)


def drives(drive: Drive, **state: object) -> Drives:
    initial = read_drives({}, NOW)
    changed = DriveState.model_validate({"at": NOW, **state})
    return Drives(states={**initial.states, drive: changed})


@pytest.mark.parametrize(
    ("drive", "rate", "cooldown_h"),
    [
        (Drive.CURIOSITY, 0.02, 0.5),
        (Drive.COHERENCE, 0.01, 2),
        (Drive.CONNECTION, 0.005, 24),
        (Drive.COMPETENCE, 0.01, 4),
        (Drive.REST, 0.03, 2),
    ],
)
def test_each_drive_has_its_constants(drive: Drive, rate: float, cooldown_h: float) -> None:
    # The origin of seed 004.
    assert (RULES[drive].rate, RULES[drive].cooldown) == (rate, hours(cooldown_h))
    assert (BASELINE, URGENT) == (0.5, 0.8)
    assert SATISFACTION["recall"] == (Drive.CURIOSITY, 0.2)
    assert SATISFACTION["rest"] == (Drive.REST, 0.4)


@pytest.mark.parametrize(
    ("state", "after_h", "level"),
    [
        # The level rises while its cause lasts, up to 1.
        ({"building": True}, 0, 0.5),
        ({"building": True}, 10, 0.7),
        ({"building": True}, 1000, 1.0),
        # Without a cause the level returns to the baseline, from above and from below.
        ({"building": False, "level": 0.9}, 4, 0.7),
        ({"building": False, "level": 0.9}, 100, 0.5),
        ({"building": False, "level": 0.3}, 2, 0.4),
        ({"building": False, "level": 0.3}, 100, 0.5),
        # After satisfaction the level returns to the baseline until the cool-down is over.
        ({"building": True, "level": 0.6, "satisfied_at": NOW}, 0.5, 0.575),
        ({"building": True, "level": 0.6, "satisfied_at": NOW}, 10.5, 0.775),
        ({"building": True, "level": 0.5, "satisfied_at": NOW}, 0.5, 0.5),
        ({"building": True, "level": 0.5, "satisfied_at": NOW - hours(5)}, 10, 0.7),
    ],
)
def test_a_level_is_a_function_of_time(state: dict[str, object], after_h: float, level: float) -> None:
    current = drives(Drive.CURIOSITY, **state).level(Drive.CURIOSITY, NOW + hours(after_h))
    assert current == pytest.approx(level)


@pytest.mark.parametrize(
    ("level", "amounts", "left"),
    [(0.9, [0.2], 0.7), (0.9, [0.2, 0.2], 0.5), (0.6, [0.4], 0.5), (0.5, [0.4], 0.5), (0.3, [0.4], 0.3)],
)
def test_satisfaction_lowers_a_drive_to_its_baseline_at_most(
    level: float, amounts: list[float], left: float
) -> None:
    before = drives(Drive.COMPETENCE, level=level)
    satisfied = [(Drive.COMPETENCE, amount) for amount in amounts]
    after = after_heartbeat(before, now=NOW, satisfied=satisfied, building={Drive.COMPETENCE: True})
    state = after.states[Drive.COMPETENCE]
    assert state.level == pytest.approx(left)
    assert (state.satisfied_at, state.building) == (NOW, True)


@pytest.mark.parametrize(("level", "urgent"), [(0.79, False), (0.8, True), (1.0, True)])
def test_a_drive_is_urgent_from_its_threshold_on(level: float, urgent: bool) -> None:
    assert (drives(Drive.CURIOSITY, level=level).urgent(NOW) == [Drive.CURIOSITY]) is urgent


@pytest.mark.parametrize(
    ("drive", "state", "in_h"),
    [
        (Drive.CURIOSITY, {"building": True}, 15),
        (Drive.CURIOSITY, {"building": True, "satisfied_at": NOW}, 15.5),
        (Drive.CONNECTION, {"building": True, "satisfied_at": NOW, "level": 0.6}, 24 + 60),
        (Drive.CURIOSITY, {"building": True, "level": 0.85}, None),
        (Drive.CURIOSITY, {"building": False, "level": 0.7}, None),
        (Drive.REST, {"building": True}, None),
    ],
)
def test_the_next_urgent_moment_is_predicted(
    drive: Drive, state: dict[str, object], in_h: float | None
) -> None:
    following = next_urgent_at(drives(drive, **state), NOW)
    if in_h is None:
        assert following is None
    else:
        assert following is not None
        assert following[1] == drive
        assert following[0] - NOW == pytest.approx(hours(in_h), abs=timedelta(seconds=1))


@pytest.mark.parametrize("minutes", [1, 17, 58.3, 61.7, 143.21])
def test_a_drive_is_urgent_at_the_predicted_moment(minutes: float) -> None:
    found = drives(Drive.CONNECTION, building=True)
    for count in range(1, 24):
        now = NOW + timedelta(minutes=minutes * count)
        predicted = next_urgent_at(found, now)
        found = after_idle_heartbeat(found, now=now)
        assert predicted is not None
        # The heartbeat is due then, and the level moves no further.
        until_then = found.model_copy(update={"until": predicted[0]})
        assert until_then.is_pressing(Drive.CONNECTION, predicted[0] + hours(1))


def test_drives_stop_where_no_heartbeat_is_planned() -> None:
    found = drives(Drive.CURIOSITY, building=True).model_copy(update={"until": NOW + hours(5)})

    assert found.level(Drive.CURIOSITY, NOW + hours(5)) == pytest.approx(0.6)
    assert found.level(Drive.CURIOSITY, NOW + hours(500)) == pytest.approx(0.6)
    assert read_drives(found.model_dump(mode="json"), NOW) == found


def test_an_urgent_drive_presses_once_in_its_cooldown() -> None:
    urgent = drives(Drive.CONNECTION, level=0.9, building=True)
    after = after_heartbeat(urgent, now=NOW, building={Drive.CONNECTION: True})

    assert urgent.is_pressing(Drive.CONNECTION, NOW)
    assert not after.is_pressing(Drive.CONNECTION, NOW + hours(23))
    assert after.is_pressing(Drive.CONNECTION, NOW + hours(24))
    idle = after_idle_heartbeat(after, now=NOW + hours(1))
    assert not idle.is_pressing(Drive.CONNECTION, NOW + hours(23))


def test_an_idle_heartbeat_stops_the_rise_of_rest_alone() -> None:
    for drive in Drive:
        found = drives(drive, level=0.6, building=True)
        later = after_idle_heartbeat(found, now=NOW + hours(1))

        assert later.states[drive].building is (drive is not Drive.REST)
        assert later.level(drive, NOW + hours(1)) == found.level(drive, NOW + hours(1))


@given(
    st.floats(0, 1),
    st.floats(0, 500),
    st.booleans(),
    st.one_of(st.none(), st.floats(-50, 0)),
    st.sampled_from(Drive),
)
def test_a_level_stays_in_range_and_is_urgent_as_predicted(
    level: float, after_h: float, building: bool, satisfied_h: float | None, drive: Drive
) -> None:
    at = None if satisfied_h is None else NOW + hours(satisfied_h)
    own = drives(drive, level=level, building=building, satisfied_at=at)
    assert 0 <= own.level(drive, NOW + hours(after_h)) <= 1
    predicted = next_urgent_at(own, NOW)
    if predicted is not None:
        assert own.level(predicted[1], predicted[0]) >= URGENT


@pytest.mark.parametrize(
    ("contact_h", "level"),
    [(None, 0.9), (-1, 0.9), (2, 0.61)],
)
def test_contact_since_the_last_heartbeat_satisfies(contact_h: float | None, level: float) -> None:
    before = drives(Drive.CONNECTION, level=0.9, building=True)
    contact = None if contact_h is None else NOW + hours(contact_h)
    state = satisfy_by_contact(before, contact).states[Drive.CONNECTION]
    assert state.level == pytest.approx(level)
    assert state.satisfied_at == (contact if contact and contact > NOW else None)


@pytest.mark.parametrize(
    "stored",
    [
        None,
        {},
        {"states": {}},
        {"states": {"curiosity": {"level": 7}}},
        {"x": 1},
        # A time without a zone cannot be compared, and the last day has no later one.
        {"at": "9999-12-31T23:59:00Z", "states": {drive.value: {"level": 0.9} for drive in Drive}},
        {"at": "2026-01-05T09:30:00", "states": {drive.value: {"level": 0.9} for drive in Drive}},
    ],
)
def test_unreadable_drives_begin_at_the_baseline(stored: dict[str, object] | None) -> None:
    assert {state.level for state in read_drives(stored, NOW).states.values()} == {BASELINE}


def test_drives_survive_the_round_trip() -> None:
    original = drives(Drive.REST, level=0.7, building=True, satisfied_at=NOW - hours(1))
    assert read_drives(original.to_json(), NOW) == original
    assert read_drives(original.model_dump(mode="json"), NOW) == original, "as older versions stored them"


def test_drives_of_several_times_survive_the_round_trip() -> None:
    original = satisfy_by_contact(drives(Drive.CONNECTION, level=0.9, building=True), NOW + hours(1))
    original = original.model_copy(update={"until": NOW + hours(2)})
    stored = original.to_json()
    assert read_drives(stored, NOW) == original
    assert len(str(stored)) < len(str(original.model_dump(mode="json"))) / 2
