"""The HTTP surface of Julia, one module per subject."""
