"""Language models: the port, and the rules for handles, prices, retries and failing providers."""
