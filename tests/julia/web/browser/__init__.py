"""Tests of Julia's dashboard in a real browser."""
