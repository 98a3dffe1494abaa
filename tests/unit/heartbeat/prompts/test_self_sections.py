"""Sections of a prompt about the self."""

from __future__ import annotations

import pytest

from arbor.heartbeat.prompts.prompt import render
from arbor.heartbeat.views import (
    ActionTallyView,
    ContradictionView,
    DriveView,
    ExperienceView,
    MatchedBoundary,
    MoodView,
    PeerView,
    PreferenceView,
    ProposalView,
)
from arbor.selves.drives import Drive
from tests.unit.heartbeat.builders import NONCE, situation

SITUATION = situation(
    mood=MoodView(valence=0.3, arousal=0.7),
    drives=[DriveView(name=Drive.CURIOSITY, level=0.9, urgent=True), DriveView(name=Drive.REST, level=0.5)],
    capabilities=[
        ActionTallyView(action=action, attempts=4, successes=4) for action in ("recall", "no_longer_offered")
    ],
    experiences=[
        ExperienceView(
            action="recall", about="the pier", outcome="failure", lesson="Avoid fog.", heartbeat_number=4
        )
    ],
    preferences=[PreferenceView(key="tone", value="dry")],
    peers=[PeerView(name="Bo", trust=0.75, interests=["eels"], interactions=4, present=True)],
    contradictions=[
        ContradictionView(belief_id="b1", statement="Ice holds.", memory_id="m1", content="It broke.")
    ],
    proposals=[
        ProposalView(id=f"p{count}", kind="identity", content="I am patient.", confidence=0.7, evidence=count)
        for count in range(3)
    ],
    boundary_matches=[
        MatchedBoundary(
            boundary="identity_core",
            response="negotiate",
            why="it says “x”",
            about="e1",
            words_to_negotiate=14,
        )
    ],
)


@pytest.mark.parametrize(
    ("section", "line"),
    [
        ("mood", "Good and stirred up: valence +0.30 (-1 to 1), arousal 0.70 (0 to 1)."),
        ("drives", "- curiosity (0.90 of 1): you have learned nothing new. It calms down by: recall"),
        ("capabilities", "- well: recall (4 of 4)"),
        ("experiences", "heartbeat 4, recall about the pier (failure): Avoid fog."),
        ("preferences", "tone: dry"),
        ("peers", "Bo, who has just written: trust 0.75 after 4 judged meetings"),
        ("contradictions", "belief [b1] Ice holds. — memory [m1] It broke."),
        ("proposals", "[p0] identity, 70% sure: I am patient."),
        ("proposals", "[p1] identity, 70% sure, 1 memory for it: I am patient."),
        ("proposals", "[p2] identity, 70% sure, 2 memories for it: I am patient."),
        ("boundaries", "[e1] identity_core (negotiate):"),
        ("boundaries", "in at least 14 more words."),
    ],
)
def test_each_side_of_the_self_has_its_section(section: str, line: str) -> None:
    texts = {section.name: section.text for section in render(SITUATION, NONCE)}
    assert line in texts[section]


def test_an_action_that_is_not_offered_is_no_strength() -> None:
    texts = {section.name: section.text for section in render(SITUATION, NONCE)}
    assert "no_longer_offered" not in texts["capabilities"]


def test_an_empty_self_has_no_sections() -> None:
    texts = {section.name: section.text for section in render(situation(), NONCE)}
    names = (
        "mood",
        "drives",
        "capabilities",
        "experiences",
        "preferences",
        "peers",
        "contradictions",
        "proposals",
        "boundaries",
    )
    assert not any(texts[name] for name in names)
