"""Chatwoot as the help desk: requests to its API, and its webhooks."""
