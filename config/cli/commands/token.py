"""The commands about API tokens."""

from __future__ import annotations

from config.cli.commands.tenant import ROLES
from config.cli.kit.declarations import argument, group, one_of, option, tenant_command
from config.cli.kit.values import LifetimeType

_token = group(
    "token",
    "Manage the tokens by which programs use the API.",
    tenant_command(
        "create",
        "Create a token and show it once: only its hash is stored.",
        argument("name"),
        option(
            "--role",
            type=one_of(ROLES),
            default=ROLES[0],
            help="Give the token the rights of this role.",
        ),
        option("--agent", metavar="NAME", help="The only agent that the token reaches.  [default: all]"),
        option(
            "--tasks-only",
            is_flag=True,
            help="Allow the token only to give tasks to published agents; for agents elsewhere.",
        ),
        option(
            "--expires",
            "lifetime",
            type=LifetimeType(),
            default="90d",
            help="Lifetime, up to ten years: 12h, 30d, or none for a token that never expires.",
        ),
        run="tokens:create",
        examples=(
            "arbor token create dashboard --tenant acme",
            "arbor token create ci --role operator --agent Vega --expires 30d --json",
            "arbor token create partner --tasks-only --agent Vega",
        ),
    ),
    tenant_command(
        "list",
        "List the tokens of a tenant with role, expiry and last use.",
        option("--all", "with_revoked", is_flag=True, help="Include revoked and expired tokens."),
        run="tokens:list_tokens",
        examples=("arbor token list --tenant acme",),
    ),
    tenant_command(
        "revoke",
        "Revoke a token for good, by its name or its beginning.",
        argument("token"),
        run="tokens:revoke",
        examples=("arbor token revoke dashboard --tenant acme",),
    ),
)

COMMANDS = (_token,)
