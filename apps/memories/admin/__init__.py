"""Memories, and what maintenance makes of them, in the operator's console."""

from apps.memories.admin.buffer import BufferItemAdmin
from apps.memories.admin.clusters import ClusterAdmin
from apps.memories.admin.code import CodeSnippetAdmin
from apps.memories.admin.concepts import ConceptAdmin
from apps.memories.admin.episodes import EpisodeAdmin
from apps.memories.admin.graph import EdgeAdmin
from apps.memories.admin.memory import MemoryAccessAdmin, MemoryAdmin, PracticeAdmin
from apps.memories.admin.upkeep import (
    ActivationAdmin,
    EmbedderFaultAdmin,
    JobRunAdmin,
    MindAdmin,
    NextEmbeddingAdmin,
    UpkeepAdmin,
)

__all__ = [
    "ActivationAdmin",
    "BufferItemAdmin",
    "ClusterAdmin",
    "CodeSnippetAdmin",
    "ConceptAdmin",
    "EdgeAdmin",
    "EmbedderFaultAdmin",
    "EpisodeAdmin",
    "JobRunAdmin",
    "MemoryAccessAdmin",
    "MemoryAdmin",
    "MindAdmin",
    "NextEmbeddingAdmin",
    "PracticeAdmin",
    "UpkeepAdmin",
]
