"""The configuration of the app `tools`."""

from django.apps import AppConfig


class ToolsConfig(AppConfig):
    """The app of tool servers."""

    name = "apps.tools"
    verbose_name = "Tools"
