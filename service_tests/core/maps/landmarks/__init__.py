"""Tests of the landmark family."""
