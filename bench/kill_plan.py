"""The plan of the kill benchmark: the settings of its fleet, and the kinds of processes it kills, with their shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: Short leases, so that lost work is recovered in seconds.
SETTINGS: Mapping[str, str] = {
    "ARBOR_QUEUE_LEASE_S": "1.5",
    "ARBOR_RUN_LEASE_S": "2",
    "ARBOR_MODEL_DEADLINE_S": "2",
    "ARBOR_DISPATCH_PERIOD_S": "0.2",
    # Kills of the same heartbeat many times in a row must not abandon it.
    "ARBOR_MAX_ATTEMPTS": "1000",
    # Messages are counted as effects, so they need no pause.
    "ARBOR_REACH_OUT_COOLDOWN_H": "0",
}


@dataclass(frozen=True, kw_only=True)
class Victim:
    """One kind of process of the fleet."""

    name: str
    #: The part of `arbor up`.
    part: str
    #: Whether a process of the part's pool is killed instead of its main process.
    child: bool
    #: The share of all kills, in percent.
    weight: int


#: Children are killed more often, because they are replaced by a fork: a main process needs seconds to start, and the calls of
#: a killed model worker wait for a lease of a dozen seconds.
VICTIMS: Sequence[Victim] = (
    Victim(name="heartbeat child", part="heartbeat", child=True, weight=70),
    Victim(name="heartbeat", part="heartbeat", child=False, weight=6),
    Victim(name="model", part="model", child=False, weight=6),
    Victim(name="dispatcher child", part="dispatcher", child=True, weight=10),
    Victim(name="dispatcher", part="dispatcher", child=False, weight=4),
    Victim(name="scheduler", part="scheduler", child=False, weight=4),
)
