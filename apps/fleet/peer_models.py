"""Find an agent's model of a peer by the names that programs use."""

from __future__ import annotations

from uuid import UUID

from apps.selves.models import PeerModel
from arbor.errors import Invalid
from arbor.ids import read_id
from arbor.models.json_text import is_storable
from arbor.runtime import AgentRef


def find_peer_model(agent_id: UUID, peer: AgentRef) -> PeerModel | None:
    """Find an agent's model of a peer by either id, or by name, ignoring case; an exact match takes precedence.

    Raises Invalid for an ambiguous name.
    """
    models = PeerModel.objects.filter(agent_id=agent_id)
    peer_id = read_id(peer)
    model: PeerModel | None = models.filter(peer_id=peer_id).first() if peer_id is not None else None
    if model is not None or isinstance(peer, UUID) or not is_storable(peer):
        return model
    wanted = peer.strip()
    # Ids take precedence, because a peer may choose any name.
    by_id: PeerModel | None = models.filter(peer__public_id=wanted).first()
    if by_id is not None:
        return by_id
    named = list(models.filter(name__iexact=wanted).order_by("name"))
    exact = [peer_model for peer_model in named if peer_model.name == wanted]
    if len(named) > 1 and len(exact) != 1:
        names = ", ".join(
            f"{peer_model.name!r} ({peer_model.peer_id or ('gone' if peer_model.is_agent else 'person')})"
            for peer_model in named
        )
        raise Invalid(f"several peers are called {peer!r}: give one of the exact names {names}, or an id")
    return next(iter(exact or named), None)
