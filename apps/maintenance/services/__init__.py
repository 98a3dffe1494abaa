"""Create, settle, recover and clean up maintenance calls, and expire approvals."""
