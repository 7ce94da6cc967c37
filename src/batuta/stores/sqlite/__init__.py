"""One file, one writing thread, readers beside it."""
