"""The operator's console: Django's admin, with Unfold's looks."""

from __future__ import annotations

from unfold.sites import UnfoldAdminSite


class ConsoleSite(UnfoldAdminSite):  # type: ignore[misc]
    """The admin of an installation."""

    site_title = "Arbor"
    site_header = "Arbor"
    index_title = "Fleet"
