"""Manage the accounts that sign in to the console, and their sessions."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.markup import escape

from apps.fleet import accounts
from apps.fleet.accounts import account_by_name, create_account, open_sessions
from apps.fleet.members import set_member_role
from apps.tenants.models import Membership, Role, User
from apps.tenants.scope import OPS
from apps.tenants.services import tenant_by_slug
from arbor.errors import NotFound
from arbor.ids import read_id
from arbor.quotations import counted
from config.cli.kit.columns import OutputColumn, listing
from config.cli.kit.declarations import Output, is_given
from config.cli.kit.tenancy import actor


def list_users() -> Output:
    """List the accounts."""
    tenants: dict[int, list[str]] = {}
    members = Membership.own.using(OPS).select_related("tenant").order_by("tenant__slug")
    for member in members:
        tenants.setdefault(member.user_id, []).append(f"{member.tenant.slug} ({member.role})")
    return listing(
        "users",
        list(User.objects.defer("password").order_by("username")),
        (
            OutputColumn("user", "user", value=lambda user: user.username),
            OutputColumn("enabled", "enabled", value=lambda user: user.is_active),
            OutputColumn("superuser", "superuser", value=lambda user: user.is_superuser),
            OutputColumn("last_login", "signed in", value=lambda user: user.last_login),
            OutputColumn("tenants", "tenants", value=lambda user: ", ".join(tenants.get(user.pk, []))),
        ),
        empty="No account yet. Create one: [bold]arbor tenant user create USERNAME[/bold]",
    )


def disable(username: str) -> Output:
    """Disable an account and end its sessions."""
    accounts.disable_account(username=username, actor=actor())
    return Output({"user": username, "enabled": False}, text=f"{username} is disabled and signed out.")


def enable(username: str) -> Output:
    """Enable an account, and forget its failed sign-ins."""
    accounts.enable_account(username=username, actor=actor())
    return Output({"user": username, "enabled": True}, text=f"{username} may sign in.")


def set_password(username: str, password_stdin: bool, generate: bool, password_file: Path | None) -> Output:
    """Set a new password of an account and end its sessions."""
    account_by_name(username)  # before the prompt
    password = _read_or_generate_password(
        password_stdin=password_stdin, generate=generate, password_file=password_file
    )
    with _removed_on_error(password_file):
        accounts.change_password(username=username, password=password, actor=actor())
    return Output(
        {"user": username, **_file_value(password_file)},
        text=f"{username} has a new password and is signed out everywhere."
        + _password_note(password, generate, password_file),
    )


def list_sessions(username: str) -> Output:
    """List the open sessions of an account."""
    return listing(
        "sessions",
        open_sessions(account_by_name(username)),
        (
            OutputColumn("id", "session", value=lambda session: session.public_id),
            OutputColumn("signed_in_at", "signed in"),
            OutputColumn("seen_at", "last request"),
            OutputColumn("address", "from"),
            OutputColumn("browser", "browser"),
        ),
        about={"user": username},
        empty=f"{username} has no open session.",
    )


def sign_out(username: str, session: str | None) -> Output:
    """End the sessions of an account, or one of them."""
    session_id = read_id(session)
    if session is not None and session_id is None:
        raise NotFound(
            f"a session is named by its id, which `arbor tenant user sessions {username}` lists; got {session[:60]!r}"
        )
    ended = accounts.end_sessions(user=account_by_name(username), actor=actor(), session_id=session_id)
    text = f"Ended {counted(ended, 'session')} of {username}."
    return Output({"user": username, "ended": ended}, text=text)


def create_user(
    username: str,
    password_stdin: bool,
    generate: bool,
    password_file: Path | None,
    superuser: bool,
    tenant_slug: str | None,
    role: str,
) -> Output:
    """Create an account. Without an option the command prompts for the password."""
    if tenant_slug is not None:
        tenant_by_slug(tenant_slug)  # before anything is created
    elif is_given("role"):
        raise click.UsageError("--role is the role in a tenant: name the tenant with --tenant")
    password = _read_or_generate_password(
        password_stdin=password_stdin, generate=generate, password_file=password_file
    )
    with _removed_on_error(password_file):
        account: User = create_account(
            username=username, password=password, superuser=superuser, actor=actor()
        )
    if tenant_slug is not None:
        set_member_role(slug=tenant_slug, username=username, role=Role(role), actor=actor())
    where = f", {role} of {tenant_slug}" if tenant_slug else ""
    once = _password_note(password, generate, password_file)
    hint = (
        ""
        if where or superuser
        else f" Next: [bold]arbor tenant member add SLUG {username} --role ROLE[/bold]"
    )
    return Output(
        {
            "user": account.username,
            "superuser": superuser,
            "tenant": tenant_slug,
            **_file_value(password_file),
        },
        text=f"Created account [bold]{username}[/bold]{where}.{once}{hint}",
    )


def _read_or_generate_password(*, password_stdin: bool, generate: bool, password_file: Path | None) -> str:
    """Return the password from standard input or a prompt, or a new random one, written to the file if one is named.

    Raises UsageError if a generated password could be neither written to a file nor shown on a terminal.
    """
    if password_stdin and generate:
        raise click.UsageError("--password-stdin and --generate exclude each other")
    if password_file is not None and not generate:
        raise click.UsageError("--password-file is for --generate")
    if generate:
        password = secrets.token_urlsafe(15)
        if password_file is not None:
            _write_password_file(password_file, password)
        elif not sys.stdout.isatty():
            raise click.UsageError(
                "a generated password is shown on a terminal only; name a file for it with --password-file"
            )
        return password
    if password_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        raise click.UsageError(
            "there is no terminal to ask for a password: use --password-stdin or --generate"
        )
    typed: str = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    return typed


def _write_password_file(path: Path, password: str) -> None:
    try:
        # O_EXCL: an existing file is not overwritten, because other users may be able to read it.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise click.UsageError(f"the password cannot be written to {path}: {error.strerror}") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(password + "\n")


@contextmanager
def _removed_on_error(path: Path | None) -> Iterator[None]:
    """Delete the file of a password that no account got, if there is one."""
    try:
        yield
    except BaseException:
        if path is not None:
            path.unlink(missing_ok=True)
        raise


def _file_value(path: Path | None) -> dict[str, str]:
    return {"password_file": str(path)} if path is not None else {}


def _password_note(password: str, generate: bool, path: Path | None) -> str:
    if path is not None:
        return f" Its password is in {escape(str(path))}."
    return f" Password (shown only now): [bold green]{password}[/bold green]" if generate else ""
