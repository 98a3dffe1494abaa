"""Imported by the command line before a command that uses Django's models: sets Django up."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("ARBOR_LOG_LEVEL", "WARNING")
django.setup()
