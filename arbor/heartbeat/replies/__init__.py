"""Replies of models: their parts and schema, lenient parsing, and the merge of round trips."""
