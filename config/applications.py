"""Django's applications, middleware, templates and content security policy, as constants of `config.settings`."""

from __future__ import annotations

from typing import Any

from django.utils.csp import CSP

APPLICATIONS = [
    # Before Unfold, because its templates override some of Unfold's.
    "apps.console.apps.ConsoleConfig",
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "apps.console.apps.ConsoleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "apps.tenants",
    "apps.audit",
    "apps.signals",
    "apps.agents",
    "apps.authority",
    "apps.access",
    "apps.tools",
    "apps.memories",
    "apps.goals",
    "apps.selves",
    "apps.workflows",
    "apps.knowledge",
    "apps.calls",
    "apps.heartbeats",
    "apps.contacts",
    "apps.fleet",
]
MIDDLEWARE = [
    "apps.console.probes.ProbeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "apps.tenants.sessions.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "apps.tenants.middleware.TenantMiddleware",
    "apps.console.rate_limits.RateLimitMiddleware",
]
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
#: Pages load what this server has, and run no inline script or style. Alpine compiles the expressions of attributes.
CONTENT_SECURITY_POLICY: dict[str, list[str]] = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF, CSP.UNSAFE_EVAL],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "font-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
}
