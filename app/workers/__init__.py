"""The processes of Julia that the operators know by name."""
