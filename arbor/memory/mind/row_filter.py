"""The rows of a mind image that pass a recall's filter and have not expired."""

from __future__ import annotations

from uuid import UUID

import numpy as np

from arbor.memory.mind.image import MindImage
from arbor.memory.recall.candidates import Flags, microseconds
from arbor.memory.recall.recall_request import RecallFilter


def can_answer(only: RecallFilter) -> bool:
    """Return whether an image can answer a filter: images have neither concepts nor clusters."""
    return only.concept is None and only.cluster is None


def passing_rows(image: MindImage, only: RecallFilter, *, now: int) -> Flags | None:
    """Return the rows that may be recalled at `now`, in microseconds since EPOCH; None for all rows."""
    conditions: list[Flags] = []
    if not image.all_active:
        conditions.append(image.active)
    if image.first_expiry <= now:
        conditions.append(image.expires > now)
    if only.without_session and (number := image.names.number_of(only.without_session)) is not None:
        others = image.session != number
        before = only.without_since is not None and image.occurred < microseconds(only.without_since)
        conditions.append(others | before)
    if only.session:
        conditions.append(image.session == _number(image, only.session))
    if only.types:
        conditions.append(np.isin(image.rows["type"], [_number(image, kind.value) for kind in only.types]))
    if only.since is not None:
        conditions.append(image.occurred >= microseconds(only.since))
    if only.until is not None:
        conditions.append(image.occurred < microseconds(only.until))
    if only.min_importance:
        conditions.append(image.rows["importance"] >= only.min_importance)
    if only.min_trust:
        conditions.append(image.rows["trust"] >= only.min_trust)
    if only.episode is not None:
        conditions.append(_of_episode(image, only.episode))
    if not conditions:
        return None
    passing: Flags = np.logical_and.reduce(conditions)
    return passing


def _number(image: MindImage, name: str) -> int:
    number = image.names.number_of(name)
    return -1 if number is None else number


def _of_episode(image: MindImage, episode: UUID) -> Flags:
    high, low = divmod(episode.int, 1 << 64)
    found: Flags = (image.rows["episode_high"] == np.uint64(high)) & (
        image.rows["episode_low"] == np.uint64(low)
    )
    return found
