"""Deliver reports to a Slack channel and to any address that accepts JSON."""
