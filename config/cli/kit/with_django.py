"""Set Django up; imported before a command that uses its models."""

import gc
import importlib
import os

from config.environment import env

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# A command prints its own result, so it logs only warnings by default. (`.env` is read at this point.)
if not env.str("ARBOR_LOG_LEVEL", default=""):
    os.environ["ARBOR_LOG_LEVEL"] = "WARNING"
# Sets Django up, and creates the Celery application by which this process enqueues tasks (`apps.queues`).
# Its modules stay until the process ends, so no garbage collection examines them.
gc.disable()
importlib.import_module("workers.app")
gc.freeze()
gc.enable()
