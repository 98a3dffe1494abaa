"""URLs of webhooks: checks, and the part that may be shown."""

from __future__ import annotations

import pytest

from arbor.adapters.webhook import check_url, redact_url
from arbor.errors import Invalid


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://example.org", "https://example.org"),
        ("https://example.org/", "https://example.org"),
        ("https://example.org:8443/s3cret", "https://example.org:8443/…"),
        ("https://example.org?token=s3cret", "https://example.org/…"),
        ("https://example.org#s3cret", "https://example.org/…"),
        ("https://ann:s3cret@example.org/hook", "https://example.org/…"),
        ("https://[2606:4700::1]:8443/s3cret", "https://[2606:4700::1]:8443/…"),
        ("https://example.org:s3cret/", "…"),
        # No name that a browser would show is written so.
        ("https://xn--a/s3cret", "…"),
        ("s3cret", "…"),
        ("mailto:s3cret@example.org", "…"),
        ("", "…"),
    ],
)
def test_only_scheme_host_and_port_are_shown(url: str, shown: str) -> None:
    assert redact_url(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/s3cret",
        "ftp://example.org/s3cret",
        "https:///s3cret",
        "s3cret",
        "https://example.org:s3cret/",
        "https://xn--a/s3cret",
        "https://example.org/s3cret\n",
        "https://ann:s3cret@example.org/s3cret",
    ],
)
def test_an_error_about_a_url_does_not_quote_its_secrets(url: str) -> None:
    with pytest.raises(Invalid) as error:
        check_url(url, allow_http=False)
    assert "s3cret" not in str(error.value)
