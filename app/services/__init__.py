"""What the service does, without HTTP: core and store together."""
