"""The commands about a tenant's own providers of models."""

from __future__ import annotations

from pathlib import Path

import click

from config.cli.kit.declarations import argument, group, option, tenant_command

_provider = group(
    "provider",
    "Manage a tenant's own keys of model providers.",
    tenant_command(
        "list",
        "List the providers that a tenant has keys of, without the keys.",
        run="providers:list_providers",
        examples=("arbor provider list --tenant acme",),
    ),
    tenant_command(
        "add",
        "Try a key of a provider and store it encrypted; it replaces an earlier one.",
        argument("provider"),
        option(
            "--key-file",
            type=click.Path(path_type=Path, dir_okay=False, exists=True),
            help="Read the key from this file.",
        ),
        option("--key-stdin", is_flag=True, help="Read the key from standard input."),
        option("--no-key", is_flag=True, help="The server needs no key."),
        option("--url", "base_url", default="", help="The address of the server.  [default: the provider's]"),
        option(
            "--model", default="", metavar="NAME", help="A model of the provider, for agents that name none."
        ),
        run="providers:add",
        details="PROVIDER is openai (or any server with its protocol, with --url), anthropic, openrouter, gemini, ollama, vllm"
        " or llamacpp. Without an option for the key the command prompts for it.",
        examples=(
            "pass show openai | arbor provider add openai --key-stdin --model gpt-6-luna --tenant acme",
            "arbor provider add ollama --url http://gpu:11434 --no-key --model llama3.2",
        ),
    ),
    tenant_command(
        "test",
        "Try a stored key, and list the models of the provider anew.",
        argument("provider"),
        run="providers:test",
        examples=("arbor provider test openai --json",),
    ),
    tenant_command(
        "remove",
        "Remove a key, which no further call uses.",
        argument("provider"),
        run="providers:remove",
        examples=("arbor provider remove openai",),
    ),
    tenant_command(
        "default",
        "Show or choose the model of agents that name none; `none` is the installation's.",
        argument("model", required=False),
        run="providers:default",
        examples=("arbor provider default openai/gpt-6-luna --tenant acme",),
    ),
)

COMMANDS = (_provider,)
