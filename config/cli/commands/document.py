"""The commands about documents."""

from __future__ import annotations

from pathlib import Path

import click

from arbor.knowledge.values import DocumentStatus, IndexingStatus
from config.cli.commands.options import limit_option
from config.cli.kit.declarations import agent_command, argument, group, one_of, option, tenant_command

_CATEGORY = option(
    "--category",
    metavar="NAME",
    help="File the documents under this category.  [default: their own, or none]",
)
_PUBLISH = option(
    "--publish",
    is_flag=True,
    help="Publish the documents, so that agents find them. Otherwise a new document is a draft.",
)
_BACKGROUND = option(
    "--background", is_flag=True, help="Leave the indexing to the workers, and do not wait for it."
)

_document = group(
    "document",
    "Manage documents that all agents of a tenant share. DOCUMENT is a name or an id.",
    tenant_command(
        "add",
        "Add files, or all documents below folders, and index them. A file of a known name is a new version.",
        argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path)),
        _CATEGORY,
        _PUBLISH,
        _BACKGROUND,
        run="documents:add",
        details="Markdown, text, HTML, Word (DOCX) and PDF. The exit code is 1 if a file cannot be read.",
        examples=(
            "arbor document add handbook.md --publish",
            "arbor document add ~/manuals --category manuals --publish",
        ),
    ),
    tenant_command(
        "watch",
        "Watch a folder: add what is new or changed, and withdraw what is gone. Ctrl-C stops it.",
        argument("folder", type=click.Path(path_type=Path)),
        option("--category", metavar="NAME", help="File new documents under this category.  [default: none]"),
        option("--draft", is_flag=True, help="Add new documents as drafts instead of publishing them."),
        option("--once", is_flag=True, help="Add and withdraw documents once, and end."),
        option(
            "--allow-empty", is_flag=True, help="Withdraw all documents of a folder that has no file left."
        ),
        run="documents:watch",
        details="A document that exists keeps the category and status that people chose.",
        examples=("arbor document watch ~/wiki --category wiki", "arbor document watch ~/wiki --once --json"),
    ),
    tenant_command(
        "list",
        "List documents, the last changed first.",
        option("--status", type=one_of(DocumentStatus), help="Only documents in this status."),
        option(
            "--indexing", type=one_of(IndexingStatus), help="Only documents whose indexing is in this status."
        ),
        option(
            "--category", metavar="NAME", help="Only documents of this category; an empty name: without one."
        ),
        option("--text", default="", help="Only documents with this text in their name or title."),
        limit_option(1000),
        run="documents:list_documents",
        examples=("arbor document list --indexing failed", "arbor document list --category manuals --json"),
    ),
    tenant_command(
        "show",
        "Show a document with its versions, its progress and its error.",
        argument("document"),
        run="documents:show",
        examples=("arbor document show handbook.md",),
    ),
    tenant_command(
        "read",
        "Print a part of the text of a document.",
        argument("document"),
        option("--start", type=click.IntRange(0), default=0, help="The first character."),
        option(
            "--length",
            type=click.IntRange(1, 20_000),
            default=20_000,
            help="The number of characters.",
        ),
        run="documents:read",
        examples=("arbor document read handbook.md", "arbor document read handbook.md --start 20000"),
    ),
    tenant_command(
        "search",
        "Search the published documents about QUERY, best first.",
        argument("query"),
        option("--category", help='Only documents of this category; "" for those without one.'),
        limit_option(50, 10),
        run="search:search_documents",
        examples=('arbor document search "Who approves flights?"',),
    ),
    tenant_command(
        "passages",
        "List the passages of a document, with their places.",
        argument("document"),
        limit_option(1000, 20),
        run="documents:list_passages",
        examples=("arbor document passages handbook.md",),
    ),
    tenant_command(
        "download",
        "Write the file of a document to FILE.",
        argument("document"),
        argument("file", type=click.Path(dir_okay=False, path_type=Path)),
        option("--version", type=click.IntRange(1), help="The number of the version.  [default: the latest]"),
        run="documents:download",
        examples=("arbor document download handbook.md old.md --version 1",),
    ),
    tenant_command(
        "publish",
        "Publish a document, so that agents find it.",
        argument("document"),
        run="documents:publish",
        examples=("arbor document publish handbook.md",),
    ),
    tenant_command(
        "withdraw",
        "Hide a document from agents. Its versions stay, and it can be published again.",
        argument("document"),
        run="documents:withdraw",
        examples=("arbor document withdraw handbook.md",),
    ),
    tenant_command(
        "file",
        "Move a document to another category.",
        argument("document"),
        argument("category"),
        run="documents:file",
        examples=("arbor document file handbook.md policies", 'arbor document file handbook.md ""'),
    ),
    tenant_command(
        "reindex",
        "Index the latest version of a document again.",
        argument("document"),
        _BACKGROUND,
        run="documents:reindex",
        examples=("arbor document reindex handbook.md",),
    ),
    tenant_command(
        "delete",
        "Delete a document with its versions and passages for good.",
        argument("document"),
        run="documents:delete",
        examples=("arbor document delete handbook.md",),
    ),
    tenant_command(
        "categories",
        "List the categories with the numbers of their documents.",
        run="documents:list_categories",
        examples=("arbor document categories",),
    ),
    agent_command(
        "limit",
        "Show the categories of documents that an agent finds, or set them.",
        option(
            "--category",
            "categories",
            multiple=True,
            metavar="NAME",
            help="Only documents of this category. Can be repeated; an empty name: those without one.",
        ),
        option("--none", "no_document", is_flag=True, help="No document at all."),
        option("--all", "everything", is_flag=True, help="All documents, as without a limit."),
        run="documents:limit",
        examples=(
            "arbor document limit Vega --category manuals --category policies",
            "arbor document limit Vega --all",
        ),
    ),
    details="docs/how-to/share-documents.md.",
)

COMMANDS = (_document,)
