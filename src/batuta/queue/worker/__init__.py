"""The loops that a process runs for a queue: the worker with its runners and its settler, and the rescuer."""
