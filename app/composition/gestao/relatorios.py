"""Builds the report services: the figures, destinations, jobs and health check."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from app.contexts.relatorios.jobs import ReportJobs
from app.contexts.relatorios.service import Destino, Relatorios
from app.integrations.reports.webhooks import JsonWebhook, Poster, SlackChannel
from app.settings import Settings
from batuta import Batuta
from batuta.extension import Texts
from batuta.jobs import JobHandler
from batuta.kernel import dataclass

TEXTS: Final = Path(__file__).parents[2] / "texts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    relatorios: Relatorios
    jobs: ReportJobs

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return self.jobs.handlers


def add_reports(work: Batuta, settings: Settings) -> Reports:
    """Register the report services. SLACK_WEBHOOK_URL and ALERT_WEBHOOK_URL receive the reports. If neither is set,
    reports are only stored.
    """
    relatorios = Relatorios(work.database, destinations(work, settings), work.ids, work.clock)
    work.health.add(relatorios.check)
    return Reports(relatorios=relatorios, jobs=ReportJobs(relatorios, work.zone, work.clock))


def destinations(work: Batuta, settings: Settings) -> list[Destino]:
    slack, webhook, found = settings.slack_webhook_url, settings.alert_webhook_url, list[Destino]()
    if slack is not None:
        texts = Texts(settings.batuta_lang, [TEXTS])
        found.append(SlackChannel(Poster(slack.get_secret_value(), work.clock), texts, work.zone))
    if webhook is not None:
        found.append(JsonWebhook(Poster(webhook.get_secret_value(), work.clock), work.zone))
    return found
