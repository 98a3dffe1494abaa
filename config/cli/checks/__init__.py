"""What `arbor doctor` looks at, by what it is about."""
