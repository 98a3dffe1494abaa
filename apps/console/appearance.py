"""The appearance of Unfold: the setting `UNFOLD` of `config.settings`."""

from __future__ import annotations

from typing import Any

from django.templatetags.static import static

#: Unfold's primary color scale, in green.
_PRIMARY = {
    "50": "oklch(97.9% .021 166.113)",
    "100": "oklch(95% .052 163.051)",
    "200": "oklch(90.5% .093 164.15)",
    "300": "oklch(84.5% .143 164.978)",
    "400": "oklch(76.5% .177 163.223)",
    "500": "oklch(65.6% .15 162.48)",
    "600": "oklch(54.6% .128 163.225)",
    "700": "oklch(47.8% .105 165.612)",
    "800": "oklch(42.2% .085 166.913)",
    "900": "oklch(36.8% .07 168.94)",
    "950": "oklch(25.2% .047 172.552)",
}

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
    "COLORS": {"primary": _PRIMARY},
    "STYLES": [lambda _request: static("console/console.css")],
    # By name, because the module imports models, which need the settings.
    "SIDEBAR": {"navigation": "apps.console.navigation.sidebar"},
}
