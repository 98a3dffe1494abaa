"""Recall memories: from minds at hand or by a scan, ranked, and what is present in mind."""
