"""The self at work, through real beats: what is stored is in the prompt, what is answered reaches its store."""
