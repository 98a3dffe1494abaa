"""The page of the API's operations: Swagger UI as django-ninja bundles it, without links to other servers."""

from __future__ import annotations

from importlib.resources import files

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.csp import CSP, build_policy
from django.utils.html import format_html
from django.views.decorators.http import require_safe

from apps.api.api import api

_STATIC = files("ninja").joinpath("static", "ninja")
#: The bundled files that the page loads, with their types.
FILES = {
    "swagger-ui.css": "text/css; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui-init.js": "text/javascript; charset=utf-8",
    "favicon.svg": "image/svg+xml",
}
_POLICY: dict[str, list[str]] = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    # The style sheet of Swagger embeds its icons.
    "img-src": [CSP.SELF, "data:"],
    "connect-src": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "form-action": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
}
# The validator would send the document's address to a server of Swagger's makers.
_SETTINGS = '{{"layout": "BaseLayout", "deepLinking": true, "validatorUrl": null, "url": "{}"}}'
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} API</title>
<link rel="stylesheet" href="{css}">
<link rel="icon" href="{icon}" type="image/svg+xml">
</head>
<body>
<script type="application/json" id="swagger-settings">{settings}</script>
<noscript>This page needs scripts. The operations are also in <a href="{document}">the OpenAPI document</a>.</noscript>
<div id="swagger-ui"></div>
<script src="{bundle}"></script>
<script src="{init}"></script>
</body>
</html>
"""


@require_safe
def docs_page(_request: HttpRequest) -> HttpResponse:
    """Show the API's operations."""
    document = reverse(f"{api.urls_namespace}:openapi-json")
    page = format_html(
        _PAGE,
        title=api.title,
        css=_address("swagger-ui.css"),
        icon=_address("favicon.svg"),
        bundle=_address("swagger-ui-bundle.js"),
        init=_address("swagger-ui-init.js"),
        document=document,
        settings=format_html(_SETTINGS, document),
    )
    return HttpResponse(
        page,
        headers={
            str(CSP.HEADER_ENFORCE): build_policy(_POLICY),
            "Referrer-Policy": "no-referrer",
        },
    )


@require_safe
def docs_file(_request: HttpRequest, name: str) -> HttpResponse:
    """Send a file of the page. Raises Http404 for any other name."""
    if name not in FILES:
        raise Http404
    return HttpResponse(_STATIC.joinpath(name).read_bytes(), content_type=FILES[name])


def _address(name: str) -> str:
    return reverse("docs-file", args=[name])
