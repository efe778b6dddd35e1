"""Store: Redis connections, the embedded server, and the layout of the stored data."""
