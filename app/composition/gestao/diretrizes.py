"""Builds the directives: the source of the documents, the service, its jobs and its health check."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.contexts.diretrizes.jobs import DirectiveJobs
from app.contexts.diretrizes.service import Diretrizes
from app.integrations.documents.folder import MarkdownFolder
from app.settings import Settings
from batuta import Batuta
from batuta.jobs import JobHandler


@dataclass(frozen=True, slots=True, kw_only=True)
class Directives:
    diretrizes: Diretrizes
    jobs: DirectiveJobs

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return self.jobs.handlers


def add_directives(work: Batuta, settings: Settings) -> Directives:
    diretrizes = Diretrizes(work.database, work.ids, work.clock)
    work.health.add(diretrizes.check)
    source = MarkdownFolder(Path(settings.briefing_dir))
    return Directives(diretrizes=diretrizes, jobs=DirectiveJobs(diretrizes, source, settings.briefing_dir))
