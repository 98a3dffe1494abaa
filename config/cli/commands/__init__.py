"""The command line as data: every command with its parameters and help, without Django."""
