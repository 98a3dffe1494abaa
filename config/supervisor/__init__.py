"""The supervisor: starts, watches and restarts the parts of one installation, and ends all their processes."""

#: The environment variable of every supervised process and its children that names the data folder.
MARK = "ARBOR_SUPERVISED"
#: The environment variable with the path of the file that a process touches when it is ready and, every few seconds, while
#: it lives. The supervisor and `compose.yaml` set the variable; health checks read the age of the file.
READY_FILE = "ARBOR_READY_FILE"
