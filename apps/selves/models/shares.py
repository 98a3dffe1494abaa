"""Constraints for numbers from 0 to 1."""

from __future__ import annotations

from django.db import models


def share(field: str) -> models.Q:
    """Return the constraint that a field is a number from 0 to 1."""
    return models.Q(**{f"{field}__gte": 0}) & models.Q(**{f"{field}__lte": 1})
