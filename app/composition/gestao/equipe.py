"""Build the services that notify the team and copy conversations to the help desk."""

from app.composition.conversas import Messages
from app.composition.gestao.relatorios import TEXTS
from app.contexts.conversas.escrita import EscritaDaEquipe
from app.contexts.equipe.avisos import AVISOS, Avisos, Canal
from app.contexts.equipe.central import CIRCUIT, Central
from app.contexts.equipe.espelho import FILA, Espelho
from app.contexts.equipe.recados import Recados
from app.contexts.mensagens.saidas import Saidas
from app.contexts.mensagens.tipos import Tipo
from app.integrations.chatwoot.client import ChatwootClient
from app.integrations.reports.webhooks import Poster
from app.integrations.team.notices import JsonNotices, SlackNotices
from app.settings import Settings
from batuta import Batuta
from batuta.extension import Texts
from batuta.kernel import dataclass

NOTICES_AT_A_TIME = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    escrita: EscritaDaEquipe
    avisos: Avisos
    espelho: Espelho | None  # None if no help desk is configured
    recados: Recados | None


def add_team(work: Batuta, settings: Settings, messages: Messages, saidas: Saidas) -> Team:
    """Register the service that sends notices to the team through SLACK_WEBHOOK_URL and ALERT_WEBHOOK_URL."""
    avisos = Avisos(work.database, destinations(work, settings), work.clock)
    handler = avisos.handler()
    avisos.fila = work.add_queue(AVISOS, lambda lease: handler, concurrency=NOTICES_AT_A_TIME)
    messages.conversas.chamados.ao_chamar(avisos)
    work.health.add(avisos.check)
    escrita = EscritaDaEquipe(work.database, messages.atendimento, saidas, work.ids, work.clock)
    central = help_desk(work, settings)
    if central is None:
        return Team(escrita=escrita, avisos=avisos, espelho=None, recados=None)
    espelho = add_mirror(work, messages, central)
    conversas, queue = messages.conversas, saidas
    recados = Recados(work.database.dialect, conversas, messages.atendimento, messages.estagios, queue)
    return Team(escrita=escrita, avisos=avisos, espelho=espelho, recados=recados)


def help_desk(work: Batuta, settings: Settings) -> ChatwootClient | None:
    """Return the help desk client, or None if no help desk is configured."""
    token, account, inbox = settings.chatwoot_token, settings.chatwoot_account_id, settings.chatwoot_inbox_id
    if settings.chatwoot_url is None or token is None or account is None or inbox is None:
        return None
    client = ChatwootClient(settings.chatwoot_url, token.get_secret_value(), account, inbox, work.clock)
    work.closers.append(client.close)
    return client


def add_mirror(work: Batuta, messages: Messages, central: Central) -> Espelho:
    """Register the service that copies conversations to the help desk, with its circuit breaker, queue and health
    check.
    """
    work.circuit(CIRCUIT, failures=5, reset=60, longest_reset=600, probe_within=60)
    espelho = Espelho(work.database, central, work.circuits, work.clock)
    handler = espelho.handler()
    espelho.fila = work.add_queue(FILA, lambda lease: handler, concurrency=NOTICES_AT_A_TIME)
    conversas = messages.conversas
    conversas.chamados.ao_chamar(espelho)
    conversas.chamados.ao_mudar(espelho)
    conversas.ao_receber(espelho)
    messages.ouvintes.registrar([Tipo.MANUAL], espelho)
    work.health.add(espelho.check)
    return espelho


def destinations(work: Batuta, settings: Settings) -> list[Canal]:
    slack, webhook, found = settings.slack_webhook_url, settings.alert_webhook_url, list[Canal]()
    page = f"{settings.public_address}/painel"
    if slack is not None:
        texts = Texts(settings.batuta_lang, [TEXTS])
        found.append(SlackNotices(Poster(slack.get_secret_value(), work.clock), texts, page))
    if webhook is not None:
        found.append(JsonNotices(Poster(webhook.get_secret_value(), work.clock), page))
    return found
