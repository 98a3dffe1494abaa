"""Starts the parts of one installation, watches them, restarts what ends, and leaves nothing behind."""

#: In the environment of every supervised process and of its children: the data folder it works for.
MARK = "ARBOR_SUPERVISED"
