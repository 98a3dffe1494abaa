"""The catalogue of signals: the meaning of each state change that people and programs can follow, and the fields of its data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from arbor.signal_names import SignalName

#: The most ids that a signal lists; its `count` is the number of all of them.
MAX_IDS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class SignalKind:
    """The meaning of a signal, and the fields of its data with their meanings."""

    meaning: str
    fields: Mapping[str, str]


def _kind(meaning: str, **fields: str) -> SignalKind:
    return SignalKind(meaning=meaning, fields=MappingProxyType(fields))


_NAME = "the agent's name"
_ACTOR = "who did it: `user:NAME`, `cli:NAME`, `system:PART`"
_COUNT = "how many memories"
_MEMORIES = f"their ids, at most {MAX_IDS}"
_GOAL: dict[str, str] = {
    "goal": "the goal's id",
    "title": "its title",
    "state": "its place in the backlog",
    "fraction": "its progress, 0 to 1",
}
_PROPOSAL: dict[str, str] = {
    "proposal": "the proposal's id",
    "kind": "what it would change",
    "by": "who decided or proposed: `heartbeat:ID`, `user:NAME`, `cli:NAME`, a part of the installation",
}
_RUN: dict[str, str] = {
    "run": "the id of the run",
    "workflow": "the workflow's name",
    "agent": "the id of the agent that started the run, or of the workflow's; empty for none",
}
_ENTRIES = "the number of entries that came or went"
_DOCUMENT: dict[str, str] = {
    "document": "the document's id",
    "title": "its title",
    "category": "its category; empty for none",
    "version": "the number of its latest version",
}

CATALOGUE: Mapping[SignalName, SignalKind] = MappingProxyType(
    {
        SignalName.AGENT_CREATED: _kind(
            "The agent was created", name=_NAME, template="its template", actor=_ACTOR
        ),
        SignalName.AGENT_STARTED: _kind("The agent was started", name=_NAME, actor=_ACTOR),
        SignalName.AGENT_PAUSED: _kind("The agent was paused", name=_NAME, actor=_ACTOR),
        SignalName.AGENT_RESUMED: _kind("A pause of the agent ended", name=_NAME, actor=_ACTOR),
        SignalName.AGENT_STOPPED: _kind("The agent was stopped", name=_NAME, actor=_ACTOR),
        SignalName.AGENT_DORMANT: _kind(
            "The agent fell asleep, or was put to sleep", name=_NAME, actor=_ACTOR
        ),
        SignalName.AGENT_WOKEN: _kind("The agent was woken", name=_NAME, actor=_ACTOR),
        SignalName.AGENT_DESTROYED: _kind("The agent was deleted with its rows", name=_NAME, actor=_ACTOR),
        SignalName.AGENT_PUBLISHED: _kind(
            "The agent was published to agents elsewhere, or its public description changed",
            name=_NAME,
            actor=_ACTOR,
        ),
        SignalName.AGENT_UNPUBLISHED: _kind(
            "The agent is no longer published to agents elsewhere", name=_NAME, actor=_ACTOR
        ),
        SignalName.AGENT_IDENTITY_CHANGED: _kind(
            "The agent's identity was endorsed, suspended, revoked or reinstated, or its keys were rotated",
            name=_NAME,
            status="active, suspended or revoked",
            actor=_ACTOR,
        ),
        SignalName.AGENT_SEED_CAPTURED: _kind(
            "A seed of the agent was exported or saved",
            name=_NAME,
            digest="the digest of the agent's state",
            reason="export, or why the installation saved the seed",
        ),
        SignalName.AGENT_CAPABILITY_CHANGED: _kind(
            "A capability was granted to the agent, delegated to it, or revoked",
            name=_NAME,
            resource="the `arbor://` URI",
            change="granted, delegated or revoked",
            actor=_ACTOR,
        ),
        SignalName.AGENT_SKILLS_CHOSEN: _kind(
            "The active skills of the agent were chosen",
            skills="their names, in the order of its prompts",
            actor=_ACTOR,
        ),
        SignalName.AGENT_SKILL_CHANGED: _kind(
            "A skill that the agent uses has a new version, or another takes its place",
            skill="its name",
            digest="the digest of the version that is used now",
            actor=_ACTOR,
        ),
        SignalName.AGENT_SUBSCRIPTION_CHANGED: _kind(
            "The agent was subscribed to signals, or no longer is",
            subscription="the subscription's id",
            names="the names of the signals, as they were given",
            source="the id of the agent that they are about; empty: what the agents share",
            change="added or removed",
            actor=_ACTOR,
        ),
        SignalName.HEARTBEAT_STARTED: _kind(
            "A heartbeat began", trigger="its cause: timer, operator, message, chat, event, drive, cycle"
        ),
        SignalName.HEARTBEAT_STEP: _kind(
            "A heartbeat reached a point at which it waits for a model",
            mode="the heartbeat's focus",
            purpose="what the model is asked for",
            round_trip="the number of the round trip",
            steps="the number of nodes that ran since the last signal",
        ),
        SignalName.HEARTBEAT: _kind(
            "A heartbeat ended",
            status="done, skipped or failed",
            trigger="its cause",
            mode="its focus; empty if it chose none",
            number="its number in the agent's life; 0 if it was skipped",
            round_trips="the number of its round trips",
            actions="the number of its actions",
            energy="the energy that is left; null if nothing was spent",
        ),
        SignalName.REPLY_UNUSABLE: _kind(
            "A heartbeat ended without a usable reply", in_a_row="how many such heartbeats in a row"
        ),
        SignalName.BUDGET_LEVEL: _kind(
            "The level of the day's budget changed", before="the former level", after="the level now"
        ),
        SignalName.BOUNDARY_MATCHED: _kind(
            "A boundary applied to something that the agent was about to do, say or read",
            name="the boundary's name",
            response="refuse, negotiate or flag",
        ),
        SignalName.TIER_CHANGED: _kind(
            "The trust tier of the agent changed",
            before="the former tier",
            after="the tier now",
            score="the score, 0 to 100; null where none was computed",
            by="who decided: `system:trust`, `user:NAME`, `cli:NAME`",
        ),
        SignalName.APPROVAL_ASKED: _kind(
            "The agent asked for a person's approval",
            approval="the id of the request",
            action="the action's name",
        ),
        SignalName.TRUST_CHANGED: _kind(
            "A person set the agent's trust preset, or set or removed a trust rule of its own",
            name=_NAME,
            resource="the `arbor://` URI of the rule; empty for the preset",
            trust="the mode of the rule, or the preset; empty for a removed rule",
            actor=_ACTOR,
        ),
        SignalName.APPROVAL_DECIDED: _kind(
            "A request for approval was decided, or has expired",
            approval="the id of the request",
            action="the action's name",
            status="approved, denied or expired",
            by=_ACTOR,
        ),
        SignalName.DECISION: _kind(
            "An action was decided and has its outcome",
            action="the action's name",
            outcome="success, failure, partial, blocked or unknown",
            cost="the energy it took",
        ),
        SignalName.INTENT_FORMED: _kind(
            "A step was committed", intent="its id", goal="the goal's id", action="its action"
        ),
        SignalName.PERCEPT_RECEIVED: _kind(
            "Something reached the agent and waits for its next heartbeat",
            percept="the percept's id",
            kind="its kind: user_message, environment, error, …",
            urgent="whether it brought the heartbeat forward",
        ),
        SignalName.MESSAGE_POSTED: _kind(
            "The agent wrote to its users, the public or another agent",
            message="the message's id",
            kind="how it leaves: inbox, email, webhook, peer",
            audience="user or public",
        ),
        SignalName.RECALLED: _kind("The agent recalled memories", count=_COUNT, memories=_MEMORIES),
        SignalName.INDEXED: _kind("Memories were stored", count=_COUNT, memories=_MEMORIES),
        SignalName.LEARNING_EXTRACTED: _kind(
            "A heartbeat noted what it learned", count=_COUNT, memories=_MEMORIES
        ),
        SignalName.LESSON_EXTRACTED: _kind(
            "An action taught a lesson", action="the action's name", outcome="its outcome"
        ),
        SignalName.KNOWLEDGE_LINKED: _kind(
            "Two things that the agent knows were related",
            relation="the kind of relation",
            source="the id of the one",
            target="the id of the other",
        ),
        SignalName.KNOWLEDGE_ARCHIVED: _kind(
            "Memories were archived", count=_COUNT, memories=_MEMORIES, actor=_ACTOR
        ),
        SignalName.KNOWLEDGE_RESTORED: _kind(
            "Archived memories were brought back", count=_COUNT, memories=_MEMORIES, actor=_ACTOR
        ),
        SignalName.KNOWLEDGE_PRUNED: _kind(
            "Archived memories were deleted for good", count=_COUNT, memories=_MEMORIES, actor=_ACTOR
        ),
        SignalName.MEMORY_CORRECTED: _kind(
            "A memory was confirmed, weighed anew, doubted, revised, pinned or unpinned",
            memory="its id",
            changes="the names of the changed values",
            actor="who did it",
        ),
        SignalName.MEMORY_PROMOTED: _kind("Buffer items became memories", count=_COUNT, memories=_MEMORIES),
        SignalName.CONTEXT_SUMMARIZED: _kind("Episodes were summarized", count="how many episodes"),
        SignalName.THINKING_RECORDED: _kind(
            "The thinking of a model's reply was recorded", characters="its length"
        ),
        SignalName.WORKING_MEMORY_SAVED: _kind(
            "The working memory was saved after a heartbeat",
            thoughts="the number of thoughts",
            concerns="the number of concerns",
            curiosity="the number of questions",
        ),
        SignalName.CONCERN_ADDED: _kind("The working memory has new concerns", count=_ENTRIES),
        SignalName.CONCERN_RESOLVED: _kind("Concerns left the working memory", count=_ENTRIES),
        SignalName.CURIOSITY_ADDED: _kind("The working memory has new questions", count=_ENTRIES),
        SignalName.CURIOSITY_SATISFIED: _kind("Questions left the working memory", count=_ENTRIES),
        SignalName.ENGAGEMENT_CHANGED: _kind(
            "The engagement changed", before="the former one, 0 to 1", after="the engagement now"
        ),
        SignalName.GOAL_CREATED: _kind("A goal was added to the backlog", **_GOAL),
        SignalName.GOAL_PROGRESS: _kind("A goal advanced, moved, was blocked or changed otherwise", **_GOAL),
        SignalName.GOAL_ACHIEVED: _kind("A goal was completed", **_GOAL),
        SignalName.GOAL_ABANDONED: _kind("A goal was abandoned", **_GOAL),
        SignalName.PROPOSAL_CREATED: _kind("A change of the self was proposed", **_PROPOSAL),
        SignalName.PROPOSAL_ACCEPTED: _kind("A proposal was accepted and applied", **_PROPOSAL),
        SignalName.PROPOSAL_REJECTED: _kind("A proposal was rejected", **_PROPOSAL),
        SignalName.PROPOSAL_DEFERRED: _kind("The decision about a proposal was put off", **_PROPOSAL),
        SignalName.PROPOSAL_EXPIRED: _kind("A proposal expired without a decision", **_PROPOSAL),
        SignalName.IDENTITY_CHANGE: _kind(
            "A part of the self was added, changed or removed",
            what="belief, aspect, preference or boundary",
            target="the id of the part",
            by="who decided: `heartbeat:ID`, `user:NAME`, `cli:NAME`",
        ),
        SignalName.IDENTITY_ROLLBACK: _kind(
            "A person rolled the self back to an earlier version",
            to="the version that was restored",
            version="the version that this made",
            by="who decided: `user:NAME`, `cli:NAME`",
        ),
        SignalName.RELATIONSHIP_CREATED: _kind("The agent got to know a peer", peer="the peer's id here"),
        SignalName.RELATIONSHIP_UPDATED: _kind(
            "The agent's model of a peer changed",
            peer="the peer's id here",
            competence="how able the agent takes the peer to be, 0 to 1",
            reliability="how far it relies on the peer, 0 to 1",
        ),
        SignalName.CONVERSATION_CHANGED: _kind(
            "A conversation began or ended", conversation="its id", state="open or ended"
        ),
        SignalName.CHAT_MESSAGE_ADDED: _kind(
            "A turn was added to a conversation",
            conversation="the conversation's id",
            turn="the turn's id",
            speaker="user or agent",
        ),
        SignalName.DOCUMENT_PUBLISHED: _kind(
            "Agents can find the document from now on", **_DOCUMENT, actor=_ACTOR
        ),
        SignalName.DOCUMENT_CHANGED: _kind(
            "A published document got a new version, or moved to another category", **_DOCUMENT, actor=_ACTOR
        ),
        SignalName.DOCUMENT_WITHDRAWN: _kind(
            "A published document was withdrawn or deleted: agents no longer find it",
            **_DOCUMENT,
            actor=_ACTOR,
        ),
        SignalName.DOCUMENT_INDEXED: _kind(
            "A version of a document was split into passages, which can be found if it is published",
            **_DOCUMENT,
            passages="how many passages",
        ),
        SignalName.DOCUMENT_FAILED: _kind(
            "A version of a document cannot be read; an earlier one is still found",
            **_DOCUMENT,
            error="the reason",
        ),
        SignalName.WORKFLOW_STARTED: _kind(
            "A run of a workflow began", **_RUN, trigger="person, schedule or agent", actor=_ACTOR
        ),
        SignalName.WORKFLOW_STEP: _kind(
            "A step of a run has ended",
            **_RUN,
            step="its name",
            kind="prompt, approval, delegate, wait or note",
            status="succeeded, failed or canceled",
        ),
        SignalName.WORKFLOW_APPROVAL: _kind(
            "A step waits for a person's approval", **_RUN, step_id="its id", step="its name"
        ),
        SignalName.WORKFLOW_ENDED: _kind(
            "A run of a workflow ended", **_RUN, status="succeeded, failed or canceled"
        ),
    }
)
