"""Views of the pages on which operators look into agents, decide, and run the installation."""
