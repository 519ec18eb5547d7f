"""Equations of motion."""
