"""Store memories: place them among existing ones, revise them, and relate them to their sources."""
