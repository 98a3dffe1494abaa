"""The web application, for gunicorn."""

import importlib
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# Becomes the application by which the console tells the fleet (`apps.queues`).
importlib.import_module("workers.app")
application = get_wsgi_application()
