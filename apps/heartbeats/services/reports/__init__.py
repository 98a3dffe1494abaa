"""Read heartbeats for people: traces, thoughts, figures, decisions made again."""
