"""Tokens and sessions of people and programs that use the API and the dashboard."""
