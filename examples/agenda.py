from batuta import Batuta, Done, Run, Skipped

work = Batuta("sqlite:///agenda.db", timezone="America/Sao_Paulo")


@work.job("*/5 8-19 * * 1-5", category="report")
async def resumo(run: Run) -> Done | Skipped:
    if "vazio" in run.params:
        return Skipped("nothing to report")
    print("resumo", run.execution.id)
    return Done(items=3)


@work.job("0 3 * * *", category="upkeep", catch_up="latest", timeout=60)
def arrumar() -> int:
    return 12  # a plain number is how many items it worked on; a plain `def` runs in a thread


work.http_job("avisar", "0 9 * * 1", "http://127.0.0.1:8000/jobs/heartbeat", category="report")
