"""The buffer, quotas, forgetting, pins and the archive."""
