"""The section about signals that an agent is subscribed to."""

from __future__ import annotations

from collections.abc import Sequence

from arbor.clock import format_time
from arbor.heartbeat.views import SubscribedSignal
from arbor.quotations import Data, line
from arbor.signals import CATALOGUE, SignalName

_SUBJECT_LENGTH = 120


def signals(signals: Sequence[SubscribedSignal], data: Data) -> str:
    """Render what has changed since the last prompt, one line for each name and source; titles are others' texts."""
    if not signals:
        return ""
    body = data.block(_line(signal) for signal in signals)
    return f"## What has changed\nYou are notified of these changes; each line counts them since you last looked.\n{body}"


def _line(signal: SubscribedSignal) -> str:
    # Without room, an entry has several names; a replay may have names of another version.
    meaning = CATALOGUE[SignalName(signal.name)].meaning if signal.name in CATALOGUE else "It happened"
    about = (
        f" ({'about you' if signal.source == 'you' else f'about {line(signal.source)}'})"
        if signal.source
        else ""
    )
    subjects = ", ".join(f"“{line(subject, _SUBJECT_LENGTH)}”" for subject in signal.subjects)
    count = f"{signal.count} times, last " if signal.count > 1 else ""
    return f"- {line(signal.name)}{about}, {count}{format_time(signal.at)}: {line(meaning)}{f': {subjects}' if subjects else ''}"
