"""Django's names for this app and for the admin that it shapes."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class ConsoleConfig(AppConfig):
    """Holds the operator's pages."""

    name = "apps.console"
    verbose_name = "Console"


class ConsoleAdminConfig(AdminConfig):
    """Makes `ConsoleSite` the default admin."""

    default = False
    default_site = "apps.console.site.ConsoleSite"
