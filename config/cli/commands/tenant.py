"""The commands about tenants, their members and accounts."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import click

from config.cli.commands.options import energy_options
from config.cli.kit.declarations import argument, command, group, one_of, option
from config.cli.kit.values import LimitType

#: The roles of members (`apps.tenants.models.Role`): each includes the rights of the role before it.
ROLES = ("viewer", "operator", "owner")

_member = group(
    "member",
    "Manage the accounts that work in a tenant.",
    command(
        "list",
        "List the members of a tenant.",
        argument("slug"),
        run="tenants:list_members",
        examples=("arbor tenant member list acme",),
    ),
    command(
        "add",
        "Add an account to a tenant, or change its role there.",
        argument("slug"),
        argument("username"),
        option("--role", type=one_of(ROLES), required=True, help="The member's role."),
        run="tenants:add_member",
        examples=("arbor tenant member add acme maria --role viewer",),
    ),
    command(
        "remove",
        "Remove an account from a tenant; its open pages show the tenant no more.",
        argument("slug"),
        argument("username"),
        run="tenants:remove_member",
        examples=("arbor tenant member remove acme maria",),
    ),
)


def _password_options() -> tuple[click.Parameter, ...]:
    return (
        option("--password-stdin", is_flag=True, help="Read the password from standard input."),
        option("--generate", is_flag=True, help="Generate a password and show it once, on a terminal."),
        option(
            "--password-file",
            type=click.Path(path_type=Path, dir_okay=False),
            help="Write the generated password to this new file, for its owner only, instead.",
        ),
    )


_user = group(
    "user",
    "Manage the accounts that sign in to the console.",
    command("list", "List the accounts.", run="accounts:list_users", examples=("arbor tenant user list",)),
    command(
        "create",
        "Create an account. Without an option the command prompts for the password.",
        argument("username"),
        *_password_options(),
        option(
            "--superuser",
            is_flag=True,
            help="Grant access to the installation as a whole, not only to tenants.",
        ),
        option("--tenant", "tenant_slug", metavar="SLUG", help="Add the account to this tenant."),
        option("--role", type=one_of(ROLES), default="operator", help="Its role there."),
        run="accounts:create_user",
        examples=(
            "arbor tenant user create maria --generate --tenant acme --role viewer",
            "pass show arbor/maria | arbor tenant user create maria --password-stdin",
        ),
    ),
    command(
        "disable",
        "Disable an account and end its sessions.",
        argument("username"),
        run="accounts:disable",
        examples=("arbor tenant user disable maria",),
    ),
    command(
        "enable",
        "Enable an account, and forget its failed sign-ins.",
        argument("username"),
        run="accounts:enable",
        examples=("arbor tenant user enable maria",),
    ),
    command(
        "password",
        "Set a new password of an account and end its sessions. Without an option the command prompts for it.",
        argument("username"),
        *_password_options(),
        run="accounts:set_password",
        examples=("arbor tenant user password maria --generate",),
    ),
    command(
        "sessions",
        "List the open sessions of an account.",
        argument("username"),
        run="accounts:list_sessions",
        examples=("arbor tenant user sessions maria --json",),
    ),
    command(
        "sign-out",
        "End the sessions of an account, or one of them.",
        argument("username"),
        option("--session", metavar="ID", help="End this session only."),
        run="accounts:sign_out",
        examples=("arbor tenant user sign-out maria",),
    ),
)

_tenant = group(
    "tenant",
    "Manage tenants, members and accounts.",
    command("list", "List the tenants.", run="tenants:list_tenants", examples=("arbor tenant list --json",)),
    command(
        "create",
        "Create a tenant.",
        argument("slug"),
        option("--name", help="Its display name.  [default: the slug]"),
        run="tenants:create",
        examples=('arbor tenant create acme --name "Acme Ltd."',),
    ),
    command(
        "suspend",
        "Suspend a tenant: its agents stop running, its data stays.",
        argument("slug"),
        run="tenants:suspend",
        examples=("arbor tenant suspend acme",),
    ),
    command(
        "resume",
        "Resume a suspended tenant.",
        argument("slug"),
        run="tenants:resume",
        examples=("arbor tenant resume acme",),
    ),
    command(
        "suspend-all",
        "Suspend all active tenants of the installation.",
        option("--reason", required=True, help="Why, for the record of the installation."),
        run="tenants:suspend_all",
        examples=('arbor tenant suspend-all --reason "the model is wrong"',),
    ),
    command(
        "resume-all",
        "Resume the tenants that the last `suspend-all` suspended.",
        run="tenants:resume_all",
        examples=("arbor tenant resume-all",),
    ),
    command(
        "limit",
        "Limit the daily usage of a tenant's agents together; `none` removes a limit, the others stay as they are.",
        argument("slug"),
        option(
            "--heartbeats",
            "daily_heartbeats",
            type=LimitType(int),
            help="Heartbeats of all its agents per day (UTC).",
        ),
        option(
            "--tokens", "daily_tokens", type=LimitType(int), help="Tokens of all its model calls per day."
        ),
        option("--usd", "daily_usd", type=LimitType(Decimal), help="Their cost per day, in US dollars."),
        run="tenants:limit",
        examples=("arbor tenant limit acme --heartbeats 10000 --usd 25",),
    ),
    command(
        "energy",
        "Show or change the energy of a tenant's agents, unless their own policies set it; `none` restores a default.",
        argument("slug"),
        *energy_options(),
        run="tenants:energy",
        examples=("arbor tenant energy acme --regeneration 6 --max-energy 30 --cost reach_out_user=8",),
    ),
    _member,
    _user,
)

COMMANDS = (_tenant,)
