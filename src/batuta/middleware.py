"""Middleware: functions that run around enqueueing and executing work."""

from batuta.kernel.calls.middleware import Attempt, Middleware, Proceed
from batuta.tasks.enqueueing import EnqueueMiddleware, NewCalls

__all__ = ["Attempt", "EnqueueMiddleware", "Middleware", "NewCalls", "Proceed"]
