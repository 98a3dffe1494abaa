"""The prompt of a heartbeat: a constant part, which providers cache, then the situation.

Texts of others and of the agent's past are in data blocks. Their tags carry a mark that is new and unguessable for each
prompt, so no text inside can close its block or open another.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from arbor.heartbeat.prompts.fitting import fit, is_small
from arbor.heartbeat.prompts.instructions import CLOSING, further_keys, instructions
from arbor.heartbeat.prompts.reductions import signal_sources
from arbor.heartbeat.prompts.sections import goals, influence, knowledge, moment, selfhood
from arbor.heartbeat.prompts.sections.moment import SHOWN_PERCEPTS
from arbor.heartbeat.prompts.token_shares import least_reply, room_of, shares, side_of
from arbor.heartbeat.replies.reply_schema import asked_keys
from arbor.heartbeat.situation import Situation
from arbor.models.token_counts import CountTokens
from arbor.models.token_estimates import estimate_tokens
from arbor.quotations import Data, RenderedSection

# Limits of an unknown model, in tokens: the defaults of ARBOR_MODEL_CONTEXT and ARBOR_MODEL_MAX_TOKENS.
DEFAULT_WINDOW = 16_384
DEFAULT_REPLY_TOKENS = 4_096
#: The share of a small window that the prompt leaves to a further round trip, or to another try after an unreadable reply.
FURTHER_ROUND_TRIP_SHARE = 0.1
# Shorter marks could be guessed.
_NONCE = re.compile(r"[0-9A-Za-z]{16,64}")


class PromptSection(NamedTuple):
    """One section of a prompt; `tokens` is counted or estimated, `cut` counts the dropped entries."""

    name: str
    text: str
    tokens: int
    cut: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """A rendered prompt; sections in order, those of `system` first, and the ids of the percepts that it shows."""

    system: str
    user: str
    sections: tuple[PromptSection, ...]
    percepts: tuple[str, ...]
    #: The sources of signals that are not shown.
    waiting_sources: Collection[str] = ()
    #: Tokens that did not fit, by section, those of clipped texts too.
    removed: Mapping[str, int] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        return sum(section.tokens for section in self.sections)

    @property
    def sizes(self) -> dict[str, int]:
        return {section.name: section.tokens for section in self.sections}


def build_prompt(
    situation: Situation,
    character_prompt: str,
    nonce: str,
    *,
    window: int = DEFAULT_WINDOW,
    reply_tokens: int = DEFAULT_REPLY_TOKENS,
    count: CountTokens = estimate_tokens,
) -> Prompt:
    """Render a situation for a model, each side within its token share (seed 003, 10.6).

    `nonce` is 16 to 64 random letters and digits, new for each prompt; `window` and `reply_tokens` are the tokens of
    the model's window and of its longest reply, as `count` counts them.
    """
    if not _NONCE.fullmatch(nonce):
        raise ValueError(f"a nonce is 16 to 64 random letters and digits, got {len(nonce)} characters")
    compact = is_small(window=window, reply=reply_tokens)
    # A section is counted for its side, and again for the list of sections.
    count = cache(count)
    system = [
        *instructions(situation.actions, compact=compact),
        RenderedSection("character", character_prompt.strip()),
        RenderedSection("skills", knowledge.skills(situation.skills)),
    ]
    mark = RenderedSection("mark", f"The mark of this message is {nonce}.")
    last = (
        RenderedSection("further_keys", further_keys(asked_keys(situation))),
        RenderedSection("closing", CLOSING),
    )
    fixed = sum(count(section.text) for section in (*system, mark, *last))
    most = window - fixed - least_reply(window=window, reply=reply_tokens)
    reserved = 0
    if compact:
        fixed += int(window * FURTHER_ROUND_TRIP_SHARE)
        # A large window has room for these short sections beside the shares; a small one counts them.
        reserved = sum(
            count(section.text) for section in render(situation, nonce) if side_of(section.name) is None
        )
    fitted, shown = fit(
        situation,
        shares(window=window, fixed=fixed + reserved, reply=reply_tokens),
        lambda cut: render(cut, nonce),
        room=room_of(window=window, fixed=fixed, reply=reply_tokens),
        most=most,
        count=count,
    )
    user = [mark, *shown, *last]
    return Prompt(
        system=join_sections(system),
        user=join_sections(user),
        sections=tuple(
            PromptSection(name, text, tokens=count(text), cut=fitted.cut.get(name, 0))
            for name, text in (*system, *user)
            if text
        ),
        percepts=tuple(percept.id for percept in fitted.situation.percepts[-SHOWN_PERCEPTS:]),
        waiting_sources={*signal_sources(situation)}.difference(signal_sources(fitted.situation)),
        removed=fitted.removed,
    )


def render(situation: Situation, nonce: str) -> list[RenderedSection]:
    """Render the situation: slowly changing sections first, news last. Empty sections are left out of the prompt."""
    data = Data(nonce)
    environment, offered = situation.environment, {offer.name for offer in situation.actions}
    texts = {
        "identity": selfhood.identity(situation.aspects, data),
        "beliefs": selfhood.beliefs(situation.beliefs, data),
        "preferences": selfhood.preferences(situation.preferences, data),
        "capabilities": selfhood.capabilities(situation.capabilities, offered),
        "experiences": selfhood.experiences(situation.experiences, data),
        "tallies": influence.tallies(situation.tallies),
        "peers": selfhood.peers(situation.peers, data),
        "goals": goals.goals(situation, data),
        "plan": goals.plan(situation, data),
        "intents": goals.intents(situation.pending_intents, data),
        "approvals": influence.approvals(situation.approvals, data),
        "precedents": influence.precedents(situation.precedents, data),
        "attempts": influence.attempts(situation.attempts, data),
        "publications": influence.publications(situation.publications, data),
        "handlers": influence.handlers(situation.handlers, data),
        "issues": goals.issues(situation.issues, data),
        "recent": moment.memories("Recent experience", situation.recent, data),
        "relevant": moment.memories("Memories that may matter now", situation.relevant, data),
        "clusters": moment.clusters(situation.clusters, data),
        "held": moment.buffer_items(situation.held, data),
        "working_memory": moment.working_memory(situation.working_memory, data),
        "contradictions": selfhood.contradictions(situation.contradictions, data),
        "proposals": selfhood.proposals(situation.proposals, data),
        "last_heartbeat": moment.last_heartbeat(situation.last_heartbeat, situation.recent, data),
        "timing": moment.timing(situation),
        "tools": knowledge.tools(situation.actions, data),
        "environment": moment.environment(environment, data),
        "energy": moment.energy(situation),
        "mood": selfhood.mood(situation.mood),
        "drives": selfhood.drives(situation.drives, offered),
        "notices": moment.notices(situation.notices, data),
        "signals": knowledge.signals(situation.signals, data),
        "percepts": moment.percepts(situation.percepts, environment.pending_percepts, data),
        "boundaries": selfhood.boundaries(situation.boundary_matches, data),
        "directive": moment.directive(situation),
    }
    return [RenderedSection(name, text) for name, text in texts.items()]


def retry_note(fault: str) -> str:
    return f"Your answer could not be read: {fault}. Answer again with the JSON object only."


def join_sections(sections: Iterable[RenderedSection]) -> str:
    """Return the texts of sections as one, without empty ones."""
    return "\n\n".join(section.text for section in sections if section.text)
