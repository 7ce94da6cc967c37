"""Tests of Telegram: the port and its implementations, sessions, the worker."""
