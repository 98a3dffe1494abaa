"""Run the installation: everything at once, or one of its processes."""
