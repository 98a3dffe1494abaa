"""The audit log as values: levels, the chain of seals, and its verification."""
