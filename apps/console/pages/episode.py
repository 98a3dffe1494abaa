"""Read an episode's page by a fixed number of queries, without changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from apps.memories.models import Episode, Memory

MEMBERS_SHOWN = 200
#: A pause between two members that is worth showing: our choice, well below the 30 minutes that end an episode.
PAUSE = timedelta(minutes=5)


@dataclass(frozen=True, kw_only=True)
class EpisodeRow:
    """A memory in its place, and the pause before it where there was one."""

    memory: Memory
    pause: timedelta | None


@dataclass(frozen=True, kw_only=True)
class EpisodePage:
    """An episode, as its page shows it."""

    episode: Episode
    members: Sequence[EpisodeRow]
    before: Episode | None
    after: Episode | None

    @property
    def lasted(self) -> timedelta:
        """Return the time from its first to its last memory."""
        return self.episode.last_at - self.episode.started_at

    @property
    def hidden(self) -> int:
        """Return how many memories were ever put in it and are not shown: archived ones apart, the later ones."""
        return max(0, self.episode.size - len(self.members))


def read_episode(episode: Episode) -> EpisodePage:
    """Read what belongs to the episode, in the current tenant."""
    memories = list(
        Memory.objects.filter(episode_id=episode.id)
        .only("tenant_id", "content", "role", "occurred_at", "sequence", "importance", "status", "type")
        .order_by("sequence")[:MEMBERS_SHOWN]
    )
    pauses = [later.occurred_at - earlier.occurred_at for earlier, later in pairwise(memories)]
    told = [None, *(pause if pause >= PAUSE else None for pause in pauses)][: len(memories)]
    others = Episode.objects.filter(agent_id=episode.agent_id).only("tenant_id", "last_at", "summary", "size")
    return EpisodePage(
        episode=episode,
        members=[
            EpisodeRow(memory=memory, pause=pause) for memory, pause in zip(memories, told, strict=True)
        ],
        before=others.filter(last_at__lt=episode.last_at).order_by("-last_at").first(),
        after=others.filter(last_at__gt=episode.last_at).order_by("last_at").first(),
    )
