"""Reader and writer of Arrow's stream format, with the parts that the service needs."""
