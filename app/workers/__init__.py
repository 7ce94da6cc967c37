"""Modules that start Julia's processes: ``python -m app.workers.scheduler``, for example."""
