"""Can agents inquire on the web?"""

from __future__ import annotations

import httpx
from django.conf import settings

from apps import web
from apps.web import web_missing
from arbor.errors import ConfigurationInvalid
from config.cli.checks.finding import Finding, fail, ok


def check_web() -> Finding:
    """See whether agents can inquire on the web; that they cannot is no fault."""
    if missing := web_missing():
        return ok("web", f"closed: {missing}; no agent inquires")
    try:
        web.search()
        web.fetch()
    except ConfigurationInvalid as error:
        return fail("web", str(error), "correct ARBOR_SEARCH_URL and ARBOR_WEB_ALLOW")
    allowed = ", ".join(sorted(settings.ARBOR_WEB_ALLOW)[:5])
    if "*" in settings.ARBOR_WEB_ALLOW:
        allowed = "every public address"
    return ok("web", f"searched by {httpx.URL(settings.ARBOR_SEARCH_URL).host}; agents may read {allowed}")
