"""Tests of Telegram: the interface and its implementations, sessions, the worker."""
