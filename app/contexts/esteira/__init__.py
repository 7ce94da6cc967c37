"""The pipeline that turns group messages into vacancies in six stages, with its jobs, health and metrics."""
