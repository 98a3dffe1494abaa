"""Models of memories, and of the data that maintenance derives from them."""

from apps.memories.models.buffer import BufferItem, CodeSnippet
from apps.memories.models.clusters import Cluster, ClusterMember, ClusterRelation
from apps.memories.models.episodes import Episode
from apps.memories.models.graph import Concept, Edge, MemoryConcept
from apps.memories.models.memory import (
    Activation,
    EmbeddingCacheEntry,
    Memory,
    MemoryAccess,
    Practice,
    Term,
    Upkeep,
)
from apps.memories.models.mind import EmbedderFault, JobRun, Mind, NextEmbedding
from apps.memories.models.pins import Pin

__all__ = [
    "Activation",
    "BufferItem",
    "Cluster",
    "ClusterMember",
    "ClusterRelation",
    "CodeSnippet",
    "Concept",
    "Edge",
    "EmbedderFault",
    "EmbeddingCacheEntry",
    "Episode",
    "JobRun",
    "Memory",
    "MemoryAccess",
    "MemoryConcept",
    "Mind",
    "NextEmbedding",
    "Pin",
    "Practice",
    "Term",
    "Upkeep",
]
