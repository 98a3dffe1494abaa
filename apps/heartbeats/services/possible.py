"""What this installation cannot do, and what is missing for it."""

from __future__ import annotations

from apps.web import web_missing

NO_PUBLIC_CHANNEL = (
    "no public channel is set up for you; a person can add one with"
    " `arbor contact channel add NAME --kind webhook --to URL --audience public`"
)


def missing_actions(*, has_public_channel: bool) -> dict[str, str]:
    """Return what is missing, by the name of each action that an agent cannot do here."""
    missing: dict[str, str] = {}
    if without := web_missing():
        missing |= {"inquire_shallow": without, "inquire_deep": without}
    if not has_public_channel:
        missing["reach_out_public"] = NO_PUBLIC_CHANNEL
    return missing
