"""Metrics of the service for operators: declared once, counted by every process, reported by any process."""
