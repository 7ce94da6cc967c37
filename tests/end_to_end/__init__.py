"""Tests that run several parts as a user or operator does."""
