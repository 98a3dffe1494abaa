"""The WSGI application for gunicorn."""

import importlib
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# Creates the Celery application by which the console enqueues tasks (`apps.queues`).
importlib.import_module("workers.app")
application = get_wsgi_application()
