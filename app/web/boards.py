"""The boards on the first page: messages, conversations that people handle, groups, vacancies, appointments and
reports.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from app.composition.envio import hours, is_demonstration
from app.composition.julia import Julia
from app.contexts.agendamentos.model import StatusDaLeitura as StatusDaLeitura
from app.contexts.agendamentos.relato import arquivo_coberto
from app.contexts.campanhas.model import StatusDaCampanha, ninguem_recebeu
from app.contexts.envio.saude import LIMITS, MedidasDaFila
from app.contexts.mensagens.limites import Limites
from app.contexts.relatorios.service import Relatorio
from app.contexts.vagas.api import StatusDaVaga
from batuta.extension import Board, Course, Figure, Tone
from batuta.sql import Row

MOST_CAMPAIGNS: Final = 5
COLUMNS: Final = ("campanha", "situacao", "enviadas", "entregues", "respostas")
TONES: Final[Mapping[StatusDaCampanha, Tone]] = {
    StatusDaCampanha.RASCUNHO: Tone.WAITING,
    StatusDaCampanha.AGENDADA: Tone.WAITING,
    StatusDaCampanha.ATIVA: Tone.RUNNING,
    StatusDaCampanha.PAUSADA: Tone.HELD,
    StatusDaCampanha.CONCLUIDA: Tone.OK,
    StatusDaCampanha.CANCELADA: Tone.WAITING,
}

MOST_IMPORTS: Final = 3
IMPORT_COLUMNS: Final = ("arquivo", "situacao", "lidas", "novas", "com_erro")
IMPORT_TONES: Final[Mapping[str, Tone]] = {
    "recebendo": Tone.RUNNING,
    "em_andamento": Tone.RUNNING,
    "concluida": Tone.OK,
    "falhou": Tone.FAILING,
}

MOST_REPORTS: Final = 5
REPORT_COLUMNS: Final = ("relatorio", "situacao", "responderam", "enviadas", "recebidas", "reservados")
REPORT_TONES: Final[Mapping[str, Tone]] = {
    "guardado": Tone.WAITING,
    "enviado": Tone.OK,
    "enviando": Tone.RUNNING,
    "recusado": Tone.DEGRADED,
    "incerto": Tone.DEGRADED,
}
# Number of last characters of an import's id that are shown. The file's name is not shown, because it may name a
# patient.
SHOWN_ID = 8


async def sending_board(julia: Julia) -> Board:
    medidas, chips = await julia.sending.health.medidas(), (await julia.chips.health.document())["summary"]
    limites = julia.sending.limites
    used = await julia.work.rates.count_used([limites.hora, limites.dia])
    doubts = await julia.messages.duvidas.quantas()
    pending = await julia.messages.pendencias.quantas()
    optouts = Figure(says="quadro.optouts_provaveis", value=doubts, tone=_needs_person(doubts), to="/conversas/duvidas")
    answers = Figure(says="quadro.pendencias", value=pending, tone=_needs_person(pending), to="/conversas")
    return Board(
        says="quadro.titulo",
        note=_sending_note(julia),
        to="/campanhas",
        figures=[
            *_queue(medidas),
            *_send_figures(used, limites),
            *_unknown_figures(medidas),
            answers,
            optouts,
            _chips(chips),
        ],
        columns=[f"quadro.coluna.{each}" for each in COLUMNS],
        courses=[_course(row) for row in await julia.campaigns.campanhas.todas(limit=MOST_CAMPAIGNS)],
    )


async def telegram_board(julia: Julia) -> Board:
    contas = await julia.telegram.health.contas()
    now = julia.work.clock.now()
    waiting, problems = sum(each.na_fila for each in contas), sum(each.problem(now) is not None for each in contas)
    return Board(
        says="quadro.telegram.titulo",
        to="/telegram",
        figures=[
            Figure(says="quadro.telegram.conectadas", value=sum(each.conectada for each in contas), of=len(contas)),
            Figure(says="quadro.telegram.na_fila", value=waiting),
            Figure(says="quadro.telegram.em_duvida", value=sum(each.em_duvida for each in contas)),
            Figure(says="quadro.telegram.com_problema", value=problems, tone=_needs_person(problems)),
        ],
    )


async def people_board(julia: Julia) -> Board:
    counts, notices = await julia.messages.atendimento.contagem(), await julia.team.avisos.nao_entregues()
    without, late = int(counts["sem_responsavel"]), int(notices["items"])
    return Board(
        says="quadro.atendimento.titulo",
        to="/conversas",
        figures=[
            Figure(
                says="quadro.atendimento.sem_responsavel", value=without, tone=_needs_person(without), to="/conversas"
            ),
            Figure(says="quadro.atendimento.com_pessoa", value=int(counts["com_pessoa"]), to="/conversas?fila=pessoa"),
            Figure(says="quadro.atendimento.avisos", value=late, tone=_tone_of(late)),
        ],
    )


async def groups_board(julia: Julia) -> Board:
    today, waiting = await julia.groups.recebidas.hoje(), await julia.groups.revisao.quantas()
    return Board(
        says="quadro.grupos.titulo",
        to="/revisao",
        figures=[
            Figure(says="quadro.grupos.descartadas", value=today.descartadas, of=today.recebidas),
            Figure(says="quadro.grupos.para_revisao", value=waiting, tone=_needs_person(waiting), to="/revisao"),
            Figure(says="quadro.grupos.avisos", value=today.avisos, tone=_needs_person(today.avisos)),
            Figure(says="quadro.grupos.abertas", value=await julia.groups.abertas.quantas(), tone=Tone.OK),
        ],
    )


async def vacancies_board(julia: Julia) -> Board:
    counts = await julia.shifts.plantoes.contagem()
    tones = {
        StatusDaVaga.ABERTA: Tone.RUNNING,
        StatusDaVaga.ANUNCIADA: Tone.RUNNING,
        StatusDaVaga.AGUARDANDO_CONFIRMACAO: _moves(counts.get(StatusDaVaga.AGUARDANDO_CONFIRMACAO, 0)),
        StatusDaVaga.RESERVADA: Tone.OK,
        StatusDaVaga.PENDENTE_CONFIRMACAO: _needs_person(counts.get(StatusDaVaga.PENDENTE_CONFIRMACAO, 0)),
        StatusDaVaga.REALIZADA: Tone.OK,
        StatusDaVaga.CANCELADA: Tone.WAITING,
    }
    return Board(
        says="quadro.vagas.titulo",
        to="/vagas",
        figures=[
            Figure(
                says=f"quadro.vagas.{status}", value=counts.get(status, 0), tone=tone, to=f"/vagas?situacao={status}"
            )
            for status, tone in tones.items()
        ],
    )


async def appointments_board(julia: Julia) -> Board:
    counts = await julia.appointments.agendamentos.contagem()
    tones = {
        StatusDaLeitura.PENDING: _moves(counts[StatusDaLeitura.PENDING]),
        StatusDaLeitura.PROCESSING: _moves(counts[StatusDaLeitura.PROCESSING]),
        StatusDaLeitura.COMPLETED: Tone.OK,
        StatusDaLeitura.FAILED: _tone_of(counts[StatusDaLeitura.FAILED]),
    }
    return Board(
        says="quadro.agendamentos.titulo",
        to="/agendamentos",
        figures=[
            Figure(says=f"quadro.agendamentos.{status}", value=counts[status], tone=tone)
            for status, tone in tones.items()
        ],
        columns=[f"quadro.agendamentos.coluna_{each}" for each in IMPORT_COLUMNS],
        courses=[_import(row) for row in await julia.appointments.importacao.recentes(MOST_IMPORTS)],
    )


async def reports_board(julia: Julia) -> Board:
    undelivered = int((await julia.reports.relatorios.nao_entregues())["items"])
    return Board(
        says="quadro.relatorios.titulo",
        figures=[Figure(says="quadro.relatorios.nao_entregues", value=undelivered, tone=_needs_person(undelivered))],
        columns=[f"quadro.relatorios.coluna_{each}" for each in REPORT_COLUMNS],
        courses=[_report(julia, each) for each in await julia.reports.relatorios.listar(limite=MOST_REPORTS)],
    )


def _report(julia: Julia, relatorio: Relatorio) -> Course:
    figures, states = relatorio.metricas["periodo"], set(relatorio.envios.values())
    state = max(states, key=list(REPORT_TONES).index, default="guardado")
    return Course(
        label=f"relatorio.nome.{relatorio.periodo.tipo}",
        name=f"{relatorio.periodo.inicio.astimezone(julia.work.zone):%d/%m}",
        state=f"estado.relatorio.{state}",
        tone=REPORT_TONES[state],
        done=figures["medicos_que_responderam"],
        of=figures["medicos_contatados"],
        cells=[figures[name] for name in ("enviadas", "recebidas", "plantoes_reservados")],
    )


def _sending_note(julia: Julia) -> str:
    """Return the key of the text that explains which messages Julia sends at this moment, in a demonstration or outside
    the sending hours. Return an empty string during the sending hours.
    """
    if is_demonstration(julia.settings):
        return "quadro.demonstracao"
    is_open = hours(julia.settings).is_open(julia.work.clock.now(), julia.work.zone)
    return "" if is_open else "quadro.fora_do_horario"


def _queue(medidas: MedidasDaFila) -> Sequence[Figure]:
    moves = Tone.RUNNING if medidas.pendentes else Tone.WAITING
    is_old = medidas.idade > LIMITS.age_warning
    return (
        Figure(says="quadro.na_fila", value=medidas.pendentes, tone=Tone.HELD if medidas.pausada else moves),
        Figure(says="quadro.agendadas", value=medidas.agendadas),
        Figure(
            says="quadro.mais_antiga",
            value=medidas.idade if medidas.mais_antiga else timedelta(0),
            tone=Tone.DEGRADED if is_old and not medidas.pausada else Tone.WAITING,
        ),
    )


def _send_figures(used: Mapping[str, int], limites: Limites) -> Sequence[Figure]:
    return tuple(
        Figure(says=says, value=used[limit.name], of=limit.most, tone=Tone.OK)
        for says, limit in (("quadro.na_hora", limites.hora), ("quadro.no_dia", limites.dia))
    )


def _unknown_figures(medidas: MedidasDaFila) -> Sequence[Figure]:
    counts = {"em_duvida": medidas.em_duvida, "para_decisao": medidas.para_decisao}
    return [
        Figure(says=f"quadro.{name}", value=count, tone=_tone_of(count), to="/conversas/duvidas")
        for name, count in counts.items()
    ]


def _chips(summary: Mapping[str, int]) -> Figure:
    able, total = summary["disponiveis"], summary["total"] + summary["banidos"]
    tone = Tone.OK if able == total else Tone.DEGRADED if able else Tone.FAILING
    return Figure(says="quadro.chips", value=able, of=total, tone=tone if total else Tone.WAITING, to="/chips")


def _course(row: Row) -> Course:
    status = StatusDaCampanha(row["status"])
    is_empty = ninguem_recebeu(status, row["total_destinatarios"])
    return Course(
        name=row["nome_template"] or str(row["id"]),
        state="estado.campanha.ninguem" if is_empty else f"estado.campanha.{status}",
        tone=Tone.DEGRADED if row["erro"] or is_empty else TONES[status],
        done=row["enviados"],
        of=row["total_destinatarios"],
        cells=[row["entregues"], row["respondidos"]],
        to=f"/campanhas/{row['id']}",
    )


def _import(row: Row) -> Course:
    return Course(
        name=f"{arquivo_coberto(row['arquivo'])} {str(row['id'])[-SHOWN_ID:]}",
        state=f"estado.importacao.{row['status']}",
        tone=IMPORT_TONES[row["status"]],
        done=row["valid_rows"] + row["invalid_rows"] + row["skipped"],
        of=row["total_rows"],
        cells=[row["imported"], row["invalid_rows"]],
        to=f"/agendamentos/{row['id']}",
    )


def _moves(count: int) -> Tone:
    return Tone.RUNNING if count else Tone.WAITING


def _needs_person(count: int) -> Tone:
    return Tone.HELD if count else Tone.WAITING


def _tone_of(count: int) -> Tone:
    return Tone.DEGRADED if count else Tone.WAITING
