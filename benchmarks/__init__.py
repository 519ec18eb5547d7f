"""Benchmarks, run from the command line: see README.md."""
