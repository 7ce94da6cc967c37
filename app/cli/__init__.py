"""Julia's commands for ``batuta``. A command's module is imported only when an operator runs that command."""

from collections.abc import Mapping
from typing import Final

COMMANDS: Final[Mapping[str, str]] = {
    "chips": "app.cli.chips:chips",
    "chip": "app.cli.chips:chip",
    "configurar-webhook": "app.cli.mensagens:configurar_webhook",
    "duvidas": "app.cli.mensagens:duvidas",
    "decidir": "app.cli.mensagens:decidir",
    "optout": "app.cli.mensagens:optout",
    "remover": "app.cli.mensagens:remover",
    "campanhas": "app.cli.campanhas:COMMANDS",
    "agendamentos": "app.cli.agendamentos:COMMANDS",
    "grupos": "app.cli.grupos:COMMANDS",
    "vagas": "app.cli.vagas:COMMANDS",
    "handoffs": "app.cli.handoffs:COMMANDS",
    "medicos": "app.cli.medicos:COMMANDS",
    "conversas": "app.cli.conversas:COMMANDS",
    "followups": "app.cli.followups:COMMANDS",
    "relatorios": "app.cli.gestao.relatorios:COMMANDS",
    "qualidade": "app.cli.gestao.qualidade:COMMANDS",
    "gatilhos": "app.cli.gestao.gatilhos:COMMANDS",
    "diretrizes": "app.cli.gestao.diretrizes:COMMANDS",
    "lgpd": "app.cli.lgpd:COMMANDS",
    "telegram": "app.cli.telegram:COMMANDS",
}
