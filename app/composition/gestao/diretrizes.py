"""Build the services for directives: the document source, the service that applies the documents, the jobs and the
health check.
"""

from collections.abc import Mapping
from pathlib import Path

from app.contexts.diretrizes.jobs import DirectiveJobs, Urgencias
from app.contexts.diretrizes.service import AoAplicar, Diretrizes, Fonte
from app.integrations.documents.folder import MarkdownFolder
from app.integrations.documents.google import GoogleDocs
from app.integrations.documents.service_account import ServiceAccount, UnusableKey
from app.settings import Settings
from batuta import Batuta
from batuta.errors import InvalidSetting
from batuta.jobs import JobHandler
from batuta.kernel import dataclass
from batuta.reasons import define

NOT_A_KEY = define(
    "google_sem_chave", "expected the JSON key of a service account, with client_email, private_key and token_uri"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Directives:
    diretrizes: Diretrizes
    jobs: DirectiveJobs

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return self.jobs.handlers


def add_directives(work: Batuta, settings: Settings, urgencias: Urgencias, avisos: AoAplicar) -> Directives:
    """Register the services for directives. ``urgencias`` marks the vacancies that the briefing calls urgent.
    ``avisos`` is called for each new version of a directive.
    """
    diretrizes = Diretrizes(work.database, work.ids, work.clock)
    diretrizes.ao_aplicar(avisos)
    work.health.add(diretrizes.check)
    source = documents(work, settings)
    where = settings.briefing_dir if isinstance(source, MarkdownFolder) else "Google Docs"
    return Directives(diretrizes=diretrizes, jobs=DirectiveJobs(diretrizes, source, where, urgencias))


def documents(work: Batuta, settings: Settings) -> Fonte:
    """Return the source of the briefing documents: Google Docs if its credentials are set, otherwise a folder of
    Markdown files.
    """
    if settings.google_docs_credentials is None:
        return MarkdownFolder(Path(settings.briefing_dir))
    try:
        account = ServiceAccount.read(settings.google_docs_credentials.get_secret_value())
    except UnusableKey:
        raise InvalidSetting(name="GOOGLE_DOCS_CREDENTIALS", why=NOT_A_KEY()) from None
    briefing, templates = settings.google_docs_briefing_id, settings.google_docs_templates_id
    return GoogleDocs(account, briefing, templates, work.clock, settings.google_api_url)
