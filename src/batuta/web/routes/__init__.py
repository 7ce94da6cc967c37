"""Modules with the routes of the HTTP API."""
