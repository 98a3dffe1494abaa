"""The configuration of the app `memories`."""

from django.apps import AppConfig


class MemoriesConfig(AppConfig):
    """The app of memories."""

    name = "apps.memories"
    verbose_name = "Memories"
