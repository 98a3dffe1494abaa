"""Settings of the whole platform, from the environment. `.env.example` names every one of them."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any

from apps.console.appearance import UNFOLD as CONSOLE_THEME
from arbor.agents.identity import derive_secret, parse_master_key
from arbor.contacts.chat import SIGNIFICANT
from arbor.contacts.cooldown import COOLDOWN, PUBLIC_PER_DAY, ContactLimits
from arbor.errors import ConfigurationInvalid
from arbor.heartbeat.tiers import parse_tier_models
from arbor.heartbeat.turns import MAX_TURNS
from arbor.memory.forgetting import ARCHIVE_BELOW, CLEANUP_BELOW, GRACE, QUOTA, Policy
from arbor.memory.health import parse_limits
from arbor.memory.weights import parse_weights
from config.environment import data_dir, env, secret, secret_folder, server_urls, with_user
from config.logs import logging_config
from config.mail import mailers
from config.secrets import SecretName

DATA_DIR = data_dir()
_SERVERS = server_urls(DATA_DIR)
#: Stands for the servers where `arbor up` does not run and none is named. Nobody listens there: at the ports that are
#: usual, somebody else's server may.
_NOWHERE = DATA_DIR / "run" / "not-running"

# --- Secrets: everything is derived from one master key ------------------------------------------------

_master_key_text = secret("ARBOR_MASTER_KEY") or secret_folder().read(SecretName.MASTER_KEY)
#: 32 bytes, or none before the first start; whatever needs it says how to make one.
ARBOR_MASTER_KEY: bytes | None = parse_master_key(_master_key_text) if _master_key_text else None


_EPHEMERAL_KEY = secrets.token_bytes(32)


def _derived(purpose: str) -> str:
    # Without a master key (static checks, `--help`) a random value keeps every process apart and fails closed.
    if ARBOR_MASTER_KEY is None:
        return derive_secret(_EPHEMERAL_KEY, purpose).hex()
    return derive_secret(ARBOR_MASTER_KEY, purpose).hex()


SECRET_KEY = secret("SECRET_KEY") or _derived("django-secret-key")
DEBUG = env.bool("DEBUG", default=False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

# --- Database: three roles, one database ---------------------------------------------------------------

#: Owner of the tables: used to migrate and to create the two roles below, never to serve.
DATABASE_URL = secret("DATABASE_URL") or _SERVERS.get(
    "database_url", f"postgres://arbor@{_NOWHERE.name}/arbor"
)
ARBOR_APP_ROLE = env.str("ARBOR_APP_ROLE", default="arbor_app")
ARBOR_OPS_ROLE = env.str("ARBOR_OPS_ROLE", default="arbor_ops")

_app_url = secret("ARBOR_APP_DATABASE_URL") or with_user(
    DATABASE_URL, ARBOR_APP_ROLE, _derived("postgres-role-app")
)
_ops_url = secret("ARBOR_OPS_DATABASE_URL") or with_user(
    DATABASE_URL, ARBOR_OPS_ROLE, _derived("postgres-role-ops")
)
#: Plan each statement once per connection. Workers switch it on: theirs are few and come again at each heartbeat.
#: PgBouncer in transaction mode needs `max_prepared_statements` for it, or this set to false.
ARBOR_PREPARED_STATEMENTS = env.bool("ARBOR_PREPARED_STATEMENTS", default=False)
#: Connections of the psycopg pool in a process of many threads; 0: one persistent connection per thread.
ARBOR_DB_POOL_SIZE = env.int("ARBOR_DB_POOL_SIZE", default=0)
#: Uses of a statement in one connection before it is prepared there: it is going to come again.
_PREPARED_AFTER = 3
#: Of those many threads few work for the whole installation at once; all of them come to it in time.
_OPS_POOL_SIZE = 2


def _database(url: str, *, pool_size: int = 0) -> dict[str, Any]:
    config: dict[str, Any] = env.db_url_config(url, engine="apps.tenants.postgresql")
    if config["HOST"] == _NOWHERE.name:
        config["HOST"] = str(_NOWHERE)
    config["CONN_MAX_AGE"] = 0 if pool_size else None
    # Before it is lent, or used for the next task: after a restart of the server every old connection is dead.
    config["CONN_HEALTH_CHECKS"] = True
    # Server-side cursors need a session; PgBouncer in transaction mode has none.
    config["DISABLE_SERVER_SIDE_CURSORS"] = True
    options = config.setdefault("OPTIONS", {})
    options.setdefault("connect_timeout", 5)
    if ARBOR_PREPARED_STATEMENTS:
        options |= {"server_side_binding": True, "prepare_threshold": _PREPARED_AFTER}
    options.setdefault("application_name", env.str("ARBOR_PROCESS_NAME", default="arbor"))
    if pool_size:
        options["pool"] = {"min_size": min(2, pool_size), "max_size": pool_size, "timeout": 15}
    return config


DATABASES = {
    "default": _database(_app_url, pool_size=ARBOR_DB_POOL_SIZE),
    "ops": _database(_ops_url, pool_size=min(ARBOR_DB_POOL_SIZE, _OPS_POOL_SIZE)),
    "owner": _database(DATABASE_URL),
}
#: Whether there is a database to ask: `arbor up` runs from this data folder, or a server is named.
ARBOR_HAS_DATABASE = DATABASES["default"]["HOST"] != str(_NOWHERE)
#: Whether `arbor up` runs from this data folder, be its database its own or one that was named to it.
ARBOR_RUNS_HERE = bool(_SERVERS)
DATABASE_ROUTERS: list[str] = []
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Applications --------------------------------------------------------------------------------------

INSTALLED_APPS = [
    # Before Unfold, because it has templates of its own in place of some of Unfold's.
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
    "apps.agents",
    "apps.memories",
    "apps.goals",
    "apps.selves",
    "apps.calls",
    "apps.heartbeats",
    "apps.contacts",
]
UNFOLD = CONSOLE_THEME
AUTH_USER_MODEL = "tenants.User"
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "apps.tenants.middleware.TenantMiddleware",
]
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [
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
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
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

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = env.bool("ARBOR_SECURE_COOKIES", default=False)
CSRF_COOKIE_SECURE = SESSION_COOKIE_SECURE
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
# An installation without a mail server is one; mails then fail, and say what is missing.
SILENCED_SYSTEM_CHECKS = ["mail.W001"]

# --- Broker --------------------------------------------------------------------------------------------

CELERY_BROKER_URL = (
    secret("CELERY_BROKER_URL")
    or secret("REDIS_URL")
    or _SERVERS.get("broker_url", f"redis+socket://{_NOWHERE}")
)

# --- Models --------------------------------------------------------------------------------------------

OPENAI_API_KEY = secret("OPENAI_API_KEY")
OPENAI_BASE_URL = env.str("OPENAI_BASE_URL", default="") or env.str("OPENAI_API_BASE", default="")
OPENROUTER_API_KEY = secret("OPENROUTER_API_KEY")
ANTHROPIC_API_KEY = secret("ANTHROPIC_API_KEY")
ANTHROPIC_BASE_URL = env.str("ANTHROPIC_BASE_URL", default="")
OLLAMA_HOST = env.str("OLLAMA_HOST", default="")
#: `provider/model`; empty: chosen from the keys that are set, else the reflex policy.
ARBOR_DEFAULT_MODEL = env.str("ARBOR_DEFAULT_MODEL", default="")
ARBOR_MODEL_DEADLINE_S = env.float("ARBOR_MODEL_DEADLINE_S", default=90.0)
ARBOR_MODEL_MAX_TOKENS = env.int("ARBOR_MODEL_MAX_TOKENS", default=4096)
#: Tokens that a model takes in all, prompt and reply, where it is not among the known ones (`arbor.models.windows`).
ARBOR_MODEL_CONTEXT = env.int("ARBOR_MODEL_CONTEXT", default=16_384)
if ARBOR_MODEL_CONTEXT < 2_048:
    raise ConfigurationInvalid(f"ARBOR_MODEL_CONTEXT must be at least 2048 tokens, got {ARBOR_MODEL_CONTEXT}")
#: Models by tier of thinking, for agents that have none of their own: `strategic=a/x|b/y,standard=…,reflex=…`. The first
#: that can be reached is asked; a tier that is not named asks ARBOR_DEFAULT_MODEL.
ARBOR_TIER_MODELS = parse_tier_models(env.str("ARBOR_TIER_MODELS", default=""))
#: Further turns of a heartbeat, to go on with what its actions brought: 0 to 9.
ARBOR_FOLLOW_UPS = env.int("ARBOR_FOLLOW_UPS", default=9)
if not 0 <= ARBOR_FOLLOW_UPS < MAX_TURNS:
    raise ConfigurationInvalid(f"ARBOR_FOLLOW_UPS must be 0 to {MAX_TURNS - 1}, got {ARBOR_FOLLOW_UPS}")
#: Domains that agents may read on the web, each with all below it, or `*`; empty: no web. And the server, compatible with
#: SearXNG, that searches it for them; empty: no inquiries.
ARBOR_WEB_ALLOW = env.list("ARBOR_WEB_ALLOW", default=[])
ARBOR_SEARCH_URL = env.str("ARBOR_SEARCH_URL", default="")
#: The largest page that is read, and the seconds for all searches and pages of an inquiry: at most a model's.
ARBOR_WEB_PAGE_BYTES = env.int("ARBOR_WEB_PAGE_BYTES", default=2_000_000)
ARBOR_WEB_DEADLINE_S = env.float("ARBOR_WEB_DEADLINE_S", default=45.0)
#: Of new minds: `wordllama`, `openai/<model>` or `tei/<model>`. `arbor memory reembed` moves those that have another.
ARBOR_EMBEDDING_MODEL = env.str("ARBOR_EMBEDDING_MODEL", default="wordllama")
ARBOR_EMBEDDING_DIMENSION = env.int("ARBOR_EMBEDDING_DIMENSION", default=256)
ARBOR_EMBEDDING_URL = env.str("ARBOR_EMBEDDING_URL", default="")
#: `model=address,…` of embedding models that agents still have, or are to be moved to.
ARBOR_EMBEDDING_URLS = env.dict("ARBOR_EMBEDDING_URLS", default={})
#: Whether a memory waits for its vector when it is stored: `always`, `never`, or `auto`: if it is made in this process.
ARBOR_EMBED_AT_STORAGE = env.str("ARBOR_EMBED_AT_STORAGE", default="auto")

# --- Maintenance of memories ---------------------------------------------------------------------------

#: The share of time that a round of maintenance works, above 0 and at most 1; in the rest it leaves the database alone.
ARBOR_MAINTENANCE_SHARE = env.float("ARBOR_MAINTENANCE_SHARE", default=0.7)
if not 0 < ARBOR_MAINTENANCE_SHARE <= 1:
    raise ConfigurationInvalid(
        f"ARBOR_MAINTENANCE_SHARE must be above 0 and at most 1, got {ARBOR_MAINTENANCE_SHARE:g}"
    )
#: `provider/model` that summarizes episodes, names concepts and weighs memories; empty: rules do, at no cost.
ARBOR_MAINTENANCE_MODEL = env.str("ARBOR_MAINTENANCE_MODEL", default="")
#: How near a memory must be to a theme to belong to it: deviations above the mean cosine of the agent's memories, 0.5 to 10.
#: Less makes wide themes, more narrow ones; how often an agent's themes are put in order, if something changed.
ARBOR_CLUSTER_DEVIATIONS = env.float("ARBOR_CLUSTER_DEVIATIONS", default=3.5)
ARBOR_CLUSTER_PERIOD = timedelta(seconds=env.int("ARBOR_CLUSTER_PERIOD_S", default=1800))
#: Whether that model is asked, too, how important each new memory is; the rule's view and its own are averaged.
ARBOR_WEIGH_MEMORIES = env.bool("ARBOR_WEIGH_MEMORIES", default=False)
#: Calls of maintenance under way or waiting in the whole installation; heartbeats' calls wait in the same queue.
ARBOR_MAX_MAINTENANCE_CALLS = env.int("ARBOR_MAX_MAINTENANCE_CALLS", default=200)
#: How long a completed errand's prompt is kept, for people to look at; then it is emptied.
ARBOR_MAINTENANCE_PROMPTS_KEPT = timedelta(days=env.float("ARBOR_MAINTENANCE_PROMPTS_DAYS", default=7.0))
if not timedelta(0) <= ARBOR_MAINTENANCE_PROMPTS_KEPT:
    raise ConfigurationInvalid("ARBOR_MAINTENANCE_PROMPTS_DAYS must be 0 or more")
#: Cosine above which two memories are neighbors: seed 004's. Embedders differ in how near they put what is alike.
ARBOR_NEIGHBOR_SIMILARITY = env.float("ARBOR_NEIGHBOR_SIMILARITY", default=0.75)
#: The time in which what has come to mind fades to half.
ARBOR_ACTIVATION_HALF_LIFE = timedelta(seconds=env.float("ARBOR_ACTIVATION_HALF_LIFE_S", default=3600))
if not timedelta(0) < ARBOR_ACTIVATION_HALF_LIFE:
    raise ConfigurationInvalid("ARBOR_ACTIVATION_HALF_LIFE_S must be above 0 seconds")
#: Episodic memories that one agent keeps in mind; above it the least important are archived.
ARBOR_MEMORY_QUOTA = env.int("ARBOR_MEMORY_QUOTA", default=QUOTA)
#: Memories whose importance has decayed below the first are archived; episodic ones that were never above the second,
#: once they have not been used for the grace.
ARBOR_ARCHIVE_BELOW = env.float("ARBOR_ARCHIVE_BELOW", default=ARCHIVE_BELOW)
ARBOR_CLEANUP_BELOW = env.float("ARBOR_CLEANUP_BELOW", default=CLEANUP_BELOW)
ARBOR_FORGETTING_GRACE = timedelta(
    hours=env.float("ARBOR_FORGETTING_GRACE_H", default=GRACE / timedelta(hours=1))
)
# Refused now, not in the middle of a job.
Policy(
    archive_below=ARBOR_ARCHIVE_BELOW,
    cleanup_below=ARBOR_CLEANUP_BELOW,
    grace=ARBOR_FORGETTING_GRACE,
    quota=ARBOR_MEMORY_QUOTA,
)
#: Where maintenance is behind: `NAME=WARN:CRITICAL`, by commas, instead of the limits of `arbor.memory.health`.
ARBOR_HEALTH_LIMITS = parse_limits(env.str("ARBOR_HEALTH_LIMITS", default=""))
#: Whoever scrapes `/metrics` shows it as a bearer token; empty: only operators of the installation see that page.
ARBOR_METRICS_TOKEN = secret("ARBOR_METRICS_TOKEN")

# --- Recalling memories --------------------------------------------------------------------------------

#: `NAME=WEIGHT`, by commas, instead of those of `arbor.memory.weights`; `python -m bench locomo --tune` shows what each does.
ARBOR_RECALL_WEIGHTS = parse_weights(env.str("ARBOR_RECALL_WEIGHTS", default=""))
#: What the minds that a process has at hand may take of its memory, in MiB; 0: every recall scans the database.
ARBOR_MIND_CACHE_MB = env.float("ARBOR_MIND_CACHE_MB", default=128)
if not ARBOR_MIND_CACHE_MB >= 0:
    raise ConfigurationInvalid("ARBOR_MIND_CACHE_MB must be 0 or more")

# --- Storing memories ----------------------------------------------------------------------------------

#: A YAML or JSON file of words that weigh a memory, beside those of `arbor/memory/importance_words.yaml`.
ARBOR_IMPORTANCE_WORDS = env.str("ARBOR_IMPORTANCE_WORDS", default="")
#: Days until a memory of each kind is archived, counted from storage; 0: never.
ARBOR_TTL_DAYS = {
    "routine": env.float("ARBOR_TTL_ROUTINE_DAYS", default=7.0),
    "task": env.float("ARBOR_TTL_TASK_DAYS", default=30.0),
    "decision": env.float("ARBOR_TTL_DECISION_DAYS", default=90.0),
    "error": env.float("ARBOR_TTL_ERROR_DAYS", default=14.0),
}
#: Cosine from which a memory that stands alone is the same as one the agent has; above 1: only the same text is.
ARBOR_DUPLICATE_SIMILARITY = env.float("ARBOR_DUPLICATE_SIMILARITY", default=0.95)
#: The longest silence within an episode.
ARBOR_EPISODE_GAP = timedelta(minutes=env.float("ARBOR_EPISODE_GAP_MINUTES", default=30.0))

# --- Heartbeats ----------------------------------------------------------------------------------------

#: How often a new agent beats unless it or its template says otherwise.
ARBOR_HEARTBEAT_INTERVAL = timedelta(seconds=env.int("ARBOR_HEARTBEAT_INTERVAL_S", default=3600))
#: A claimed heartbeat must start within this time, and a started one must reach its next step within the other.
ARBOR_QUEUE_LEASE = timedelta(seconds=env.float("ARBOR_QUEUE_LEASE_S", default=60))
ARBOR_RUN_LEASE = timedelta(seconds=env.float("ARBOR_RUN_LEASE_S", default=30))
#: After so many lost leases in a row an agent's heartbeat is given up as failed.
ARBOR_MAX_ATTEMPTS = env.int("ARBOR_MAX_ATTEMPTS", default=5)
#: Heartbeats claimed per statement, and those under way in the whole installation.
ARBOR_CLAIM_BATCH = env.int("ARBOR_CLAIM_BATCH", default=500)
ARBOR_MAX_IN_FLIGHT = env.int("ARBOR_MAX_IN_FLIGHT", default=5000)
#: Of one claim, one tenant gets at most so many while others wait.
ARBOR_TENANT_CLAIM_LIMIT = env.int("ARBOR_TENANT_CLAIM_LIMIT", default=100)
#: An agent with nothing to do still reflects once in so many beats; at the others it asks no model.
ARBOR_REFLECT_EVERY = env.int("ARBOR_REFLECT_EVERY", default=4)
#: ... and no earlier than this after its last thought: beats that follow each other by seconds bring nothing new.
ARBOR_REFLECT_PAUSE = timedelta(seconds=env.float("ARBOR_REFLECT_PAUSE_S", default=3600))
ARBOR_DISPATCH_PERIOD = timedelta(seconds=env.float("ARBOR_DISPATCH_PERIOD_S", default=1.0))

# --- Reaching out --------------------------------------------------------------------------------------

#: How often an agent may write to its users, and in public in any 24 hours.
ARBOR_CONTACT_LIMITS = ContactLimits(
    cooldown=timedelta(hours=env.float("ARBOR_REACH_OUT_COOLDOWN_H", default=COOLDOWN / timedelta(hours=1))),
    public_per_day=env.int("ARBOR_REACH_OUT_PUBLIC_PER_DAY", default=PUBLIC_PER_DAY),
)
#: The mail server; empty: mails fail, and say so. `ARBOR_EMAIL_SECURITY` is starttls, tls or none.
ARBOR_EMAIL_HOST = env.str("ARBOR_EMAIL_HOST", default="")
ARBOR_EMAIL_FROM = env.str("ARBOR_EMAIL_FROM", default="")
MAILERS = mailers(
    host=ARBOR_EMAIL_HOST,
    port=env.int("ARBOR_EMAIL_PORT", default=0),
    user=env.str("ARBOR_EMAIL_USER", default=""),
    password=secret("ARBOR_EMAIL_PASSWORD"),
    security=env.str("ARBOR_EMAIL_SECURITY", default="starttls"),
    timeout_s=env.float("ARBOR_EMAIL_TIMEOUT_S", default=15.0),
    sender=ARBOR_EMAIL_FROM,
)
#: Webhooks go to https and to public addresses unless these say otherwise, such as for a receiver on this machine.
ARBOR_WEBHOOK_ALLOW_HTTP = env.bool("ARBOR_WEBHOOK_ALLOW_HTTP", default=False)
ARBOR_WEBHOOK_ALLOW_PRIVATE = env.bool("ARBOR_WEBHOOK_ALLOW_PRIVATE", default=False)
#: How often what waits to be delivered, and what lost its worker, is looked for.
ARBOR_OUTBOX_PERIOD = timedelta(seconds=env.float("ARBOR_OUTBOX_PERIOD_S", default=5.0))

# --- Conversations -------------------------------------------------------------------------------------

#: How long after the last turn a conversation is over; so long the agent's timer rests.
ARBOR_CHAT_IDLE = timedelta(seconds=env.float("ARBOR_CHAT_IDLE_S", default=300))
if not timedelta(0) < ARBOR_CHAT_IDLE:
    raise ConfigurationInvalid("ARBOR_CHAT_IDLE_S must be above 0 seconds")
#: From this significance on, 0 to 1, a conversation brings a heartbeat about as soon as it ends; above 1: none does.
ARBOR_CHAT_SIGNIFICANT = env.float("ARBOR_CHAT_SIGNIFICANT", default=SIGNIFICANT)

# --- Logging -------------------------------------------------------------------------------------------

ARBOR_LOG_LEVEL = env.str("ARBOR_LOG_LEVEL", default="INFO")
#: `console` (coloured, for people) or `json` (one object per line, for machines).
ARBOR_LOG_FORMAT = env.str("ARBOR_LOG_FORMAT", default="console")
LOGGING = logging_config(level=ARBOR_LOG_LEVEL, form=ARBOR_LOG_FORMAT)
