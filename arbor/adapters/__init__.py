"""Adapters: implement the core's ports; the only package that uses the network."""
