"""Goals and plans at work, through real beats."""
