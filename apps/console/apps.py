"""The configurations of the app `console` and of its admin site."""

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig


class ConsoleConfig(AppConfig):
    """Holds the operator's pages."""

    name = "apps.console"
    verbose_name = "Console"


class ConsoleAdminConfig(SimpleAdminConfig):
    """Makes `ConsoleSite` the default admin. Its pages are loaded with the addresses, so workers never load them."""

    default = False
    default_site = "apps.console.site.ConsoleSite"
