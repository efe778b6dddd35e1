"""Routes of the HTTP API, a file for each part."""
