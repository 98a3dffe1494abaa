"""Functions and classes that tests share; fixtures are in the `conftest.py` of their folder."""
