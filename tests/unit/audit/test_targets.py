"""Checks of the file and the address that heads of the audit log are exported to, when the settings load."""

from __future__ import annotations

import pytest

from arbor.audit.targets import check_heads_targets
from arbor.errors import ConfigurationInvalid
from tests.support.settings import read_settings


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("ARBOR_AUDIT_HEADS_FILE", "heads.jsonl", "an absolute path"),
        ("ARBOR_AUDIT_HEADS_URL", "ftp://example.org/heads", "begin with https://"),
        ("ARBOR_AUDIT_HEADS_URL", "http://example.org/heads", "ARBOR_WEBHOOK_ALLOW_HTTP"),
        ("ARBOR_AUDIT_HEADS_URL", "https://ada:secret@example.org/", "without a user"),
        ("ARBOR_AUDIT_HEADS_URL", "https://:secret@example.org/", "without a user"),
        ("ARBOR_AUDIT_HEADS_URL", "https://[::1/secret", "begin with https://"),
        ("ARBOR_AUDIT_HEADS_URL", "https://example.org:port/secret", "begin with https://"),
        ("ARBOR_AUDIT_SEAL_PERIOD_S", "0.1", "1 to 86400, got 0.1"),
    ],
)
def test_a_target_that_cannot_work_is_refused(
    name: str, value: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationInvalid, match=fault) as caught:
        read_settings()
    assert "secret" not in str(caught.value)


def test_usable_targets_are_accepted() -> None:
    check_heads_targets(file="", url="", allow_http=False)
    check_heads_targets(
        file="/mnt/worm/heads.jsonl", url="https://example.org/heads?key=secret", allow_http=False
    )
    check_heads_targets(file="", url="http://localhost:9000/", allow_http=True)
