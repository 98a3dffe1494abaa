"""The settings of the platform, from the environment. `.env.example` lists all of them."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path

from apps.console.appearance import UNFOLD as CONSOLE_THEME
from arbor.adapters.credentials import call_deadline_s
from arbor.audit.targets import check_heads_targets
from arbor.authority.modes import parse_model_limits
from arbor.contacts.chat import SIGNIFICANT
from arbor.contacts.cooldown import COOLDOWN, PUBLIC_PER_DAY, ContactLimits
from arbor.errors import ConfigurationInvalid
from arbor.heartbeat.replies.turns import MAX_TURNS
from arbor.heartbeat.tiers import parse_tier_models
from arbor.history import Record, parse_ages
from arbor.knowledge.chunking import PassageSize
from arbor.knowledge.merging import RECENCY_HALF_LIFE, parse_merge_weights, parse_min_similarity
from arbor.memory.forgetting import ARCHIVE_BELOW, CLEANUP_BELOW, GRACE, QUOTA, Policy, parse_quotas
from arbor.memory.maintenance.health import parse_limits
from arbor.memory.recall.weights import parse_weights
from arbor.models.slots import parse_provider_calls
from arbor.models.token_counts import parse_tokenizers
from arbor.sealing import SESSION_PURPOSE
from config import applications, credentials
from config.databases import database, is_nowhere
from config.environment import data_dir, env, secret, server_urls, whole_number
from config.keys import KeySource
from config.logs import logging_config
from config.mail import mailers

DATA_DIR = data_dir()
_SERVERS = server_urls(DATA_DIR)

# --- Secrets: everything is derived from one master key ------------------------------------------------

#: Where the master keys are; a rotation changes them while this process runs (`apps.tenants.keys`).
ARBOR_MASTER_KEYS = KeySource.of_environment()
#: Names of secrets that the installation has and this process does not (`config.process_secrets`).
ARBOR_WITHHELD = credentials.withheld()
_own_secret_key = secret("SECRET_KEY")
SECRET_KEY, *_earlier_keys = (
    [_own_secret_key] if _own_secret_key else credentials.derived_by_keys(SESSION_PURPOSE)
)
SECRET_KEY_FALLBACKS = _earlier_keys
#: Whether sessions are signed with a secret derived from the master key.
ARBOR_SESSIONS_DERIVED = not _own_secret_key
DEBUG = env.bool("DEBUG", default=False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

# --- Database: four roles, one database ----------------------------------------------------------------

#: The owner of the tables, for migrations and the creation of the roles below, never to serve.
DATABASE_URL = credentials.owner_url(_SERVERS)
_ROLE_URLS = credentials.role_urls(DATABASE_URL)
#: The roles whose passwords are derived from the master key, with the purposes of the derivations.
ARBOR_DERIVED_ROLES = credentials.derived_roles()
#: A folder with the passwords that a rotation of the master key gave to roles, a file each, for processes without the key.
ARBOR_ROTATED_PASSWORDS = credentials.rotated_passwords()
#: Whether each statement is planned once per connection. Workers enable it, because they repeat few statements at each
#: heartbeat. PgBouncer in transaction mode needs `max_prepared_statements`, or false here.
ARBOR_PREPARED_STATEMENTS = env.bool("ARBOR_PREPARED_STATEMENTS", default=False)
#: Connections of the psycopg pool in a process of many threads; 0: one persistent connection per thread.
ARBOR_DB_POOL_SIZE = env.int("ARBOR_DB_POOL_SIZE", default=0)
#: The connections of the operations role in such a process, because few threads at once work across tenants.
_OPS_POOL_SIZE = 2
_database = partial(database, prepared=ARBOR_PREPARED_STATEMENTS)
DATABASES = {
    "default": _database(_ROLE_URLS["default"], pool_size=ARBOR_DB_POOL_SIZE),
    "ops": _database(_ROLE_URLS["ops"], pool_size=min(ARBOR_DB_POOL_SIZE, _OPS_POOL_SIZE)),
    "accounts": _database(_ROLE_URLS["accounts"], pool_size=min(ARBOR_DB_POOL_SIZE, _OPS_POOL_SIZE)),
    "owner": _database(DATABASE_URL),
}
#: Limits of a statement and of an idle transaction of the serving roles, set by `arbor prepare`; and of a statement of a page.
ARBOR_STATEMENT_TIMEOUT = timedelta(seconds=env.float("ARBOR_STATEMENT_TIMEOUT_S", default=300.0))
ARBOR_PAGE_TIMEOUT = timedelta(seconds=env.float("ARBOR_PAGE_TIMEOUT_S", default=15.0))
for _name, _limit in (
    ("ARBOR_STATEMENT_TIMEOUT_S", ARBOR_STATEMENT_TIMEOUT),
    ("ARBOR_PAGE_TIMEOUT_S", ARBOR_PAGE_TIMEOUT),
):
    if not timedelta(0) < _limit <= timedelta(days=1):
        raise ConfigurationInvalid(
            f"{_name} must be above 0 and at most 86400 seconds, got {_limit.total_seconds():g}"
        )
#: Whether a database is configured: `arbor up` runs from this data folder, or DATABASE_URL is set.
ARBOR_HAS_DATABASE = not is_nowhere(DATABASES["default"])
#: Whether `arbor up` runs from this data folder, with an embedded or an external database.
ARBOR_RUNS_HERE = bool(_SERVERS)
DATABASE_ROUTERS = ["apps.tenants.routing.AccountsRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Applications --------------------------------------------------------------------------------------

INSTALLED_APPS = applications.APPLICATIONS
UNFOLD = CONSOLE_THEME
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
#: A session of the console ends after this time without a request, and in any case after the other.
ARBOR_SESSION_IDLE = timedelta(seconds=env.float("ARBOR_SESSION_IDLE_S", default=12 * 3600))
ARBOR_SESSION_AGE = timedelta(seconds=env.float("ARBOR_SESSION_AGE_S", default=14 * 86_400))
if not timedelta(minutes=1) <= ARBOR_SESSION_IDLE <= ARBOR_SESSION_AGE <= timedelta(days=365):
    raise ConfigurationInvalid(
        "ARBOR_SESSION_IDLE_S must be 60 seconds or more, and at most ARBOR_SESSION_AGE_S, which is at most a year"
    )
#: Failed sign-ins to one account from one address, after which more are refused; and how long a failure counts.
ARBOR_SIGN_IN_FAILURES = env.int("ARBOR_SIGN_IN_FAILURES", default=10)
ARBOR_SIGN_IN_WINDOW = timedelta(seconds=env.float("ARBOR_SIGN_IN_WINDOW_S", default=900))
if ARBOR_SIGN_IN_FAILURES < 1 or not timedelta(0) < ARBOR_SIGN_IN_WINDOW:
    raise ConfigurationInvalid(
        "ARBOR_SIGN_IN_FAILURES must be 1 or more, ARBOR_SIGN_IN_WINDOW_S above 0 seconds"
    )
#: Pages that a person may open, and acts (posted forms) a minute in each web process; a tenant five times as many. 0: no limit.
ARBOR_PAGES_PER_MINUTE = env.int("ARBOR_PAGES_PER_MINUTE", default=300)
ARBOR_ACTS_PER_MINUTE = env.int("ARBOR_ACTS_PER_MINUTE", default=60)
if ARBOR_PAGES_PER_MINUTE < 0 or ARBOR_ACTS_PER_MINUTE < 0:
    raise ConfigurationInvalid(
        "ARBOR_PAGES_PER_MINUTE and ARBOR_ACTS_PER_MINUTE must be 0 (no limit) or more"
    )
#: Reverse proxies before the console. Each adds one to X-Forwarded-For; with none, that header is what anybody wrote.
ARBOR_PROXIES = env.int("ARBOR_PROXIES", default=0)
SESSION_COOKIE_AGE = int(ARBOR_SESSION_AGE.total_seconds())
SESSION_COOKIE_HTTPONLY = True
#: Whether people reach the console by https: TLS ends at a proxy. Cookies then go over https only, http is redirected,
#: and browsers remember for `ARBOR_HSTS_S` that there is nothing else.
ARBOR_TLS = env.bool(
    "ARBOR_TLS", default=any(origin.startswith("https://") for origin in CSRF_TRUSTED_ORIGINS)
)
SESSION_COOKIE_SECURE = env.bool("ARBOR_SECURE_COOKIES", default=ARBOR_TLS)
CSRF_COOKIE_SECURE = SESSION_COOKIE_SECURE
SECURE_SSL_REDIRECT = ARBOR_TLS
#: Probes and monitors ask from inside, past the proxy.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if ARBOR_TLS else None
SECURE_HSTS_SECONDS = env.int("ARBOR_HSTS_S", default=31_536_000) if ARBOR_TLS else 0
SECURE_CSP = applications.CONTENT_SECURITY_POLICY
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
# An installation without a mail server is valid; its mails fail with an error that names the missing setting. HSTS for subdomains
# and preloading are left out, because it is not known whether all subdomains of the console's host have https.
SILENCED_SYSTEM_CHECKS = ["mail.W001", "security.W005", "security.W021"]

# --- API -----------------------------------------------------------------------------------------------

#: Threads of the API's process, each with at most one connection for each role. Streams need none while they wait.
ARBOR_API_THREADS = whole_number("ARBOR_API_THREADS", default=16, least=1, most=500)
#: Requests that a token may make a minute in each process; 0: no limit.
ARBOR_API_PER_MINUTE = env.int("ARBOR_API_PER_MINUTE", default=600)
if ARBOR_API_PER_MINUTE < 0:
    raise ConfigurationInvalid("ARBOR_API_PER_MINUTE must be 0 (no limit) or more")
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

# --- Broker --------------------------------------------------------------------------------------------

CELERY_BROKER_URL = credentials.broker_url(_SERVERS)

# --- Models --------------------------------------------------------------------------------------------

OPENAI_API_KEY = secret("OPENAI_API_KEY")
OPENAI_BASE_URL = env.str("OPENAI_BASE_URL", default="") or env.str("OPENAI_API_BASE", default="")
OPENROUTER_API_KEY = secret("OPENROUTER_API_KEY")
ANTHROPIC_API_KEY = secret("ANTHROPIC_API_KEY")
ANTHROPIC_BASE_URL = env.str("ANTHROPIC_BASE_URL", default="")
GEMINI_API_KEY = secret("GEMINI_API_KEY")
OLLAMA_HOST = env.str("OLLAMA_HOST", default="")
#: Whether tenants may enter addresses of one's own network, and plain http, for their providers of models.
ARBOR_MODEL_ALLOW_PRIVATE = env.bool("ARBOR_MODEL_ALLOW_PRIVATE", default=False)
#: `provider/model`; empty: chosen from the keys that are set, else the reflex policy.
ARBOR_DEFAULT_MODEL = env.str("ARBOR_DEFAULT_MODEL", default="")
#: Calls that a process sends to a provider at once, `ollama=2,openai=64`; further ones wait. The deadline runs from sending.
ARBOR_PROVIDER_CALLS = parse_provider_calls(env.str("ARBOR_PROVIDER_CALLS", default=""))
ARBOR_MODEL_MAX_TOKENS = env.int("ARBOR_MODEL_MAX_TOKENS", default=4096)
#: The context of an unknown model in tokens, prompt and reply together (`arbor.models.windows` has the known ones).
ARBOR_MODEL_CONTEXT = env.int("ARBOR_MODEL_CONTEXT", default=16_384)
if ARBOR_MODEL_CONTEXT < 2_048:
    raise ConfigurationInvalid(f"ARBOR_MODEL_CONTEXT must be at least 2048 tokens, got {ARBOR_MODEL_CONTEXT}")
#: Files `tokenizer.json` by provider or `provider/model`, `ollama=/models/llama3.json`: their models' tokens are counted, not estimated.
ARBOR_TOKENIZERS = parse_tokenizers(env.str("ARBOR_TOKENIZERS", default=""))
#: Models by tier, for agents without models of their own: `strategic=a/x|b/y,standard=…,reflex=…`. The first available model
#: is asked; a tier that is not named uses ARBOR_DEFAULT_MODEL.
ARBOR_TIER_MODELS = parse_tier_models(env.str("ARBOR_TIER_MODELS", default=""))
#: Trust presets that no agent exceeds with a model, by provider or `provider/model`: `ollama=cautious,openai/gpt-5-nano=balanced`.
ARBOR_MODEL_TRUST = parse_model_limits(env.dict("ARBOR_MODEL_TRUST", default={}))
#: Seconds for a whole call, from sending: 90, or 300 where a model is on a slow server of one's own.
ARBOR_MODEL_DEADLINE_S = env.float(
    "ARBOR_MODEL_DEADLINE_S",
    default=call_deadline_s(
        [ARBOR_DEFAULT_MODEL, *(handle for handles in ARBOR_TIER_MODELS.values() for handle in handles)],
        openai_base_url=OPENAI_BASE_URL,
        ollama_host=OLLAMA_HOST,
    ),
)
#: The most further round trips of a heartbeat, with the results of its actions: 0 to 9.
ARBOR_FOLLOW_UPS = whole_number("ARBOR_FOLLOW_UPS", default=9, least=0, most=MAX_TURNS - 1)
#: The domains that agents may read on the web, each with its subdomains, or `*`; empty: no web. And the address of a
#: SearXNG-compatible search server; empty: no inquiries.
ARBOR_WEB_ALLOW = env.list("ARBOR_WEB_ALLOW", default=[])
ARBOR_SEARCH_URL = env.str("ARBOR_SEARCH_URL", default="")
#: The largest page that is read, and the seconds for all searches and pages of an inquiry: at most a model's.
ARBOR_WEB_PAGE_BYTES = env.int("ARBOR_WEB_PAGE_BYTES", default=2_000_000)
ARBOR_WEB_DEADLINE_S = env.float("ARBOR_WEB_DEADLINE_S", default=45.0)
#: The embedding model of new minds: `wordllama`, `openai/<model>` or `tei/<model>`. `arbor memory reembed` moves existing
#: minds to it.
ARBOR_EMBEDDING_MODEL = env.str("ARBOR_EMBEDDING_MODEL", default="wordllama")
ARBOR_EMBEDDING_DIMENSION = env.int("ARBOR_EMBEDDING_DIMENSION", default=256)
ARBOR_EMBEDDING_URL = env.str("ARBOR_EMBEDDING_URL", default="")
#: `model=address,…` of other embedding models that agents use, or are to be moved to.
ARBOR_EMBEDDING_URLS = env.dict("ARBOR_EMBEDDING_URLS", default={})
#: Whether storing a memory waits for its vector: `always`, `never`, or `auto`: if the embedder is in this process.
ARBOR_EMBED_AT_STORAGE = env.str("ARBOR_EMBED_AT_STORAGE", default="auto")

# --- Documents ---------------------------------------------------------------------------------------

#: The largest file of a document, in megabytes; the most pages of a PDF and characters of a text.
ARBOR_DOCUMENT_MB = env.int("ARBOR_DOCUMENT_MB", default=20)
if not 1 <= ARBOR_DOCUMENT_MB <= 200:
    raise ConfigurationInvalid(f"ARBOR_DOCUMENT_MB must be 1 to 200, got {ARBOR_DOCUMENT_MB}")
# The console's server has received a request whole before Django reads it, so its files stay in memory.
FILE_UPLOAD_MAX_MEMORY_SIZE = ARBOR_DOCUMENT_MB * 2**20
ARBOR_DOCUMENT_PAGES = env.int("ARBOR_DOCUMENT_PAGES", default=2_000)
ARBOR_DOCUMENT_CHARACTERS = env.int("ARBOR_DOCUMENT_CHARACTERS", default=5_000_000)
for _name, _most in (
    ("ARBOR_DOCUMENT_PAGES", ARBOR_DOCUMENT_PAGES),
    ("ARBOR_DOCUMENT_CHARACTERS", ARBOR_DOCUMENT_CHARACTERS),
):
    if _most < 1:
        raise ConfigurationInvalid(f"{_name} must be at least 1, got {_most}")
#: Seconds and megabytes that reading one file may take in its child process.
ARBOR_DOCUMENT_READ_S = env.float("ARBOR_DOCUMENT_READ_S", default=20.0)
if not 0 < ARBOR_DOCUMENT_READ_S <= 40:
    raise ConfigurationInvalid(
        f"ARBOR_DOCUMENT_READ_S must be above 0 and at most 40 seconds, got {ARBOR_DOCUMENT_READ_S:g}: a task of maintenance has a minute"
    )
ARBOR_DOCUMENT_READ_MB = env.int("ARBOR_DOCUMENT_READ_MB", default=1_024)
if ARBOR_DOCUMENT_READ_MB < 128:
    raise ConfigurationInvalid(f"ARBOR_DOCUMENT_READ_MB must be at least 128, got {ARBOR_DOCUMENT_READ_MB}")
#: Estimated tokens of a passage, 50 to 2,000, and how many of them the next one repeats, at most half.
ARBOR_PASSAGE_TOKENS = env.int("ARBOR_PASSAGE_TOKENS", default=300)
ARBOR_PASSAGE_OVERLAP = env.int("ARBOR_PASSAGE_OVERLAP", default=50)
# Refuses what no document can be split into.
PassageSize(target=ARBOR_PASSAGE_TOKENS, overlap=ARBOR_PASSAGE_OVERLAP)

# --- Search over all sources of an agent ---------------------------------------------------------------

#: The cosine that results have at least, -1 to 1; empty: by the embedder (`arbor.knowledge.merging`), 0.7 for most.
ARBOR_SEARCH_MIN_SIMILARITY = parse_min_similarity(env.str("ARBOR_SEARCH_MIN_SIMILARITY", default=""))
#: `NAME=NUMBER`, separated by commas, instead of those in `arbor.knowledge.merging`.
ARBOR_SEARCH_WEIGHTS = parse_merge_weights(env.str("ARBOR_SEARCH_WEIGHTS", default=""))
#: The age at which the recency of a result is a half.
ARBOR_SEARCH_HALF_LIFE = timedelta(
    days=env.float("ARBOR_SEARCH_HALF_LIFE_DAYS", default=RECENCY_HALF_LIFE / timedelta(days=1))
)
if not timedelta(0) < ARBOR_SEARCH_HALF_LIFE:
    raise ConfigurationInvalid("ARBOR_SEARCH_HALF_LIFE_DAYS must be above 0 days")
#: The time that each source may take; the results of the others are returned without it.
ARBOR_SEARCH_SOURCE_MS = whole_number("ARBOR_SEARCH_SOURCE_MS", default=500, least=1, most=60_000)
#: Tenants of up to so many passages are searched exactly, larger ones by HNSW (decision 0036).
ARBOR_SEARCH_EXACT_PASSAGES = whole_number(
    "ARBOR_SEARCH_EXACT_PASSAGES", default=8_000, least=0, most=2**31 - 2
)

# --- Seeds -------------------------------------------------------------------------------------------

#: The largest seed that is read, in megabytes; unpacked, it may have four times as many.
ARBOR_SEED_MAX_MB = whole_number("ARBOR_SEED_MAX_MB", default=512, least=1, most=100_000)

# --- Skills ------------------------------------------------------------------------------------------

#: The folder of the installation's own skills, `NAME/SKILL.md` each, beside those that come with Arbor; empty: none. Files are
#: loaded at the start, and within ARBOR_SKILLS_PERIOD_S of a change.
ARBOR_SKILLS_FOLDER = env.str("ARBOR_SKILLS_FOLDER", default="")
if ARBOR_SKILLS_FOLDER and not Path(ARBOR_SKILLS_FOLDER).is_dir():
    raise ConfigurationInvalid(
        f"ARBOR_SKILLS_FOLDER must be a folder with NAME/SKILL.md files, got {ARBOR_SKILLS_FOLDER!r}, which is none"
    )
ARBOR_SKILLS_PERIOD = timedelta(seconds=env.float("ARBOR_SKILLS_PERIOD_S", default=15.0))
if not timedelta(seconds=1) <= ARBOR_SKILLS_PERIOD <= timedelta(days=1):
    raise ConfigurationInvalid("ARBOR_SKILLS_PERIOD_S must be 1 to 86400 seconds")

# --- Maintenance of memories ---------------------------------------------------------------------------

#: The share of time that a round of maintenance works, above 0 and at most 1; for the rest of the time it pauses.
ARBOR_MAINTENANCE_SHARE = env.float("ARBOR_MAINTENANCE_SHARE", default=0.7)
if not 0 < ARBOR_MAINTENANCE_SHARE <= 1:
    raise ConfigurationInvalid(
        f"ARBOR_MAINTENANCE_SHARE must be above 0 and at most 1, got {ARBOR_MAINTENANCE_SHARE:g}"
    )
#: The `provider/model` that summarizes episodes, extracts concepts and appraises memories; empty: rules do, at no cost.
ARBOR_MAINTENANCE_MODEL = env.str("ARBOR_MAINTENANCE_MODEL", default="")
#: The least nearness of a memory to its cluster, in deviations above the mean cosine of the agent's memories, 0.5 to 10: a
#: lower value makes wider clusters. And the period of reclustering an agent's memories, if they changed.
ARBOR_CLUSTER_DEVIATIONS = env.float("ARBOR_CLUSTER_DEVIATIONS", default=3.5)
ARBOR_CLUSTER_PERIOD = timedelta(seconds=env.int("ARBOR_CLUSTER_PERIOD_S", default=1800))
#: Whether the maintenance model also appraises each new memory; its importance and that of the rules are averaged.
ARBOR_WEIGH_MEMORIES = env.bool("ARBOR_WEIGH_MEMORIES", default=False)
#: The most pending maintenance calls in the installation; calls of heartbeats wait in the same queue.
ARBOR_MAX_MAINTENANCE_CALLS = env.int("ARBOR_MAX_MAINTENANCE_CALLS", default=200)
#: The time for which the prompt of a completed maintenance call is stored for people; then it is deleted.
ARBOR_MAINTENANCE_PROMPTS_KEPT = timedelta(days=env.float("ARBOR_MAINTENANCE_PROMPTS_DAYS", default=7.0))
if not timedelta(0) <= ARBOR_MAINTENANCE_PROMPTS_KEPT:
    raise ConfigurationInvalid("ARBOR_MAINTENANCE_PROMPTS_DAYS must be 0 or more")
#: The cosine above which two memories are neighbors (seed 004). Embedders differ in the cosines of similar texts.
ARBOR_NEIGHBOR_SIMILARITY = env.float("ARBOR_NEIGHBOR_SIMILARITY", default=0.75)
#: The half-life of activation.
ARBOR_ACTIVATION_HALF_LIFE = timedelta(seconds=env.float("ARBOR_ACTIVATION_HALF_LIFE_S", default=3600))
if not timedelta(0) < ARBOR_ACTIVATION_HALF_LIFE:
    raise ConfigurationInvalid("ARBOR_ACTIVATION_HALF_LIFE_S must be above 0 seconds")
#: The most active episodic memories of one agent; beyond it, the least important are archived.
ARBOR_MEMORY_QUOTA = env.int("ARBOR_MEMORY_QUOTA", default=QUOTA)
#: The same for facts, procedures and strategies: `NAME=NUMBER`, separated by commas, instead of those in `arbor.memory.forgetting`.
ARBOR_KNOWLEDGE_QUOTAS = parse_quotas(env.str("ARBOR_KNOWLEDGE_QUOTAS", default=""))
#: A memory is archived when its importance has decayed below the first limit; an episodic memory whose importance never was
#: above the second, when it has not been used for the grace period.
ARBOR_ARCHIVE_BELOW = env.float("ARBOR_ARCHIVE_BELOW", default=ARCHIVE_BELOW)
ARBOR_CLEANUP_BELOW = env.float("ARBOR_CLEANUP_BELOW", default=CLEANUP_BELOW)
ARBOR_FORGETTING_GRACE = timedelta(
    hours=env.float("ARBOR_FORGETTING_GRACE_H", default=GRACE / timedelta(hours=1))
)
# Checked here, so that a wrong value is refused at the start and not in the middle of a job.
Policy(
    archive_below=ARBOR_ARCHIVE_BELOW,
    cleanup_below=ARBOR_CLEANUP_BELOW,
    grace=ARBOR_FORGETTING_GRACE,
    quota=ARBOR_MEMORY_QUOTA,
)
#: The limits of maintenance: `NAME=WARN:CRITICAL`, separated by commas, instead of those in `arbor.memory.maintenance.health`.
ARBOR_HEALTH_LIMITS = parse_limits(env.str("ARBOR_HEALTH_LIMITS", default=""))
#: The bearer token for `/metrics`; empty: only operators of the installation see that page.
ARBOR_METRICS_TOKEN = secret("ARBOR_METRICS_TOKEN")
#: Whether spans of heartbeats are exported: OpenTelemetry's own variables name the collector.
ARBOR_EXPORT_SPANS = bool(
    env.str("OTEL_EXPORTER_OTLP_ENDPOINT", default="")
    or env.str("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", default="")
)
#: Headers of the requests to the collector, NAME=VALUE by commas, which may have its key.
OTEL_EXPORTER_OTLP_HEADERS = secret("OTEL_EXPORTER_OTLP_HEADERS")

# --- History -------------------------------------------------------------------------------------------

#: The age at which heartbeats, calls, conversations, messages, plans, ledger, usage, audit, signals,
#: workflow runs and deliveries are deleted; None: never.
ARBOR_HISTORY_AGES = parse_ages(
    {
        Record.HEARTBEATS: env.str("ARBOR_HEARTBEATS_DAYS", default="90"),
        Record.CALLS: env.str("ARBOR_CALLS_DAYS", default="30"),
        Record.CONVERSATIONS: env.str("ARBOR_CONVERSATIONS_DAYS", default="365"),
        Record.MESSAGES: env.str("ARBOR_MESSAGES_DAYS", default="365"),
        Record.PLANS: env.str("ARBOR_PLANS_DAYS", default="365"),
        # A year and a month: the same month of last year can be compared.
        Record.LEDGER: env.str("ARBOR_LEDGER_DAYS", default="400"),
        Record.USAGE: env.str("ARBOR_USAGE_DAYS", default="800"),
        Record.AUDIT: env.str("ARBOR_AUDIT_DAYS", default="800"),
        Record.SIGNALS: env.str("ARBOR_SIGNALS_DAYS", default="30"),
        Record.WORKFLOWS: env.str("ARBOR_WORKFLOWS_DAYS", default="365"),
        Record.DELIVERIES: env.str("ARBOR_DELIVERIES_DAYS", default="30"),
    }
)

# --- Recalling memories --------------------------------------------------------------------------------

#: `NAME=WEIGHT`, separated by commas, instead of those in `arbor.memory.recall.weights`; `python -m bench locomo --tune` shows the
#: effect of each.
ARBOR_RECALL_WEIGHTS = parse_weights(env.str("ARBOR_RECALL_WEIGHTS", default=""))
#: The most memory of a process for its mind cache, in MiB; 0: every recall scans the database.
ARBOR_MIND_CACHE_MB = env.float("ARBOR_MIND_CACHE_MB", default=128)
if not ARBOR_MIND_CACHE_MB >= 0:
    raise ConfigurationInvalid("ARBOR_MIND_CACHE_MB must be 0 or more")

# --- Storing memories ----------------------------------------------------------------------------------

#: A YAML or JSON file of further words for the appraisal, besides `arbor/memory/importance_words.yaml`.
ARBOR_IMPORTANCE_WORDS = env.str("ARBOR_IMPORTANCE_WORDS", default="")
#: Days until a memory of each kind is archived, counted from storage; 0: never.
ARBOR_TTL_DAYS = {
    "routine": env.float("ARBOR_TTL_ROUTINE_DAYS", default=7.0),
    "task": env.float("ARBOR_TTL_TASK_DAYS", default=30.0),
    "decision": env.float("ARBOR_TTL_DECISION_DAYS", default=90.0),
    "error": env.float("ARBOR_TTL_ERROR_DAYS", default=14.0),
}
#: The cosine from which a new memory without a session may be a duplicate; above 1: only equal texts are.
ARBOR_DUPLICATE_SIMILARITY = env.float("ARBOR_DUPLICATE_SIMILARITY", default=0.95)
#: The longest gap within an episode.
ARBOR_EPISODE_GAP = timedelta(minutes=env.float("ARBOR_EPISODE_GAP_MINUTES", default=30.0))

# --- Heartbeats ----------------------------------------------------------------------------------------

#: The interval between heartbeats of a new agent, unless it or its template has another.
ARBOR_HEARTBEAT_INTERVAL = timedelta(seconds=env.int("ARBOR_HEARTBEAT_INTERVAL_S", default=3600))
#: The time within which a claimed heartbeat must start, and the time within which a started one must reach its next step.
ARBOR_QUEUE_LEASE = timedelta(seconds=env.float("ARBOR_QUEUE_LEASE_S", default=60))
ARBOR_RUN_LEASE = timedelta(seconds=env.float("ARBOR_RUN_LEASE_S", default=30))
#: The lost leases in a row after which an agent's heartbeat fails.
ARBOR_MAX_ATTEMPTS = env.int("ARBOR_MAX_ATTEMPTS", default=5)
#: The most heartbeats claimed by one statement, and the most running heartbeats of the installation.
ARBOR_CLAIM_BATCH = env.int("ARBOR_CLAIM_BATCH", default=500)
ARBOR_MAX_IN_FLIGHT = env.int("ARBOR_MAX_IN_FLIGHT", default=5000)
#: The most heartbeats of one tenant in one claim while other tenants wait.
ARBOR_TENANT_CLAIM_LIMIT = env.int("ARBOR_TENANT_CLAIM_LIMIT", default=100)
#: An idle agent reflects once in this many heartbeats; the others call no model.
ARBOR_REFLECT_EVERY = env.int("ARBOR_REFLECT_EVERY", default=4)
#: ... and no earlier than this after its last thought: heartbeats that follow each other by seconds bring nothing new.
ARBOR_REFLECT_PAUSE = timedelta(seconds=env.float("ARBOR_REFLECT_PAUSE_S", default=3600))
#: While heartbeats wait for a worker, due agents are claimed after a second, so that they share a batch.
ARBOR_DISPATCH_PERIOD = timedelta(seconds=env.float("ARBOR_DISPATCH_PERIOD_S", default=0.25))

# --- Reaching out --------------------------------------------------------------------------------------

#: The cool-down of messages to users, and the most public messages of an agent in any 24 hours.
ARBOR_CONTACT_LIMITS = ContactLimits(
    cooldown=timedelta(hours=env.float("ARBOR_REACH_OUT_COOLDOWN_H", default=COOLDOWN / timedelta(hours=1))),
    public_per_day=env.int("ARBOR_REACH_OUT_PUBLIC_PER_DAY", default=PUBLIC_PER_DAY),
)
#: The mail server; empty: mails fail with an error. `ARBOR_EMAIL_SECURITY` is starttls, tls or none.
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
#: Whether webhooks may use http, and private addresses such as a receiver's on this machine.
ARBOR_WEBHOOK_ALLOW_HTTP = env.bool("ARBOR_WEBHOOK_ALLOW_HTTP", default=False)
ARBOR_WEBHOOK_ALLOW_PRIVATE = env.bool("ARBOR_WEBHOOK_ALLOW_PRIVATE", default=False)
#: Whether tool servers may use http, and private addresses; the seconds of a call or listing, and the bytes that are read.
ARBOR_MCP_ALLOW_HTTP = env.bool("ARBOR_MCP_ALLOW_HTTP", default=False)
ARBOR_MCP_ALLOW_PRIVATE = env.bool("ARBOR_MCP_ALLOW_PRIVATE", default=False)
ARBOR_MCP_DEADLINE_S = env.float("ARBOR_MCP_DEADLINE_S", default=30.0)
ARBOR_MCP_RESULT_BYTES = env.int("ARBOR_MCP_RESULT_BYTES", default=1_000_000)
#: The period of the search for due messages, and for messages whose worker died.
ARBOR_OUTBOX_PERIOD = timedelta(seconds=env.float("ARBOR_OUTBOX_PERIOD_S", default=5.0))

# --- Audit log -----------------------------------------------------------------------------------------

#: The period in which committed audit records and ended heartbeats are sealed into the chains of tenants and of the installation.
ARBOR_AUDIT_SEAL_PERIOD = timedelta(seconds=env.float("ARBOR_AUDIT_SEAL_PERIOD_S", default=30.0))
if not timedelta(seconds=1) <= ARBOR_AUDIT_SEAL_PERIOD <= timedelta(days=1):
    raise ConfigurationInvalid("ARBOR_AUDIT_SEAL_PERIOD_S must be 1 to 86400 seconds")
#: Where the heads of the chains go, besides the database: a file that lines of JSON are appended to, a URL that they are posted to.
ARBOR_AUDIT_HEADS_FILE = env.str("ARBOR_AUDIT_HEADS_FILE", default="")
ARBOR_AUDIT_HEADS_URL = env.str("ARBOR_AUDIT_HEADS_URL", default="")
check_heads_targets(
    file=ARBOR_AUDIT_HEADS_FILE, url=ARBOR_AUDIT_HEADS_URL, allow_http=ARBOR_WEBHOOK_ALLOW_HTTP
)

# --- Conversations -------------------------------------------------------------------------------------

#: The time after the last turn at which a conversation ends; until then the agent's schedule pauses.
ARBOR_CHAT_IDLE = timedelta(seconds=env.float("ARBOR_CHAT_IDLE_S", default=300))
if not timedelta(0) < ARBOR_CHAT_IDLE:
    raise ConfigurationInvalid("ARBOR_CHAT_IDLE_S must be above 0 seconds")
#: The significance, 0 to 1, from which a conversation triggers a heartbeat when it ends; above 1: none does.
ARBOR_CHAT_SIGNIFICANT = env.float("ARBOR_CHAT_SIGNIFICANT", default=SIGNIFICANT)

# --- Logging -------------------------------------------------------------------------------------------

ARBOR_LOG_LEVEL = env.str("ARBOR_LOG_LEVEL", default="INFO")
#: `console` (colored, for people) or `json` (one object per line, for machines).
ARBOR_LOG_FORMAT = env.str("ARBOR_LOG_FORMAT", default="console")
LOGGING = logging_config(level=ARBOR_LOG_LEVEL, form=ARBOR_LOG_FORMAT)
