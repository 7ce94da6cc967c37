"""Routes for managers, one module per subject."""
