"""Order the memories of an agent by clusters, and name them."""
