"""The buffer, quotas, forgetting and the archive."""
