"""The methods with which an application declares its jobs, tasks, queues, schedules and hooks."""
