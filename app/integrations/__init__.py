"""Clients for external services, one folder each. They translate errors into the types that
``app/contexts`` defines.
"""
