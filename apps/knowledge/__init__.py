"""Documents, their passages and skills as rows."""
