"""Clients of external services, one folder each. They translate errors into the terms of the contexts."""
