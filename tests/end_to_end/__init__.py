"""Tests that run several components together, as a user or operator does."""
