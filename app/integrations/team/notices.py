"""Send a notice to Slack or to a webhook. A notice has the reason and a link, and no personal data."""

from app.contexts.comum.entrega import Entrega
from app.contexts.equipe.avisos import BRIEFING, Aviso
from app.integrations.reports.webhooks import Poster
from batuta.extension import Texts
from batuta.kernel import dataclass


@dataclass(frozen=True, slots=True)
class SlackNotices:
    """Sends the notice as text to a Slack incoming webhook, which cannot recognise a repeated notice. ``pagina`` is the
    address of the page to which the notice links.
    """

    poster: Poster
    texts: Texts
    pagina: str
    nome: str = "slack"
    repete: bool = False

    async def avisar(self, aviso: Aviso) -> Entrega:
        return await self.poster.post({"text": self.texto(aviso)})

    def texto(self, aviso: Aviso) -> str:
        """Return the notice's text in the operators' language."""
        if aviso.motivo == BRIEFING:
            return self.texts("aviso.briefing", detalhe=aviso.detalhe or "-", pagina=self.pagina)
        reason = self.texts.get(f"estado.pendencia.{aviso.motivo}", self.texts("aviso.outro_motivo"))
        key = "aviso.mensagem" if aviso.conversa_id is None else "aviso.conversa"
        return self.texts(key, motivo=reason, pagina=self.pagina, id=aviso.conversa_id or "")


@dataclass(frozen=True, slots=True)
class JsonNotices:
    """Sends the notice as a JSON object with its id, so that the receiver recognises a repeated notice."""

    poster: Poster
    pagina: str
    nome: str = "webhook"
    repete: bool = True

    async def avisar(self, aviso: Aviso) -> Entrega:
        return await self.poster.post(
            {
                "kind": BRIEFING if aviso.motivo == BRIEFING else "handoff",
                "detalhe": aviso.detalhe,
                "id": aviso.id,
                "motivo": aviso.motivo,
                "conversa": aviso.conversa_id,
                "desde": aviso.desde.isoformat(),
                "pagina": self.pagina,
            }
        )
