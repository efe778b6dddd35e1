"""Calls of the HTTP API, each defined once, as a function that returns a request or the steps of several."""
