"""Documents, their passages, skills, and subscriptions to signals as rows."""
