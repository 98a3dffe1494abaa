"""Rows for tests. Create rows of a tenant inside `tenant_transaction` of that tenant."""
