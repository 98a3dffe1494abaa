"""Store memories: placed among those that exist, revised, tied to what they came from."""
