"""Create, start, change and run whole agents and tenants, over all other apps."""
