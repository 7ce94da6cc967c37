"""Calls of the application's code: their outcomes, threads, middleware, resources and context variables."""
