"""Keep what matters: the buffer, quotas, forgetting and the archive."""
