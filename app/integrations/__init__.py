"""Clients of external services, one folder each. They translate errors into the types of ``app/contexts``."""
