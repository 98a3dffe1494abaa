"""The changing sections of a prompt."""

from __future__ import annotations

from arbor.heartbeat.quotations import Data, Section
from arbor.heartbeat.sections import goals, memories, moment, selfhood
from arbor.heartbeat.situation import Situation

__all__ = ["Section", "render"]


def render(situation: Situation, nonce: str) -> list[Section]:
    """Render the situation: slowly changing sections first, news last. Empty sections are left out of the prompt."""
    data = Data(nonce)
    environment = situation.environment
    return [
        Section("identity", selfhood.identity(situation.aspects, data)),
        Section("beliefs", selfhood.beliefs(situation.beliefs, data)),
        Section("preferences", selfhood.preferences(situation.preferences, data)),
        Section("capabilities", selfhood.capabilities(situation.capabilities)),
        Section("experiences", selfhood.experiences(situation.experiences, data)),
        Section("peers", selfhood.peers(situation.peers, data)),
        Section("goals", goals.goals(situation, data)),
        Section("plan", goals.plan(situation, data)),
        Section("intents", goals.intents(situation.pending_intents, data)),
        Section("issues", goals.issues(situation.issues, data)),
        Section("recent", memories.memories("Recent experience", situation.recent, data)),
        Section("relevant", memories.memories("Memories that may matter now", situation.relevant, data)),
        Section("themes", memories.themes(situation.themes, data)),
        Section("held", memories.held(situation.held, data)),
        Section("working_memory", memories.working_memory(situation.working_memory, data)),
        Section("contradictions", selfhood.contradictions(situation.contradictions, data)),
        Section("proposals", selfhood.proposals(situation.proposals, data)),
        Section("last_beat", moment.last_beat(situation.last_beat, data)),
        Section("timing", moment.timing(situation)),
        Section("environment", moment.environment(environment)),
        Section("energy", moment.energy(situation)),
        Section("mood", selfhood.mood(situation.mood)),
        Section("drives", selfhood.drives(situation.drives, {offer.name for offer in situation.actions})),
        Section("notices", moment.notices(situation.notices, data)),
        Section("percepts", moment.percepts(situation.percepts, environment.pending_percepts, data)),
        Section("boundaries", selfhood.boundaries(situation.crossed, data)),
        Section("directive", moment.directive(situation)),
    ]
