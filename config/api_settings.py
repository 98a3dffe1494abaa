"""The settings of the API's process: the platform's, with addresses and middleware of its own.

The console's middleware is about sessions and pages, and runs in one thread; the API's lets streams hold none.
"""

from __future__ import annotations

from config import settings as platform

globals().update({name: value for name, value in vars(platform).items() if name.isupper()})

# The limits of single addresses are those of `config.asgi`, before Django reads anything.
DATA_UPLOAD_MAX_MEMORY_SIZE = max(platform.ARBOR_API_BODY_BYTES, platform.ARBOR_DOCUMENT_MB * 2**20)
ROOT_URLCONF = "apps.api.urls"
MIDDLEWARE = ["apps.api.middleware.ApiMiddleware"]
