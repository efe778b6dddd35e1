"""Tests of the methods of selection."""
