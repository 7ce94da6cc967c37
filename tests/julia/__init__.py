"""Tests of the application, one folder for each context."""
