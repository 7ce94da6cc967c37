"""Redis, which is used only if tasks run on ARQ."""
