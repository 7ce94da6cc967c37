"""Health: checks, findings and the score computed from them, probes, and an application's health pages."""

from batuta.health.aggregator import HealthPage, Part, Probe, State
from batuta.health.checks import Now
from batuta.health.finding import (
    CIRCUITS,
    CONNECTIVITY,
    JOBS_AND_WORKERS,
    QUEUES,
    Check,
    Finding,
    Report,
    Section,
    Severity,
    merge_reports,
)
from batuta.health.queues import Pulse, QueueLimits
from batuta.health.workers import FAILING_AFTER, FORGOTTEN_AFTER, Beats, Signs

__all__ = [
    "CIRCUITS",
    "CONNECTIVITY",
    "FAILING_AFTER",
    "FORGOTTEN_AFTER",
    "JOBS_AND_WORKERS",
    "QUEUES",
    "Beats",
    "Check",
    "Finding",
    "HealthPage",
    "Now",
    "Part",
    "Probe",
    "Pulse",
    "QueueLimits",
    "Report",
    "Section",
    "Severity",
    "Signs",
    "State",
    "merge_reports",
]
