"""Register the app with Django."""

from django.apps import AppConfig


class MemoriesConfig(AppConfig):
    """The app of memories."""

    name = "apps.memories"
    verbose_name = "Memories"
