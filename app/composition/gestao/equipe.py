"""Builds the notices to the team: their destinations, their queue and their health check."""

from dataclasses import dataclass

from app.composition.gestao.relatorios import TEXTS
from app.composition.mensagens import Messages
from app.contexts.equipe.avisos import AVISOS, Avisos, Canal
from app.integrations.reports.webhooks import Poster
from app.integrations.team.notices import JsonNotices, SlackNotices
from app.settings import Settings
from batuta import Batuta
from batuta.extension import Texts

NOTICES_AT_A_TIME = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    avisos: Avisos


def add_team(work: Batuta, settings: Settings, messages: Messages) -> Team:
    """Register the notices to the team. SLACK_WEBHOOK_URL and ALERT_WEBHOOK_URL are their destinations."""
    avisos = Avisos(work.database, destinations(work, settings), work.clock)
    handler = avisos.handler()
    avisos.fila = work.add_queue(AVISOS, lambda lease: handler, concurrency=NOTICES_AT_A_TIME)
    messages.conversas.chamados.ao_chamar(avisos)
    work.health.add(avisos.check)
    return Team(avisos=avisos)


def destinations(work: Batuta, settings: Settings) -> list[Canal]:
    slack, webhook, found = settings.slack_webhook_url, settings.alert_webhook_url, list[Canal]()
    page = f"{settings.public_address}/painel"
    if slack is not None:
        texts = Texts(settings.batuta_lang, [TEXTS])
        found.append(SlackNotices(Poster(slack.get_secret_value(), work.clock), texts, page))
    if webhook is not None:
        found.append(JsonNotices(Poster(webhook.get_secret_value(), work.clock), page))
    return found
