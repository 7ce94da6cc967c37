"""Decide whether a message may be sent now.

The decision is made in the transaction that stores the intent to send, so that it is still valid when the message is
sent.

The rules are checked in this order, and the first rule that applies determines the result:

    unknown type ▸ invalid number or text ▸ no gateway configured ▸ allowlist outside production ▸
    cancellation requested ▸ its vacancy is taken ▸ its conversation changed ▸ its campaign is paused or ended ▸
    an earlier message in the same chat is not sent yet ▸ sending is paused ▸ same text sent ▸ opted out ▸
    a team member has the conversation ▸ too old ▸ trigger off ▸ probable opt-out ▸ quiet hours ▸ campaign windows ▸
    cooling off ▸ not before ▸ contact cap ▸ campaigns off ▸ safe mode ▸ another campaign lately

The result postpones a message that only has to wait, and blocks or cancels a message that can never be sent. Fewer
rules apply to an answer. An answer must name the inbound message that it answers, and must be sent within 30 minutes of
it. If the inbound message arrived outside the sending hours and is recorded in ``mensagens_fora_horario``, the answer
must be sent by noon on the next business day.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

from app.contexts.comum.telefone import chave, telefone_de
from app.contexts.comum.whatsapp import NO_LINE
from app.contexts.mensagens.desfecho import Desfecho
from app.contexts.mensagens.limites import HORARIO, TipoDeMensagem
from app.contexts.mensagens.tipos import TIPOS, Tipo
from batuta.guards import Hold
from batuta.jobs import Window
from batuta.kernel import dataclass
from batuta.reasons import define

# How long a message waits if this process has no gateway.
WITHOUT_LINE: Final = timedelta(minutes=1)
# A message counts as an answer if it is sent at most this long after the inbound message.
ANSWER_WITHIN: Final = timedelta(minutes=30)
# The reply to an overnight message is treated as an answer for this time after the sending hours begin, that is until
# noon.
MORNING: Final = timedelta(hours=4)
CONTACTS_IN_A_WEEK: Final = 5
BETWEEN_CAMPAIGNS: Final = timedelta(days=3)
# Age at which a message is too old to send. Only sending hours count, so a night or a weekend does not age a message.
TIMELY: Final = timedelta(hours=24)
# How long a held message waits before it is checked again. A new pause takes effect immediately.
ASK_AGAIN: Final = timedelta(seconds=15)
# Interval at which a message that is waiting for an operator is checked again. It is waiting for a decision about a
# probable opt-out, for its trigger's switch, or for the end of a person's work on the conversation.
ASK_ABOUT_DECISION: Final = timedelta(minutes=10)
# How long a message waits for an earlier one in the same chat before it is checked again.
IN_TURN: Final = timedelta(seconds=1)
# The request to the gateway begins at most this long after the decision. A message is therefore sent only if the
# sending hours do not end within this time.
LEAVES_WITHIN: Final = timedelta(seconds=2)
# Type of a message that a team member wrote.
BY_PERSON: Final = Tipo.MANUAL.value
# The longest text that WhatsApp accepts in one message.
LONGEST: Final = 65_536
# The longest text that Telegram accepts in one message.
LONGEST_ON_TELEGRAM: Final = 4_096
UNKNOWN_TYPE = define("tipo_desconhecido", "no rule exists for messages of type {tipo}")
INVALID_NUMBER = define("numero_invalido", "the number is not a valid phone number")
INVALID_TEXT = define("texto_invalido", "the text is empty, or longer than {longest} characters")
NOT_ALLOWLISTED = define("fora_da_allowlist", "outside production, only numbers in SEND_ALLOWLIST receive messages")
STOP_REQUESTED = define("parada_pedida", "an operator cancelled the message")
NO_SUBJECT = define("sem_assunto", "the reason for the message no longer applies")
VACANCY_TAKEN = define("vaga_ocupada", "the offered vacancy is no longer open")
FOLLOWUP_SUPERSEDED = define(
    "followup_superado", "the conversation changed, or its follow-ups were paused, after the follow-up was queued"
)
BEHIND_ANOTHER = define("atras_de_outra", "an earlier message in the same chat must be sent first")
CAMPAIGN_PAUSED = define("campanha_pausada", "the campaign is paused")
SAME_TEXT_SENT = define("texto_repetido", "the same text was sent to this doctor shortly before")
OPTED_OUT = define("opt_out", "the doctor asked to receive no messages")
PROBABLE_OPT_OUT = define(
    "provavel_opt_out", "the doctor probably asked to receive no messages; an operator must decide"
)
WITH_PERSON = define("com_pessoa", "a team member has taken over the conversation")
TRIGGER_OFF = define("gatilho_desligado", "switch {switch} is holding back messages from this automatic trigger")
EXPIRED = define("vencida", "the message waited too long to be useful")
QUIET_HOURS = define("fora_do_horario", "outside the sending hours")
OUTSIDE_WINDOW = define("fora_da_janela", "outside the campaign's window")
COOLING_OFF = define("em_descanso", "the doctor is in a rest period")
NEXT_CONTACT_LATER = define("contato_marcado", "the next contact is scheduled for later")
CONTACT_CAP = define("contatos_na_semana", "the limit is {count} messages in seven days")
OTHER_CAMPAIGN = define("outra_campanha", "another campaign reached the doctor in the last three days")
SAME_WORDS: Final = {
    TipoDeMensagem.CAMPANHA: timedelta(minutes=60),
    TipoDeMensagem.FOLLOWUP: timedelta(minutes=60),
    TipoDeMensagem.PROSPECCAO: timedelta(minutes=120),
    TipoDeMensagem.RESPOSTA: timedelta(minutes=5),
    TipoDeMensagem.SISTEMA: timedelta(minutes=5),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Medico:
    opted_out: bool = False
    # one of the doctor's texts was read as a probable opt-out, and no operator has decided about it yet
    opt_out_in_doubt: bool = False
    is_cooling_off: bool = False
    cooling_off_until: datetime | None = None
    next_allowed_at: datetime | None = None
    last_inbound_at: datetime | None = None
    contacts_7d: int = 0
    other_campaign_at: datetime | None = None
    with_person: bool = False  # a team member is handling the conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class PedidoDeEnvio:
    """A message to send, with the facts that determine whether it may be sent now."""

    tipo: str
    telefone: str
    texto: str
    created_at: datetime
    due_at: datetime
    cancel_requested: bool = False
    is_obsolete: bool = False  # the fact that the message states has changed since it was queued
    vacancy_taken: bool = False  # the vacancy that the message offers is no longer open
    # The conversation has left the stage of the follow-up, has a newer message, or its follow-ups are paused.
    followup_superseded: bool = False
    behind_another: bool = False  # an earlier message in the same chat is due or being sent
    campaign_status: str | None = None  # None if the message belongs to no campaign
    same_words_at: datetime | None = None  # when the same text was sent, or may have been sent, to this doctor
    proves_inbound: bool = False  # the message names an existing inbound message of the doctor
    after_hours_at: datetime | None = None  # when the inbound message arrived, if that was outside the sending hours
    bypass: str | None = None  # the operator who permits the message, and the reason

    @property
    def is_campaign(self) -> bool:
        return self.campaign_status is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegrasDeEnvio:
    """The sending rules that apply to one message at this moment. ``window`` is the time window for its campaign type;
    None means all sending hours (``hours``).
    """

    zone: ZoneInfo
    is_production: bool
    is_simulated: bool
    longest: int = LONGEST  # the longest text that the channel accepts
    has_line: bool = True  # False if this process has no gateway configured; another process may have one
    allowlist: Collection[str] = ()
    paused: Hold | None = None  # the pause of all sending that an operator set, or None
    campaigns: Hold | None = None
    safe_mode: Hold | None = None
    trigger_off: str | None = (
        None  # the switch that holds the trigger of this message, or None without a trigger or with the switch on
    )
    hours: Window = HORARIO
    window: Window | None = None


@dataclass(frozen=True, slots=True)
class Libera:
    """Decision: the message may be sent.

    ``tipo`` is its effective type: an answer that names no inbound message is treated as a message that Julia
    initiates.
    """

    tipo: TipoDeMensagem
    bypass: str | None = None


@dataclass(frozen=True, slots=True)
class Adia:
    until: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Bloqueia:
    """Decision: the message will never be sent. ``cancels`` means that no rule forbids the message, but it is no longer
    needed.
    """

    desfecho: Desfecho
    reason: str
    cancels: bool = False


DecisaoDeEnvio: TypeAlias = Libera | Adia | Bloqueia


def decide(pedido: PedidoDeEnvio, medico: Medico, regras: RegrasDeEnvio, now: datetime) -> DecisaoDeEnvio:
    if pedido.tipo not in TIPOS and not pedido.is_campaign:
        return Bloqueia(Desfecho.FAILED_VALIDATION, UNKNOWN_TYPE(tipo=pedido.tipo))
    tipo = kind(pedido, medico, regras, now)
    objections = (
        _sendable(pedido, regras.longest),
        _line(regras, now),
        _receiver(pedido, regras),
        _check_request(pedido, medico, now),
        _postpone(regras.paused, now),
        _check_repetition(pedido, tipo, now),
        _check_optout(pedido, medico, tipo, now),
        _check_takeover(pedido, medico, tipo, now),
        *(_check_initiative(pedido, medico, regras, now) if tipo.por_iniciativa_nossa else ()),
    )
    first = next((each for each in objections if each is not None), None)
    return first or Libera(tipo, pedido.bypass if medico.opted_out and tipo is not TipoDeMensagem.RESPOSTA else None)


def kind(pedido: PedidoDeEnvio, medico: Medico, regras: RegrasDeEnvio, now: datetime) -> TipoDeMensagem:
    """Return a message's effective type: campaign, answer (while its inbound message is recent enough), or the type
    that ``TIPOS`` assigns.
    """
    if pedido.is_campaign:
        return TipoDeMensagem.CAMPANHA
    trato = TIPOS[pedido.tipo]
    if trato.responde and (_answers_live(pedido, medico, now) or _answers_night(pedido, regras, now)):
        return TipoDeMensagem.RESPOSTA
    return trato.como


def _answers_live(pedido: PedidoDeEnvio, medico: Medico, now: datetime) -> bool:
    wrote = medico.last_inbound_at
    return pedido.proves_inbound and wrote is not None and now - wrote <= ANSWER_WITHIN


def _answers_night(pedido: PedidoDeEnvio, regras: RegrasDeEnvio, now: datetime) -> bool:
    came = pedido.after_hours_at
    return pedido.proves_inbound and came is not None and now < regras.hours.next_open(came, regras.zone) + MORNING


def _sendable(pedido: PedidoDeEnvio, longest: int) -> Bloqueia | None:
    """Return why a message cannot be sent to this number or with this text, or None if it can. The check avoids a
    refusal by the gateway, which would lower the chip's trust.
    """
    if telefone_de(pedido.telefone) != pedido.telefone:
        return Bloqueia(Desfecho.FAILED_VALIDATION, INVALID_NUMBER())
    if not pedido.texto.strip() or len(pedido.texto) > longest:
        return Bloqueia(Desfecho.FAILED_VALIDATION, INVALID_TEXT(longest=longest))
    return None


def _line(regras: RegrasDeEnvio, now: datetime) -> Adia | None:
    return None if regras.has_line else Adia(now + WITHOUT_LINE, NO_LINE())


def _receiver(pedido: PedidoDeEnvio, regras: RegrasDeEnvio) -> Bloqueia | None:
    if regras.is_production or regras.is_simulated:
        return None
    if chave(pedido.telefone) in {chave(each) for each in regras.allowlist}:
        return None
    return Bloqueia(Desfecho.BLOCKED_DEV_ALLOWLIST, NOT_ALLOWLISTED())


def _check_request(pedido: PedidoDeEnvio, medico: Medico, now: datetime) -> Adia | Bloqueia | None:
    if pedido.cancel_requested and medico.opted_out:
        return Bloqueia(Desfecho.BLOCKED_OPTED_OUT, OPTED_OUT(), cancels=True)
    if pedido.cancel_requested or pedido.campaign_status == "cancelada":
        return Bloqueia(Desfecho.FAILED_EXPIRED, STOP_REQUESTED(), cancels=True)
    if pedido.is_obsolete:
        return Bloqueia(Desfecho.FAILED_EXPIRED, NO_SUBJECT(), cancels=True)
    if pedido.vacancy_taken:
        return Bloqueia(Desfecho.FAILED_EXPIRED, VACANCY_TAKEN(), cancels=True)
    if pedido.followup_superseded:
        return Bloqueia(Desfecho.FAILED_EXPIRED, FOLLOWUP_SUPERSEDED(), cancels=True)
    if pedido.campaign_status == "pausada":
        return Adia(now + ASK_AGAIN, CAMPAIGN_PAUSED())
    if pedido.behind_another:
        return Adia(now + IN_TURN, BEHIND_ANOTHER())
    return None


def _check_repetition(pedido: PedidoDeEnvio, tipo: TipoDeMensagem, now: datetime) -> Bloqueia | None:
    if pedido.same_words_at is None or now - pedido.same_words_at > SAME_WORDS[tipo]:
        return None
    return Bloqueia(Desfecho.DEDUPED, SAME_TEXT_SENT(), cancels=True)


def _check_optout(pedido: PedidoDeEnvio, medico: Medico, tipo: TipoDeMensagem, now: datetime) -> Bloqueia | None:
    """Block messages to a doctor who has opted out, unless the message answers the doctor within minutes. A later
    answer, such as the morning answer to a message that arrived at night, is blocked.
    """
    answers_day = tipo is TipoDeMensagem.RESPOSTA and pedido.after_hours_at is None
    is_live = answers_day and _answers_live(pedido, medico, now)
    if not medico.opted_out or is_live or pedido.bypass:
        return None
    return Bloqueia(Desfecho.BLOCKED_OPTED_OUT, OPTED_OUT())


def _check_takeover(pedido: PedidoDeEnvio, medico: Medico, tipo: TipoDeMensagem, now: datetime) -> Adia | None:
    """Hold back messages while a team member handles the conversation. Messages that people write and system notices
    are exempt.

    The person who hands the conversation back to Julia decides whether the held messages are sent or cancelled.
    """
    if not medico.with_person or tipo is TipoDeMensagem.SISTEMA or pedido.tipo == BY_PERSON:
        return None
    return Adia(now + ASK_ABOUT_DECISION, WITH_PERSON())


def _check_initiative(
    pedido: PedidoDeEnvio, medico: Medico, regras: RegrasDeEnvio, now: datetime
) -> tuple[Adia | Bloqueia | None, ...]:
    return (
        _timely(pedido, regras, now),
        None if regras.trigger_off is None else Adia(now + ASK_ABOUT_DECISION, TRIGGER_OFF(switch=regras.trigger_off)),
        _check_doubt(pedido, medico, now),
        _check_hours(regras, now),
        _cooling(pedido, medico, now),
        _postpone(regras.campaigns if pedido.is_campaign else None, now),
        _postpone(regras.safe_mode, now),
        _check_campaigns(pedido, medico, now),
    )


def _timely(pedido: PedidoDeEnvio, regras: RegrasDeEnvio, now: datetime) -> Bloqueia | None:
    if open_time(pedido.due_at, now, regras.hours, regras.zone) <= TIMELY:
        return None
    return Bloqueia(Desfecho.FAILED_EXPIRED, EXPIRED(), cancels=True)


def _check_doubt(pedido: PedidoDeEnvio, medico: Medico, now: datetime) -> Adia | None:
    """If the recipient has probably opted out, hold back Julia's messages until an operator decides whether it is an
    opt-out. Messages that a team member writes are sent.
    """
    if not medico.opt_out_in_doubt or pedido.bypass or pedido.tipo == BY_PERSON:
        return None
    return Adia(now + ASK_ABOUT_DECISION, PROBABLE_OPT_OUT())


def _check_hours(regras: RegrasDeEnvio, now: datetime) -> Adia | None:
    for window, code in ((regras.hours, QUIET_HOURS), (regras.window, OUTSIDE_WINDOW)):
        for at in (now, now + LEAVES_WITHIN):
            if window is not None and (opens := window.next_open(at, regras.zone)) > at:
                return Adia(opens, code())
    return None


def _cooling(pedido: PedidoDeEnvio, medico: Medico, now: datetime) -> Bloqueia | None:
    if medico.is_cooling_off and (medico.cooling_off_until is None or medico.cooling_off_until > now):
        return Bloqueia(Desfecho.BLOCKED_COOLING_OFF, COOLING_OFF())
    if medico.next_allowed_at is not None and medico.next_allowed_at > now:
        return Bloqueia(Desfecho.BLOCKED_NEXT_ALLOWED, NEXT_CONTACT_LATER())
    is_capped = pedido.is_campaign or not TIPOS[pedido.tipo].sem_teto
    if is_capped and medico.contacts_7d >= CONTACTS_IN_A_WEEK:
        return Bloqueia(Desfecho.BLOCKED_CONTACT_CAP, CONTACT_CAP(count=medico.contacts_7d))
    return None


def _postpone(hold: Hold | None, now: datetime) -> Adia | None:
    return None if hold is None else Adia(now + ASK_AGAIN, hold.reason)


def _check_campaigns(pedido: PedidoDeEnvio, medico: Medico, now: datetime) -> Bloqueia | None:
    other = medico.other_campaign_at
    if not pedido.is_campaign or other is None or now - other > BETWEEN_CAMPAIGNS:
        return None
    return Bloqueia(Desfecho.BLOCKED_CAMPAIGN_COOLDOWN, OTHER_CAMPAIGN())


def open_time(since: datetime, until: datetime, hours: Window, zone: ZoneInfo) -> timedelta:
    """Return how much of the time between two instants was within the sending hours (``hours``). Only the last 14 days
    are considered.
    """
    spent, at = timedelta(0), max(since, until - timedelta(days=14))
    while at < until:
        at = hours.next_open(at, zone)
        closes = min(hours.closes(at, zone) or at, until) if at < until else at
        spent += max(closes - at, timedelta(0))
        at = max(closes, at + timedelta(microseconds=1))
    return spent
