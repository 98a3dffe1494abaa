"""The settings of the API's process: those of the platform, with other URLs and other middleware.

The console's middleware is for sessions and pages, and synchronous. The API's is asynchronous, so a stream occupies no thread.
"""

from __future__ import annotations

from config import settings as platform

globals().update({name: value for name, value in vars(platform).items() if name.isupper()})

# The largest limit of a body in memory: `config.asgi` applies the limit of each path before. Seeds are read as streams.
DATA_UPLOAD_MAX_MEMORY_SIZE = max(platform.ARBOR_API_BODY_BYTES, platform.ARBOR_DOCUMENT_MB * 2**20)
ROOT_URLCONF = "apps.api.urls"
MIDDLEWARE = ["apps.api.middleware.ApiMiddleware"]
