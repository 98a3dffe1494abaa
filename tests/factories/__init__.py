"""Rows for tests. Everything that belongs to a tenant is made inside `tenant_transaction`, in that tenant."""
