"""The supervisor: starts, watches and restarts the parts of one installation, and ends all their processes."""

#: The environment variable of every supervised process and its children that names the data folder.
MARK = "ARBOR_SUPERVISED"
