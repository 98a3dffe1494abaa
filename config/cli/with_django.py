"""Set Django up; imported before a command that uses its models."""

import importlib
import os

from config.environment import env

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# A command says what it did itself; what it logs on the way is for those who ask (`.env` is read by now).
if not env.str("ARBOR_LOG_LEVEL", default=""):
    os.environ["ARBOR_LOG_LEVEL"] = "WARNING"
# Sets Django up, and becomes the application by which this process tells the fleet (`apps.queues`).
importlib.import_module("workers.app")
