"""Tables of memories and of what maintenance derives from them; `memory` is the centre."""

from apps.memories.models.associations import Activation, Upkeep
from apps.memories.models.buffer import BufferItem
from apps.memories.models.clusters import Cluster, ClusterMember, ClusterRelation
from apps.memories.models.code import CodeSnippet
from apps.memories.models.concepts import Concept, MemoryConcept
from apps.memories.models.episodes import Episode
from apps.memories.models.graph import Edge
from apps.memories.models.jobs import JobRun
from apps.memories.models.memory import EmbeddingCacheEntry, Memory, MemoryAccess, Practice, Term
from apps.memories.models.mind import EmbedderFault, Mind, NextEmbedding

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
    "Practice",
    "Term",
    "Upkeep",
]
