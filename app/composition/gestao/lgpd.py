"""Builds the services that export and erase a person's data, and their health check."""

from app.composition.conversas import Messages
from app.contexts.lgpd.restauracao import RestauracaoLgpd
from app.contexts.lgpd.service import Lgpd, LgpdParts
from app.contexts.plantoes.api import Plantoes
from batuta import Batuta
from batuta.kernel import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalData:
    lgpd: Lgpd
    restauracao: RestauracaoLgpd


def add_personal_data(work: Batuta, messages: Messages, plantoes: Plantoes) -> PersonalData:
    lgpd = Lgpd(
        LgpdParts(
            database=work.database,
            conversas=messages.conversas,
            mensagens=messages.mensagens,
            plantoes=plantoes,
            resumos=messages.resumos,
            diario=messages.diario,
            ids=work.ids,
            clock=work.clock,
            zone=work.zone,
            cifra=work.encryption,
            cifradas=frozenset(column.about for column in work.encrypted_columns.columns),
        )
    )
    work.health.add(lgpd.check)
    restauracao = RestauracaoLgpd(work.database.dialect, messages.resumos, messages.diario, work.ids)
    return PersonalData(lgpd=lgpd, restauracao=restauracao)
