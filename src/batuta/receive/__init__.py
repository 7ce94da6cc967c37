"""The receiving side of a job: endpoints, idempotent calls and their replies."""
