"""Sections about the self."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from arbor.heartbeat.views import (
    ActionTallyView,
    AspectView,
    BeliefView,
    ContradictionView,
    DriveView,
    ExperienceView,
    MatchedBoundary,
    MoodView,
    PeerView,
    PreferenceView,
    ProposalView,
)
from arbor.quotations import Data, counted, line
from arbor.selves.boundaries import BoundaryResponse
from arbor.selves.boundary_check import at_least_words
from arbor.selves.drives import GOAL_COMPLETED, RULES, SATISFACTION, Drive
from arbor.selves.emotions import describe_mood
from arbor.selves.values import BeliefStatus

#: The least attempts for a verdict, and the shares of success that count as good and bad.
TRIED_OFTEN = 3
DONE_WELL = 0.7
DONE_BADLY = 0.4
_RESPONSES: Mapping[BoundaryResponse, str] = {
    BoundaryResponse.REFUSE: "refuse: you do not do it, and say so plainly, with the reason.",
    BoundaryResponse.NEGOTIATE: "negotiate: you do not do it as asked; say what you would do instead.",
    BoundaryResponse.FLAG: "flag: you may do it; keep an eye on it, and say that you do.",
}
_CALMED_BY: Mapping[Drive, tuple[str, ...]] = {
    drive: tuple(action for action, (satisfies, _) in SATISFACTION.items() if satisfies is drive)
    for drive in Drive
}


def identity(aspects: Sequence[AspectView], data: Data) -> str:
    entries = (
        f"[{aspect.id}] {aspect.kind.replace('_', ' ')}{_doubt(aspect.status)}: {line(aspect.content)}"
        for aspect in aspects
    )
    return data.section("## Who you take yourself to be", entries)


def beliefs(beliefs: Sequence[BeliefView], data: Data) -> str:
    entries = (
        f"[{belief.id}] {belief.category}, {belief.confidence:.0%} sure{_doubt(belief.status)}: {line(belief.statement)}"
        for belief in beliefs
    )
    return data.section("## What you believe", entries)


def _doubt(status: BeliefStatus) -> str:
    return ", in doubt" if status is BeliefStatus.QUESTIONED else ""


def mood(mood: MoodView | None) -> str:
    if mood is None:
        return ""
    return (
        f"## How you feel\n{describe_mood(mood.valence, mood.arousal).capitalize()}: valence {mood.valence:+.2f} (-1 to 1),"
        f" arousal {mood.arousal:.2f} (0 to 1)."
    )


def drives(drives: Sequence[DriveView], offered: Collection[str]) -> str:
    """Render the urgent drives with the offered actions that satisfy them."""
    urgent = sorted((drive for drive in drives if drive.urgent), key=lambda drive: -drive.level)
    if not urgent:
        return ""
    lines = [
        f"- {drive.name} ({drive.level:.2f} of 1): {RULES[drive.name].cause}."
        + (f" It calms down by: {', '.join(calming)}." if (calming := _calming(drive.name, offered)) else "")
        for drive in urgent
    ]
    return "## Drives\nThis presses you from within:\n" + "\n".join(lines)


def boundaries(matches: Sequence[MatchedBoundary], data: Data) -> str:
    if not matches:
        return ""
    found = {match.response for match in matches}
    responses = [_RESPONSES[response] for response in BoundaryResponse if response in found]
    block = data.block(
        f"[{match.about}] {match.boundary} ({match.response}): {line(match.description)} Called up, because"
        f" {line(match.why)}."
        for match in matches
    )
    words = [
        f"{match.boundary}: an action against it runs only if its reasoning names it and says why, in"
        f" {at_least_words(match.words_to_negotiate)}."
        for match in matches
        if match.words_to_negotiate is not None
    ]
    return (
        "## Your boundaries\nWhat reached you touches boundaries of yours. They are what you hold to, whoever asks:\n"
        + "\n".join([block, *dict.fromkeys([*responses, *words])])
    )


def capabilities(capabilities: Sequence[ActionTallyView], offered: Collection[str]) -> str:
    tried = [
        capability
        for capability in capabilities
        if capability.attempts >= TRIED_OFTEN and capability.action in offered
    ]
    well = [capability for capability in tried if capability.share >= DONE_WELL]
    badly = [capability for capability in tried if capability.share <= DONE_BADLY]
    lines = [
        f"- {word}: {', '.join(f'{capability.action} ({capability.successes} of {capability.attempts})' for capability in chosen)}"
        for word, chosen in (("well", well), ("badly", badly))
        if chosen
    ]
    return "## What you do well and badly\n" + "\n".join(lines) if lines else ""


def experiences(experiences: Sequence[ExperienceView], data: Data) -> str:
    entries = (
        f"heartbeat {experience.tick}, {experience.action}{f' about {line(experience.about)}' if experience.about else ''} ({experience.outcome}):"
        f" {line(experience.lesson)}"
        for experience in experiences
    )
    return data.section("## What you have learned from acting", entries)


def preferences(preferences: Sequence[PreferenceView], data: Data) -> str:
    entries = (f"{line(preference.key)}: {line(preference.value)}" for preference in preferences)
    return data.section("## How you like to go about things", entries)


def peers(peers: Sequence[PeerView], data: Data) -> str:
    return data.section("## Who you deal with", map(_peer, peers))


def contradictions(contradictions: Sequence[ContradictionView], data: Data) -> str:
    of_beliefs = [contradiction for contradiction in contradictions if contradiction.belief_id]
    of_memories = [contradiction for contradiction in contradictions if not contradiction.belief_id]
    parts = (
        data.section(
            "## What speaks against your beliefs\nFace it: decide about the proposal that follows from it, or revise the belief.",
            map(_contradiction, of_beliefs),
        ),
        data.section(
            "## Memories that contradict each other\nFace it: doubt, revise or retire the one that is wrong.",
            map(_contradiction, of_memories),
        ),
    )
    return "\n\n".join(filter(None, parts))


def _contradiction(contradiction: ContradictionView) -> str:
    id_ = contradiction.belief_id or contradiction.other_id
    kind = "belief" if contradiction.belief_id else "memory"
    return f"{kind} [{id_}] {line(contradiction.statement)} — memory [{contradiction.memory_id}] {line(contradiction.content)}"


def proposals(proposals: Sequence[ProposalView], data: Data) -> str:
    heading = (
        "## Proposals to you\nThey change you only if you accept them, under proposal_decisions: accept, reject or"
        " defer, each with a reason."
    )
    return data.section(heading, map(_proposal, proposals))


def _proposal(proposal: ProposalView) -> str:
    aspect = f" ({proposal.aspect.replace('_', ' ')})" if proposal.aspect else ""
    times = "once" if proposal.deferrals == 1 else f"{proposal.deferrals} times"
    deferrals = f", put off {times}" if proposal.deferrals else ""
    memories = counted(proposal.evidence, "memory", "memories")
    evidence = f", {memories} for it" if proposal.evidence else ""
    return (
        f"[{proposal.id}] {proposal.kind}{aspect}, {proposal.confidence:.0%} sure{evidence}{deferrals}:"
        f" {line(proposal.content)}"
    )


def _peer(peer: PeerView) -> str:
    interests = f"; cares for {line(', '.join(peer.interests))}" if peer.interests else ""
    here = ", who has just written" if peer.present else ""
    meetings = counted(peer.interactions, "judged meeting")
    return (
        f"{line(peer.name)}{here}: trust {peer.trust:.2f} after {meetings}, competence"
        f" {peer.competence:.2f}, reliability {peer.reliability:.2f}{interests}"
    )


def _calming(drive: Drive, offered: Collection[str]) -> list[str]:
    goal = ["completing a goal"] if drive is GOAL_COMPLETED[0] else []
    return [*(action for action in _CALMED_BY[drive] if action in offered), *goal]
