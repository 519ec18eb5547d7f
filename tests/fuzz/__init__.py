"""Fuzzing of everything that reads files: `python -m tests.fuzz` (see README.md of this folder)."""
