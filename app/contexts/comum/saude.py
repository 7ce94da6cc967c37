"""Build a health finding from the number of rows that indicate a problem."""

from datetime import datetime

from batuta.health import Finding, Report, Severity


def report_count(
    severity: Severity, source: str, what: str, count: int, since: datetime | None = None, *, lost: int
) -> Report:
    """Report ``count`` rows as the finding ``{source}.{what}``, which lowers the health score by ``lost`` points. If
    ``count`` is zero, report no finding. ``since`` is the time of the oldest row. Operators read the text with the key
    ``finding.{source}_{what}``.
    """
    if not count:
        return Report()
    finding = Finding(
        severity=severity,
        source=source,
        cause=f"{source}.{what}",
        says=f"{source}_{what}",
        facts={"count": count},
        value=count,
        threshold=0,
        since=since,
    )
    return Report(findings=(finding,), lost=lost)
