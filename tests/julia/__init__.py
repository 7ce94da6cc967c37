"""Tests of the application Julia, one folder for each context."""
