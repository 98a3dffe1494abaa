"""Draw pipelines, neighborhoods and bars as SVG."""
