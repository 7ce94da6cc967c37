"""Example of scheduled jobs: some run in this process, and one is called over HTTP. Start them with `batuta --app
examples.reports:work scheduler`.
"""

from batuta import Batuta, Done, Run, Skipped

work = Batuta("sqlite:///reports.db", timezone="America/Sao_Paulo")


@work.job("*/5 8-19 * * 1-5", category="report")
async def summarise(run: Run) -> Done | Skipped:
    if "empty" in run.params:
        return Skipped("nothing to report")
    print("summary", run.execution.id)
    return Done(items=3)


@work.job("0 3 * * *", category="upkeep", catch_up="latest", timeout=60)
def clean_up() -> int:
    return 12  # a number is returned as the number of items; a `def` without async runs in a thread


work.http_job("notify", "0 9 * * 1", "http://127.0.0.1:8000/jobs/heartbeat", category="report")
