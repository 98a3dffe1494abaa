"""Applications, the console and the API."""

from __future__ import annotations

from datetime import timedelta

from apps.console.appearance import UNFOLD as CONSOLE_APPEARANCE
from arbor.errors import ConfigurationInvalid
from config import applications
from config.environment import env, whole_number

DEBUG = env.bool("DEBUG", default=False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

# --- Applications ---------------------------------------------------------------------------------------

INSTALLED_APPS = applications.APPLICATIONS
UNFOLD = CONSOLE_APPEARANCE
AUTH_USER_MODEL = "tenants.User"
MIDDLEWARE = applications.MIDDLEWARE
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = applications.TEMPLATES
AUTH_PASSWORD_VALIDATORS = applications.PASSWORD_VALIDATORS
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
FORMAT_MODULE_PATH = "apps.console.formats"
USE_TZ = True
STATIC_URL = "static/"
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

SESSION_ENGINE = "apps.tenants.sessions"
#: A session of the console ends after ARBOR_SESSION_IDLE without a request, and always after ARBOR_SESSION_AGE.
ARBOR_SESSION_IDLE = timedelta(seconds=env.float("ARBOR_SESSION_IDLE_S", default=12 * 3600))
ARBOR_SESSION_AGE = timedelta(seconds=env.float("ARBOR_SESSION_AGE_S", default=14 * 86_400))
if not timedelta(minutes=1) <= ARBOR_SESSION_IDLE <= ARBOR_SESSION_AGE <= timedelta(days=365):
    raise ConfigurationInvalid(
        "ARBOR_SESSION_IDLE_S must be 60 seconds or more, and at most ARBOR_SESSION_AGE_S, which is at most a year"
    )
#: The failed sign-ins to one account from one address after which more are refused, and the time for which a failure counts.
ARBOR_SIGN_IN_FAILURES = env.int("ARBOR_SIGN_IN_FAILURES", default=10)
ARBOR_SIGN_IN_WINDOW = timedelta(seconds=env.float("ARBOR_SIGN_IN_WINDOW_S", default=900))
if ARBOR_SIGN_IN_FAILURES < 1 or not timedelta(0) < ARBOR_SIGN_IN_WINDOW:
    raise ConfigurationInvalid(
        "ARBOR_SIGN_IN_FAILURES must be 1 or more, ARBOR_SIGN_IN_WINDOW_S above 0 seconds"
    )
#: The most pages, and acts (posted forms), of a person a minute in each web process; a tenant has five times as many. 0: no limit.
ARBOR_PAGES_PER_MINUTE = env.int("ARBOR_PAGES_PER_MINUTE", default=300)
ARBOR_ACTS_PER_MINUTE = env.int("ARBOR_ACTS_PER_MINUTE", default=60)
if ARBOR_PAGES_PER_MINUTE < 0 or ARBOR_ACTS_PER_MINUTE < 0:
    raise ConfigurationInvalid(
        "ARBOR_PAGES_PER_MINUTE and ARBOR_ACTS_PER_MINUTE must be 0 (no limit) or more"
    )
#: The number of reverse proxies before the console. Each adds an address to X-Forwarded-For, which anybody can write where there is none.
ARBOR_PROXIES = whole_number("ARBOR_PROXIES", default=0, least=0, most=100)
SESSION_COOKIE_AGE = int(ARBOR_SESSION_AGE.total_seconds())
SESSION_COOKIE_HTTPONLY = True
#: Whether people reach the console by https: TLS ends at a proxy. Cookies then go over https only, http is redirected,
#: and browsers use nothing but https for `ARBOR_HSTS_S`.
ARBOR_TLS = env.bool(
    "ARBOR_TLS", default=any(origin.startswith("https://") for origin in CSRF_TRUSTED_ORIGINS)
)
SESSION_COOKIE_SECURE = env.bool("ARBOR_SECURE_COOKIES", default=ARBOR_TLS)
CSRF_COOKIE_SECURE = SESSION_COOKIE_SECURE
SECURE_SSL_REDIRECT = ARBOR_TLS
#: Monitors ask from inside, past the proxy.
SECURE_REDIRECT_EXEMPT = [r"^metrics$"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if ARBOR_TLS else None
SECURE_HSTS_SECONDS = (
    whole_number("ARBOR_HSTS_S", default=31_536_000, least=0, most=10**9) if ARBOR_TLS else 0
)
SECURE_CSP = applications.CONTENT_SECURITY_POLICY
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
# An installation without a mail server is valid; its mails fail with an error that names the missing setting. HSTS has neither
# subdomains nor preloading, because other subdomains of the console's host may have no https.
SILENCED_SYSTEM_CHECKS = ["mail.W001", "security.W005", "security.W021"]

# --- API ------------------------------------------------------------------------------------------------

#: Threads of the API's process, each with at most one connection for each role. Streams need none while they wait.
ARBOR_API_THREADS = whole_number("ARBOR_API_THREADS", default=16, least=1, most=500)
#: The most requests of a token a minute in each process; 0: no limit.
ARBOR_API_PER_MINUTE = env.int("ARBOR_API_PER_MINUTE", default=600)
if ARBOR_API_PER_MINUTE < 0:
    raise ConfigurationInvalid(
        f"ARBOR_API_PER_MINUTE must be 0 (no limit) or more, got {ARBOR_API_PER_MINUTE}"
    )
#: The largest body of a request, in bytes.
ARBOR_API_BODY_BYTES = whole_number("ARBOR_API_BODY_BYTES", default=4 * 1024 * 1024, least=1024, most=1024**3)
#: The most bytes of a delivery at a hook, and the most deliveries of one hook a minute in one process; 0: no limit.
ARBOR_HOOK_BODY_BYTES = env.int("ARBOR_HOOK_BODY_BYTES", default=1024 * 1024)
ARBOR_HOOK_PER_MINUTE = env.int("ARBOR_HOOK_PER_MINUTE", default=120)
if ARBOR_HOOK_BODY_BYTES < 1024 or ARBOR_HOOK_PER_MINUTE < 0:
    raise ConfigurationInvalid(
        "ARBOR_HOOK_BODY_BYTES must be 1024 or more, and ARBOR_HOOK_PER_MINUTE 0 (no limit) or more"
    )
#: The most streams of signals that one token may keep open in one process.
ARBOR_API_STREAMS = whole_number("ARBOR_API_STREAMS", default=100, least=1, most=10_000)
