"""Targets: one file for each kind of file."""
