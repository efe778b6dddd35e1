"""The store: Redis connections, the embedded server, and what is kept where."""
