"""Asking a language model: the port, and the rules for names, prices, retries and broken providers."""
