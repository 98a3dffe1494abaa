"""Draw graphs as SVG."""
