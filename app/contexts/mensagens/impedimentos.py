"""Reasons that prevent Julia from initiating a message to a doctor, as branches of an SQL ``CASE``.

A statement that selects doctors must use the aliases ``doctor`` for ``clientes`` and ``state`` for ``doctor_state``,
and insert ``IMPEDIMENTOS`` after ``CASE``. The statement must bind :now, :week_ago, :contatos and :automatico. The
parameter :automatico is true unless a person chose the doctor. The sending rules check each message again before it is
sent.
"""

from typing import Final

IMPEDIMENTOS: Final = """
WHEN doctor.opt_out OR doctor.opted_out OR doctor.status IN ('optout', 'opt_out')
     OR coalesce(state.permission_state, '') = 'opted_out'
     OR EXISTS (SELECT 1 FROM external_contacts AS other
                WHERE other.telefone IN (doctor.telefone, doctor.telefone_chave,
                    CASE WHEN length(doctor.telefone_chave) = 12 AND substr(doctor.telefone_chave, 1, 2) = '55'
                              AND substr(doctor.telefone_chave, 5, 1) IN ('6', '7', '8', '9')
                         THEN substr(doctor.telefone_chave, 1, 4) || '9' || substr(doctor.telefone_chave, 5) END)
                AND other.permission_state = 'opted_out') THEN 'optout'
WHEN EXISTS (SELECT 1 FROM optouts_provaveis AS doubt WHERE doubt.telefone_chave = doctor.telefone_chave AND doubt.decisao IS NULL)
     THEN 'optout_provavel'
WHEN doctor.status_telefone = 'invalido' THEN 'telefone_invalido'
WHEN EXISTS (SELECT 1 FROM conversations AS talk WHERE talk.cliente_id = doctor.id AND talk.controlled_by = 'human'
             AND talk.status IN ('active', 'paused', 'escalated')) THEN 'conversa_humana'
WHEN :automatico AND EXISTS (SELECT 1 FROM conversations AS rest WHERE rest.cliente_id = doctor.id
                             AND (rest.status = 'paused' OR rest.status IN ('active', 'escalated') AND rest.pausado_ate > :now))
     THEN 'em_pausa'
WHEN state.permission_state = 'cooling_off' AND (state.cooling_off_until IS NULL OR state.cooling_off_until > :now) THEN 'esfriando'
WHEN state.next_allowed_at > :now THEN 'proximo_contato'
WHEN (SELECT count(*) FROM fila_mensagens AS sent WHERE sent.cliente_id = doctor.id AND sent.status = 'enviada'
      AND sent.enviada_em > :week_ago AND sent.tipo NOT IN ('resposta', 'recebimento', 'retomada')) >= :contatos
     THEN 'limite_contatos'
WHEN :automatico AND EXISTS (SELECT 1 FROM fila_mensagens AS queued WHERE queued.cliente_id = doctor.id
                             AND (queued.status IN ('pendente', 'processando') OR queued.envio_estado IS NOT NULL)
                             AND queued.tipo NOT IN ('resposta', 'recebimento', 'retomada')) THEN 'na_fila'
""".strip()
