"""Maintenance: calls of models for memories and conversations, made and settled without any decision."""
