"""Tests of whole agents and their history."""
