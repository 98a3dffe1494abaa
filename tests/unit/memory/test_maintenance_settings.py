"""Invalid settings of maintenance are refused at the start, with the valid range."""

from __future__ import annotations

import re

import pytest

from arbor.errors import ConfigurationInvalid
from tests.support.settings import read_settings


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        ("ARBOR_MAINTENANCE_SHARE", "0", "above 0 and at most 1, got 0"),
        ("ARBOR_MAINTENANCE_SHARE", "1.5", "above 0 and at most 1, got 1.5"),
        ("ARBOR_MEMORY_QUOTA", "0", "must be at least 1, got 0"),
        ("ARBOR_ARCHIVE_BELOW", "2", "must be 0 to 1, got 2"),
        ("ARBOR_HEALTH_LIMITS", "expired=soon", "NAME=WARN:CRITICAL"),
    ],
)
def test_the_settings_say_what_would_be_right(name: str, value: str, right: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=re.escape(right)):
        read_settings(**{name: value})
