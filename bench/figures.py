"""Figures from samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def quantile(samples: Sequence[float], share: float) -> float:
    """Return the sample below which that share of them lies, 0 to 1; 0 without samples."""
    return round(float(np.quantile(np.asarray(samples), share)), 3) if len(samples) else 0.0
