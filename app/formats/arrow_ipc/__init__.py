"""The parts of Arrow's stream format: what is read, and what is written."""
