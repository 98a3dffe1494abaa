"""Steps on the self: settled proposals, decisions, insights (seed 000, 5)."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from arbor.errors import ArborError, Invalid, NotFound
from arbor.heartbeat.needs import (
    DecideProposal,
    OwnMemories,
    ProposalOutcome,
    Propose,
    ProposedChange,
    SettledProposals,
)
from arbor.heartbeat.replies.items import Dropped
from arbor.heartbeat.replies.reply import IdentityInsight, InsightKind
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.views import ProposalView
from arbor.ids import read_id
from arbor.pipeline.engine import NodeResult, Steps
from arbor.quotations import counted, shorten
from arbor.selves.proposals import (
    MAX_EVIDENCE,
    MIN_INSIGHT,
    PROPOSALS_SHOWN,
    NewProposal,
    ProposalKind,
)
from arbor.selves.values import AspectKind, check_preference, check_quality

#: Characters of a proposal in a line of the trace.
_TRACE_LENGTH = 120
_REDUNDANT = "that is so already; a trait, value or capability that you have is worth an insight once its strength is clearly another"


def consolidate(heartbeat: HeartbeatState) -> Steps[HeartbeatState]:
    """Propose settled changes to the self, which this heartbeat may decide about."""
    outcome: ProposalOutcome = yield SettledProposals()
    expired_ids = {str(proposal.id) for proposal in outcome.expired}
    shown = [proposal for proposal in heartbeat.situation.proposals if proposal.id not in expired_ids]
    shown += [
        ProposalView(
            id=str(proposal.id),
            kind=proposal.kind,
            aspect=proposal.aspect,
            content=proposal.content,
            confidence=proposal.confidence,
            evidence=proposal.evidence,
        )
        for proposal in outcome.made
        if proposal.acceptable
    ]
    shown.sort(key=lambda proposal: -proposal.confidence)
    changed = _lines(
        ("proposed", outcome.made),
        ("not proposed, because it is so already", outcome.redundant),
        ("fell out of the queue", outcome.expired),
    )
    if deleted := outcome.deleted_experiences:
        changed.append(f"deleted {counted(deleted, 'old experience')}")
    return NodeResult(
        state=heartbeat.with_situation(proposals=shown[:PROPOSALS_SHOWN]), changed=tuple(changed)
    )


def _lines(*found: tuple[str, Sequence[ProposedChange | NewProposal]]) -> list[str]:
    """Return a line of the trace for each proposal, with what happened to it."""
    return [
        f"{what}: {shorten(proposal.content, _TRACE_LENGTH)}"
        for what, proposals in found
        for proposal in proposals
    ]


def process_proposals(heartbeat: HeartbeatState) -> Steps[HeartbeatState]:
    """Apply the reply's decisions; one that cannot be applied is dropped with its reason."""
    done: list[str] = []
    dropped: list[Dropped] = []
    choices = heartbeat.reply_or_empty.proposal_decisions
    paths = heartbeat.reply_or_empty.paths_of("proposal_decisions", choices)
    for path, choice in zip(paths, choices, strict=True):
        try:
            line: str = yield DecideProposal(proposal_id=_proposal_id(choice.proposal_id), choice=choice)
        except ArborError as error:
            dropped.append(Dropped(path=path, value=choice.model_dump_json(), reason=str(error)))
        else:
            done.append(line)
    return NodeResult(state=heartbeat.with_dropped(dropped), changed=tuple(done))


def _proposal_id(named: str) -> UUID:
    try:
        return UUID(named)
    except ValueError:
        raise NotFound(f"there is no proposal {named!r}; use the ids as shown") from None


def identity_insights(heartbeat: HeartbeatState) -> Steps[HeartbeatState]:
    """Propose the insights of the reply; drop those with too little confidence, without evidence, known, or in a wrong form."""
    insights = heartbeat.reply_or_empty.identity_insights
    if not insights:
        return NodeResult(state=heartbeat)
    named = [text for insight in insights for text in insight.evidence if read_id(text.strip())]
    stripped = [text.strip() for text in dict.fromkeys(named)]
    own: frozenset[UUID] = (yield OwnMemories(named=stripped)) if named else frozenset()
    # A list, because insights of several round trips may have equal paths.
    proposals: list[tuple[str, IdentityInsight, NewProposal]] = []
    dropped: list[Dropped] = []
    paths = heartbeat.reply_or_empty.paths_of("identity_insights", insights)
    for path, insight in zip(paths, insights, strict=True):
        try:
            proposals.append((path, insight, _proposal(insight, own, source=heartbeat.source)))
        except ArborError as error:
            dropped.append(Dropped(path=path, value=insight.model_dump_json(), reason=str(error)))
            continue
        if unknown := [text for text in insight.evidence if read_id(text.strip()) not in own]:
            reason = "evidence is a memory of yours, by its id; there is none with such an id"
            dropped.append(Dropped(path=f"{path}.evidence", value="; ".join(unknown), reason=reason))
    outcome: ProposalOutcome = ProposalOutcome()
    if proposals:
        outcome = yield Propose(proposals=[proposal for _, _, proposal in proposals])
    dropped += [
        Dropped(path=path, value=insight.model_dump_json(), reason=_REDUNDANT)
        for path, insight, proposal in proposals
        if proposal in outcome.redundant
    ]
    changed = _lines(
        ("proposed", outcome.made),
        ("proposed already", outcome.known),
        ("fell out of the queue", outcome.expired),
    )
    return NodeResult(state=heartbeat.with_dropped(dropped), changed=tuple(changed))


def _proposal(insight: IdentityInsight, own: frozenset[UUID], *, source: str) -> NewProposal:
    confidence = MIN_INSIGHT if insight.confidence is None else insight.confidence
    if confidence < MIN_INSIGHT:
        raise Invalid(f"an insight into oneself needs a confidence of at least {MIN_INSIGHT:g}")
    # A memory counts once, however its id is written.
    named = dict.fromkeys(read_id(text.strip()) for text in insight.evidence)
    evidence = [str(memory_id) for memory_id in named if memory_id in own]
    if not evidence:
        raise Invalid(
            "an insight into oneself rests on memories: give the ids of some, as shown, under evidence"
        )
    is_preference = insight.kind is InsightKind.PREFERENCE
    if not is_preference:
        check_quality(AspectKind(insight.kind), insight.content)
    return NewProposal(
        kind=ProposalKind.PREFERENCE if is_preference else ProposalKind.IDENTITY,
        content=insight.content.strip(),
        confidence=confidence,
        source=source,
        change=_parse_preference(insight.content) if is_preference else {"aspect": insight.kind.value},
        evidence=evidence[:MAX_EVIDENCE],
    )


def _parse_preference(content: str) -> dict[str, str]:
    key, colon, value = content.partition(":")
    if not colon:
        raise Invalid("a preference is written key: value, such as tone: brief")
    key, value = check_preference(key, value)
    return {"key": key, "value": value}
