"""Tenants, the people who operate them, and the base of every row that belongs to a tenant."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models

from apps.tenants.keys import session_secrets
from apps.tenants.scope import OPS, current_scope, current_tenant
from arbor.ids import uuid7

#: The most characters of a tenant's slug, and of its name.
SLUG_LENGTH, NAME_LENGTH = 63, 200


class User(AbstractUser):
    """A person who signs in. The role of their membership in a tenant decides what they may do there."""

    #: Names only, for lists of members.
    app_privileges: ClassVar[str] = "SELECT (id, username)"
    ops_privileges: ClassVar[str] = "SELECT (id, username)"
    accounts_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE (last_login, password, is_active)"

    #: The new password from `set_password`, until the row is saved (an attribute of Django's).
    _password: str | None

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        # By the master keys as they are now: Django's own secrets are those of the start of the process.
        hashed: str = super()._get_session_auth_hash(secret=secret or session_secrets()[0])  # type: ignore[misc]
        return hashed

    def get_session_auth_fallback_hash(self) -> Iterator[str]:
        """Yield the hashes by the other secrets of sessions."""
        for secret in session_secrets()[1:]:
            yield self._get_session_auth_hash(secret=secret)

    def save(self, **kwargs: Any) -> None:
        """Write only the password of a row with a new one: forms save whole rows, which the role of accounts may not write."""
        if self._password is not None and not self._state.adding and not kwargs:
            kwargs["update_fields"] = ["password"]
        super().save(**kwargs)


class TenantStatus(models.TextChoices):
    """The status of a tenant."""

    #: The tenant's agents run.
    ACTIVE = "active"
    #: None of the tenant's agents run; the data stays.
    SUSPENDED = "suspended"


class Tenant(models.Model):
    """An isolated customer."""

    app_privileges: ClassVar[str] = "SELECT"
    ops_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE, DELETE"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.SlugField(unique=True, max_length=SLUG_LENGTH)
    name = models.CharField(max_length=NAME_LENGTH)
    status = models.CharField(max_length=16, choices=TenantStatus, default=TenantStatus.ACTIVE)
    #: Daily limits (UTC) for all its agents together; empty: no limit.
    daily_heartbeats = models.PositiveIntegerField(null=True, blank=True)
    daily_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    daily_usd = models.DecimalField(max_digits=12, decimal_places=4, null=True, blank=True)
    #: The energy policy of its agents (`arbor.agents.energy.EnergyPolicy` as JSON); empty: the defaults.
    energy = models.JSONField(default=dict, db_default={}, blank=True)
    #: The model of its agents without one of their own, `provider/model`; empty: the installation's.
    default_model = models.CharField(max_length=200, default="", db_default="", blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.name


class TenantManager[M: models.Model](models.Manager[M]):
    """Returns the rows of the current tenant, or of all tenants within `ops_scope`; raises TenantRequired outside both."""

    def get_queryset(self) -> models.QuerySet[M]:
        """Return the rows of the current scope."""
        queryset = super().get_queryset()
        scope = current_scope()
        if scope is not None and scope.across:
            return queryset.using(OPS)
        return queryset.filter(tenant_id=current_tenant())


class TenantModel(models.Model):
    """A row that belongs to exactly one tenant.

    `apps.tenants.protection` adds row-level security, a primary key that starts with the tenant, and the privileges below.
    """

    app_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE, DELETE"
    ops_privileges: ClassVar[str] = "SELECT"

    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, db_index=False, related_name="+", editable=False
    )

    objects = TenantManager()

    class Meta:
        abstract = True
        base_manager_name = "objects"


class TenantRow(TenantModel):
    """A row of a tenant with an id of its own, by which rows are in the order of their creation."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)

    class Meta(TenantModel.Meta):
        abstract = True


class Role(models.TextChoices):
    """The role of a member; each includes the rights of the one before."""

    #: Read.
    VIEWER = "viewer"
    #: Run agents: create, start and pause them, talk to them, change their goals and memories.
    OPERATOR = "operator"
    #: Everything, members and destruction included.
    OWNER = "owner"

    @property
    def rank(self) -> int:
        """Return the role's position in the order of rights, 0 for the viewer."""
        return list(Role).index(self)


class Membership(TenantRow):
    """A user's role in a tenant."""

    app_privileges: ClassVar[str] = "SELECT"
    ops_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE, DELETE"

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    role = models.CharField(max_length=16, choices=Role, default=Role.VIEWER)
    created_at = models.DateTimeField(auto_now_add=True)

    #: The memberships of one user in all tenants, read in `user_transaction`, where row-level security alone filters.
    own = models.Manager()

    class Meta(TenantModel.Meta):
        verbose_name = "member"
        default_manager_name = "objects"
        constraints = [models.UniqueConstraint(fields=["tenant", "user"], name="tenants_membership_once")]

    def __str__(self) -> str:
        return f"{self.user} as {self.role}"


class ConsoleSession(AbstractBaseSession):
    """A person's session in the console. Its key opens the console, so pages and commands name it by `public_id`."""

    app_privileges: ClassVar[str] = ""
    #: For the deletion of expired ones.
    ops_privileges: ClassVar[str] = "SELECT (public_id, expire_date), DELETE"
    accounts_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE, DELETE"

    public_id = models.UUIDField(unique=True, editable=False)
    #: Null until a person signs in.
    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+")
    signed_in_at = models.DateTimeField(null=True)
    #: The last request, to the minute. The idle time-out counts from it.
    seen_at = models.DateTimeField()
    #: The address that the person signed in from, and the User-Agent of their browser.
    address = models.CharField(max_length=64, blank=True)
    browser = models.CharField(max_length=200, blank=True)

    class Meta(AbstractBaseSession.Meta):
        abstract = False
        verbose_name = "session"
        verbose_name_plural = "sessions"
        indexes = [models.Index(fields=["user", "-seen_at"], name="tenants_session_by_user")]

    def __str__(self) -> str:
        return f"{self.user} from {self.address or 'nowhere known'}"

    @classmethod
    def get_session_store_class(cls) -> Any:
        """Return the store that Django reads and writes these rows with."""
        return import_module(settings.SESSION_ENGINE).SessionStore


class SignInFailure(models.Model):
    """A failed sign-in, counted for a while to slow guessing down. The audit log has its own record."""

    app_privileges: ClassVar[str] = ""
    ops_privileges: ClassVar[str] = ""
    accounts_privileges: ClassVar[str] = "SELECT, INSERT, DELETE"

    at = models.DateTimeField()
    #: Hashed: a person may have typed the password where the name belongs.
    name_hash = models.CharField(max_length=64)
    address = models.CharField(max_length=64)

    class Meta:
        indexes = [
            models.Index(fields=["at"], name="tenants_failure_by_time"),
            models.Index(fields=["name_hash", "at"], name="tenants_failure_by_name"),
            models.Index(fields=["address", "at"], name="tenants_failure_by_address"),
        ]

    def __str__(self) -> str:
        return f"from {self.address}"
