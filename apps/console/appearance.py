"""The appearance of Unfold: the setting `UNFOLD` of `config.settings`."""

from __future__ import annotations

from typing import Any

from django.templatetags.static import static

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Arbor",
    "SITE_HEADER": "Arbor",
    "SITE_URL": None,
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda _request: static("console/arbor.svg"),
        }
    ],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    # Unfold would write colors into an inline style, which the policy forbids (`ConsoleSite.each_context`).
    "STYLES": [
        lambda _request: static("console/colors.css"),
        lambda _request: static("console/console.css"),
    ],
    "SCRIPTS": [
        lambda _request: static("console/console.js"),
        lambda _request: static("console/live.js"),
        lambda _request: static("console/uploads.js"),
    ],
    # By name, because the module imports models, which need the settings.
    "SIDEBAR": {"navigation": "apps.console.navigation.sidebar"},
}
