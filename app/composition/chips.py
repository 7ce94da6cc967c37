"""Build the chip services: the pool of chips, its health, and the jobs that synchronise it with the gateway."""

from collections.abc import Mapping

from app.composition.conversas import Messages
from app.contexts.chips.jobs import ChipJobs
from app.contexts.chips.pool import Pool
from app.contexts.chips.saude import ChipHealth
from app.contexts.chips.service import Chips
from app.contexts.comum.disjuntor import Disjuntor
from app.contexts.comum.whatsapp import WhatsApp
from app.contexts.medicos.validacao import Validacao
from batuta import Batuta
from batuta.jobs import JobHandler
from batuta.kernel import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipServices:
    chips: Chips
    pool: Pool
    health: ChipHealth
    jobs: ChipJobs
    validacao: Validacao

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {
            "sincronizar-chips": self.jobs.sincronizar_chips,
            "verificar-whatsapp": self.jobs.verificar_whatsapp,
            "atualizar-trust-scores": self.jobs.atualizar_trust_scores,
            "snapshot-chips-diario": self.jobs.snapshot_chips_diario,
            "resetar-contadores-chips": self.jobs.resetar_contadores_chips,
            "validar-telefones": self.validacao.validar_telefones,
        }


def build_chips(work: Batuta, messages: Messages, line: WhatsApp | None) -> ChipServices:
    """Build the chip services. ``line`` is the WhatsApp gateway's client, or None if no gateway is configured."""
    dialect, ids, zone, clock = work.database.dialect, work.ids, work.zone, work.clock
    chips, pool = Chips(dialect, ids, messages.eventos), Pool(dialect, ids)
    return ChipServices(
        chips=chips,
        pool=pool,
        health=ChipHealth(work.database, pool, work.circuits, zone, clock, has_gateway=line is not None),
        jobs=ChipJobs(work.database, line, Disjuntor(work.circuits, clock), pool, chips, messages.eventos, zone, clock),
        validacao=Validacao(work.database, line, work.circuits, work.switches, zone, clock),
    )


def add_chips(work: Batuta, chips: ChipServices) -> None:
    """Register the chips' health check."""
    work.health.add(chips.health.check())
    work.health.add_page(chips.health.page())
