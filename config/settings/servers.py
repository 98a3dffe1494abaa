"""Secrets, databases and the broker."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from arbor.errors import ConfigurationInvalid
from arbor.sealing import SESSION_PURPOSE
from config import credentials
from config.databases import database_config, is_missing
from config.environment import data_dir, env, secret, server_urls, whole_number
from config.keys import KeySource

DATA_DIR = data_dir()
_SERVERS = server_urls(DATA_DIR)

# --- Secrets --------------------------------------------------------------------------------------------

#: The source of the master keys, which a rotation changes while this process runs (`apps.tenants.keys`).
ARBOR_MASTER_KEYS = KeySource.of_environment()
#: Names of secrets that the installation has and this process does not (`config.process_secrets`).
ARBOR_WITHHELD = credentials.withheld_names()
_own_secret_key = secret("SECRET_KEY")
SECRET_KEY, *_earlier_keys = (
    [_own_secret_key] if _own_secret_key else credentials.derived_secrets(SESSION_PURPOSE)
)
SECRET_KEY_FALLBACKS = _earlier_keys
#: Whether sessions are signed with a secret derived from the master key.
ARBOR_SESSIONS_DERIVED = not _own_secret_key

# --- Database: four roles, one database -----------------------------------------------------------------

#: The owner of the tables, for migrations and the creation of the roles below, never to serve.
DATABASE_URL = credentials.owner_url(_SERVERS)
_ROLE_URLS = credentials.role_urls(DATABASE_URL)
#: The roles whose passwords are derived from the master key, with the purposes of the derivations.
ARBOR_DERIVED_ROLES = credentials.derived_roles()
#: The folder with the passwords that a rotation of the master key gave to roles, one file each, for processes without the key.
ARBOR_ROTATED_PASSWORDS = credentials.rotated_passwords_folder()
#: Whether each statement is planned once per connection. Workers enable it, because they repeat few statements at each
#: heartbeat. PgBouncer in transaction mode needs `max_prepared_statements`, or false here.
ARBOR_PREPARED_STATEMENTS = env.bool("ARBOR_PREPARED_STATEMENTS", default=False)
#: Connections of the psycopg pool in a process of many threads; 0: one persistent connection per thread.
ARBOR_DB_POOL_SIZE = whole_number("ARBOR_DB_POOL_SIZE", default=0, least=0, most=10_000)
#: The connections of the operations role in such a process, because few threads at once work across tenants.
_OPS_POOL_SIZE = 2
_database = partial(database_config, prepared=ARBOR_PREPARED_STATEMENTS)
DATABASES = {
    "default": _database(_ROLE_URLS["default"], pool_size=ARBOR_DB_POOL_SIZE),
    "ops": _database(_ROLE_URLS["ops"], pool_size=min(ARBOR_DB_POOL_SIZE, _OPS_POOL_SIZE)),
    "accounts": _database(_ROLE_URLS["accounts"], pool_size=min(ARBOR_DB_POOL_SIZE, _OPS_POOL_SIZE)),
    "owner": _database(DATABASE_URL),
}
#: The limit of a statement and of an idle transaction of the serving roles, which `arbor prepare` sets, and that of a statement of
#: a page.
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
ARBOR_HAS_DATABASE = not is_missing(DATABASES["default"])
#: Whether `arbor up` runs from this data folder, with an embedded or an external database.
ARBOR_RUNS_HERE = bool(_SERVERS)
DATABASE_ROUTERS = ["apps.tenants.routing.AccountsRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Broker ---------------------------------------------------------------------------------------------

CELERY_BROKER_URL = credentials.broker_url(_SERVERS)
