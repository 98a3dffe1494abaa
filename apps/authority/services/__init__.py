"""Grant, delegate, revoke, approve."""
