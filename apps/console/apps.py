"""The configurations of the app `console` and of its admin site."""

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig


class ConsoleConfig(AppConfig):
    """The app of the operator's console."""

    name = "apps.console"
    verbose_name = "Console"


class ConsoleAdminConfig(SimpleAdminConfig):
    """Makes `ConsoleSite` the default admin site. Its pages are imported with the URLs, so workers do not load them."""

    default = False
    default_site = "apps.console.site.ConsoleSite"
