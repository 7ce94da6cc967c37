"""Clients of outside services, one folder each; they translate errors into the contexts' terms."""
