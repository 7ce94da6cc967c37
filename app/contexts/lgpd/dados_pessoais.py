"""The personal data in every table. Export and erasure both follow this declaration.

``TABELAS`` names every text, JSON and binary column of the database. A test compares it with the real schema of both
databases, so a new column without a declaration makes the test fail. There are three kinds of columns:

- columns of a ``Dados``: data in the person's own rows; it is exported, and erased with the row or overwritten
- ``livres``: free text in other people's rows, in which only the person's number is replaced
- ``outras``: codes, hashes, operators' names and data that concerns no person
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Final

from batuta.kernel import dataclass

# SQL values that replace personal data. The replacement of a number has the length that the constraint of ``clientes``
# requires.
VAZIO: Final = "NULL"
REMOVIDO: Final = "'[removido]'"
SEM_TELEFONE: Final = "'00000000'"
NADA: Final = "'{}'"


class De(StrEnum):
    """The ways in which a column identifies a person. Each value is the name of the list of identifiers in ``Alvo``
    with which the column is compared.
    """

    QUEM = "quem"  # a phone number, a key of a number, or an address of WhatsApp
    CONTEM = "contem"  # a text that contains a number or an address
    MEDICO = "medicos"
    CONTATO = "contatos"
    CONVERSA = "conversas"
    MENSAGEM = "mensagens"  # a group message of the person
    VAGA = "vagas"  # a vacancy that the person posted in a group
    AGENDAMENTO = "agendamentos"
    TAREFA = "tarefas"
    TODOS = "todos"  # every row may contain the person


@dataclass(frozen=True, slots=True, kw_only=True)
class Dados:
    """Declaration of the personal data in one table. A row belongs to a person if one of the columns in ``de``
    identifies the person and the SQL condition ``se`` is true.
    """

    de: Mapping[str, De]
    # maps a column to its SQL value; None deletes the row, an empty mapping keeps it
    apagar: Mapping[str, str] | None = None
    mostra: str = ""  # columns that the export has in addition to those of ``apagar``
    se: str = "TRUE"
    por_ultimo: bool = False  # the rows identify the person, so they are erased after all others
    ocupada: str = "FALSE"  # SQL condition for rows in use now; a later run erases them

    @property
    def colunas(self) -> list[str]:
        return [*dict.fromkeys([*(self.apagar or ()), *self.mostra.split()])]


@dataclass(frozen=True, slots=True)
class Tabela:
    nome: str
    outras: str = ""
    dados: tuple[Dados, ...] = field(default=(), kw_only=True)
    livres: str = field(default="", kw_only=True)
    ocupada: str = field(default="FALSE", kw_only=True)  # SQL condition for rows whose free text is in use now

    @property
    def declaradas(self) -> set[str]:
        """The names of all columns that the declaration of this table contains."""
        own = {column for each in self.dados for column in (*each.de, *each.colunas)}
        return own | {*self.livres.split(), *self.outras.split()}


MENSAGEM_VIVA: Final = "status IN ('pendente', 'processando') OR lease_until IS NOT NULL OR envio_estado IS NOT NULL"
TEXTO_EM_USO: Final = "lease_until IS NOT NULL OR envio_estado IS NOT NULL"
TAREFA_VIVA: Final = "status IN ('queued', 'in_progress') OR lease_until IS NOT NULL"
LEITURA_VIVA: Final = (
    "EXISTS (SELECT 1 FROM fila_processamento_grupos AS fila WHERE fila.mensagem_id = mensagens_grupo.id"
    " AND fila.lease_until IS NOT NULL)"
)
MEDICO: Final = {"cliente_id": De.MEDICO}
# If a vacancy has a contact without a number, the contact is the message's author, who hides the number.
SO_NOME: Final = "contato_whatsapp IS NULL"

# fmt: off
CONVERSAS: Final = (
    Tabela("clientes", dados=(
        Dados(
            de={"id": De.MEDICO}, por_ultimo=True,
            apagar={"telefone": SEM_TELEFONE, "primeiro_nome": VAZIO, "sobrenome": VAZIO, "cpf": VAZIO, "crm": VAZIO,
                    "especialidade": VAZIO, "cidade": VAZIO, "estado": VAZIO, "stage_jornada": VAZIO,
                    "opt_out": "TRUE", "opted_out": "TRUE", "deleted_at": "coalesce(deleted_at, :now)"},
            mostra="id status tipo status_telefone telefone_chave opted_out_at total_interacoes ultima_mensagem_data created_at",
        ),
    )),
    Tabela("doctor_state", dados=(
        # Erased last, because this row contains the person's opt-out.
        Dados(de=MEDICO, por_ultimo=True, mostra="permission_state cooling_off_until temperature temperature_trend temperature_band"
              " risk_tolerance last_inbound_at last_outbound_at next_allowed_at active_objection objection_severity"
              " objection_detected_at pending_action current_intent lifecycle_stage last_touch_method"),
    )),
    Tabela("external_contacts", dados=(
        Dados(de={"telefone": De.QUEM}, por_ultimo=True, mostra="telefone nome permission_state created_at"),
    )),
    Tabela("contatos_lid", dados=(
        Dados(de={"telefone": De.QUEM, "lid": De.QUEM}, por_ultimo=True, mostra="telefone lid created_at"),
    )),
    Tabela("conversations", "controlled_by first_touch_type last_touch_type execution_mode responsavel chatwoot_estado", dados=(
        # The help desk's number of the conversation stays, because an operator needs it to delete the copy there.
        Dados(de=MEDICO, apagar={"status": "'archived'"},
              mostra="id chatwoot_conversation_id stage message_count ultima_mensagem_em created_at"),
    )),
    Tabela("conversas_historico", "por", dados=(
        Dados(de={"conversa_id": De.CONVERSA}, apagar={"motivo": REMOVIDO}, mostra="acao em"),
    )),
    Tabela("interacoes", "origem pedido", livres="conteudo", dados=(
        Dados(
            de={"cliente_id": De.MEDICO, "telefone": De.QUEM, "remote_jid": De.QUEM},
            apagar={"conteudo": REMOVIDO, "telefone": VAZIO, "remote_jid": "'removido:' || id"},
            mostra="tipo autor_tipo delivery_status provider_message_id classe opt_out created_at",
        ),
    )),
    Tabela("fila_mensagens", "fila conta_id chave envio_estado outcome_reason_code owner", livres="conteudo erro",
           ocupada=TEXTO_EM_USO, dados=(
        Dados(
            de={"cliente_id": De.MEDICO, "telefone_destino": De.QUEM},
            apagar={"telefone_destino": SEM_TELEFONE, "conteudo": REMOVIDO, "metadata": NADA, "envio_hash": VAZIO},
            mostra="id tipo status outcome provider_message_id agendar_para enviada_em created_at",
            ocupada=MENSAGEM_VIVA,
        ),
    )),
    Tabela("fila_mensagens_dlq", "reprocessado_por", dados=(
        Dados(de=MEDICO, mostra="conteudo tipo metadata ultimo_erro outcome movido_para_dlq_em"),
    )),
    Tabela("mensagens_fora_horario", "recebimento_modelo", dados=(
        Dados(de=MEDICO, mostra="inbound_message_id classe contexto recebida_em processada_em processada_resultado"),
    )),
    Tabela("pendencias", "por resolucao", dados=(
        Dados(de={"cliente_id": De.MEDICO, "telefone": De.QUEM, "quem": De.QUEM},
              mostra="provider_message_id motivo mensagens created_at resolvida_em"),
    )),
    Tabela("avaliacoes_qualidade", "avaliador modelo corrigida_por", dados=(
        Dados(de={"conversa_id": De.CONVERSA},
              mostra="score_geral positivos negativos sugestoes nota_corrigida correcao created_at"),
    )),
    Tabela("avaliacoes_ilegiveis", dados=(Dados(de={"conversa_id": De.CONVERSA}, mostra="vezes em"),)),
    Tabela("optouts_provaveis", "por", dados=(
        Dados(de={"cliente_id": De.MEDICO, "telefone": De.QUEM, "telefone_chave": De.QUEM},
              mostra="provider_message_id regra decisao motivo created_at decidida_em"),
    )),
    Tabela("provedor_mensagens", "conteudo_hash", dados=(
        Dados(de={"telefone_chave": De.QUEM, "remote_jid": De.QUEM}, por_ultimo=True,
              mostra="provider_message_id instance_name delivery_status enviada_em created_at"),
    )),
    Tabela("webhook_inbox", "canal chave instance_name status resultado owner", livres="erro", dados=(
        Dados(de={"payload": De.CONTEM}, mostra="id evento created_at", ocupada="finished_at IS NULL"),
    )),
    Tabela("business_events", "source dedupe_key", livres="event_props", dados=(
        Dados(de=MEDICO, apagar={}, mostra="ts event_type"),
    )),
    Tabela("campanha_destinatarios", dados=(Dados(de=MEDICO, apagar={}, mostra="campanha_id situacao motivo created_at"),)),
    Tabela("campaign_contact_history", dados=(
        Dados(de=MEDICO, apagar={}, mostra="campaign_id sent_at entregue_em respondido_em"),
    )),
    Tabela("gatilhos_contatos", dados=(
        Dados(de=MEDICO, apagar={}, mostra="gatilho vaga_id enviada_em respondida_em classe avaliacao nota created_at"),
    )),
    Tabela("optouts_do_diario", "digest"),
    Tabela("lgpd_pedidos", "tipo digests por motivo contagens restam", dados=(
        # The erasure empties this column itself when it is complete.
        Dados(de={"alvo": De.CONTEM}, apagar={}, mostra="id created_at concluido_em", se="alvo IS NOT NULL"),
    )),
)

TELEGRAM: Final = (
    Tabela("telegram_contas", "id nome telefone estado marca erro"),
    Tabela("telegram_sessoes", "conta_id cifrada dono"),
    Tabela("telegram_esperas", "conta_id metodo motivo"),
    Tabela("telegram_entidades", "conta_id chave", dados=(
        Dados(de={"quem": De.QUEM, "telefone": De.QUEM}, por_ultimo=True, mostra="nome username visto_em"),
    )),
    Tabela("telegram_entrada", "conta_id chave chat chat_nome origem status owner", livres="texto erro",
           ocupada="lease_until IS NOT NULL", dados=(
        Dados(de={"quem": De.QUEM, "autor_telefone": De.QUEM}, mostra="texto autor_nome midia em created_at",
              ocupada="status IN ('pendente', 'processando')"),
    )),
    Tabela("telegram_arquivos", dados=(Dados(de=MEDICO, mostra="nome mime conteudo created_at"),)),
    Tabela("telegram_historico", "conta_id chave status owner", livres="destino erro"),
    Tabela("telegram_acoes", "conta_id chave acao chat destino pedida_por status owner", livres="texto erro"),
)

GRUPOS_E_VAGAS: Final = (
    Tabela("contatos_grupo", "bloqueado_por", dados=(
        Dados(de={"id": De.CONTATO}, por_ultimo=True,
              mostra="jid telefone nome empresa tipo total_mensagens total_vagas_postadas created_at"),
    )),
    Tabela("mensagens_grupo", "message_id tipo_midia instance_name status keywords_encontradas motivo_descarte categoria"
           " motivo_classificacao citada", livres="texto", ocupada=LEITURA_VIVA, dados=(
        Dados(de={"contato_id": De.CONTATO, "sender_jid": De.QUEM}, ocupada=LEITURA_VIVA,
              apagar={"contato_id": VAZIO, "sender_jid": VAZIO, "sender_nome": VAZIO, "texto": REMOVIDO},
              mostra="id grupo_id timestamp_msg"),
    )),
    Tabela("vagas_grupo", "periodo_raw forma_pagamento_raw cidade estado dia_semana valor_tipo trechos campos_faltando"
           " hash_dedup motivo_status revisada_por dm_recovery_status",
           livres="hospital_raw especialidade_raw notas_revisao observacoes_raw", dados=(
        Dados(de={"contato_responsavel_id": De.CONTATO}, apagar={"contato_responsavel_id": VAZIO, "observacoes_raw": VAZIO},
              mostra="id data hora_inicio hora_fim valor status created_at"),
        Dados(de={"contato_whatsapp": De.QUEM}, apagar={"contato_nome": VAZIO, "contato_whatsapp": VAZIO}, mostra="id data"),
        Dados(de={"id": De.VAGA}, apagar={"contato_nome": VAZIO}, mostra="data", se=SO_NOME),
    )),
    Tabela("vagas_grupo_fontes", livres="texto_original", dados=(
        Dados(de={"contato_id": De.CONTATO}, apagar={"contato_id": VAZIO, "texto_original": REMOVIDO}, mostra="created_at"),
        Dados(de={"contato_informado": De.QUEM}, apagar={"contato_informado": VAZIO}, mostra="created_at"),
    )),
    Tabela("fechamentos_grupo", "status como motivo trecho fechadas candidatas revisada_por"),
    Tabela("fila_processamento_grupos", "estagio chave ultimo_estagio owner", livres="ultimo_erro"),
    Tabela("vagas", "hora_inicio hora_fim valor_tipo forma_pagamento origem hash_dedup realizada_por cancelada_por"
           " criada_por cancelada_motivo", dados=(
        Dados(de=MEDICO, apagar={}, mostra="id data hora_inicio hora_fim valor status"),
        Dados(de={"contato_whatsapp": De.QUEM}, apagar={"contato_nome": VAZIO, "contato_whatsapp": VAZIO}, mostra="id data"),
        Dados(de={"vaga_grupo_id": De.VAGA}, apagar={"contato_nome": VAZIO}, mostra="id data",
              se=SO_NOME),
    )),
    Tabela("vagas_historico", "de por", livres="motivo", dados=(Dados(de=MEDICO, apagar={}, mostra="vaga_id para em"),)),
    Tabela("vagas_ofertas", "por", dados=(Dados(de=MEDICO, apagar={}, mostra="vaga_id created_at"),)),
    Tabela("vagas_interesses", "por", dados=(Dados(de=MEDICO, apagar={}, mostra="vaga_id created_at"),)),
    Tabela("vagas_grupo_chaves", "hash_dedup"),
    Tabela("external_handoffs", "decidido_via decidido_por", dados=(
        Dados(de={"cliente_id": De.MEDICO, "divulgador_id": De.MEDICO}, apagar={},
              mostra="vaga_id status reserved_until contatado_em created_at decidido_em"),
    )),
    Tabela("external_handoffs_historico", "de para por", livres="motivo"),
    Tabela("leituras_modelo", "chave modelo uso", dados=(
        # Stored answers from the language model. No key in this cache identifies a person, so all of it is emptied.
        Dados(de={"resposta": De.TODOS}, apagar={"resposta": VAZIO}),
    )),
    Tabela("grupos_whatsapp", "jid nome tipo regiao regiao_origem"),
    Tabela("hospitais", "nome logradouro numero bairro cidade estado cep endereco_formatado cnes_codigo google_place_id"
           " telefone revisado_por"),
    Tabela("hospitais_alias", "alias alias_normalizado origem criado_por"),
    Tabela("hospitais_alias_regioes", "alias_normalizado regiao"),
    Tabela("hospitais_bloqueados", "motivo bloqueado_por status"),
    Tabela("especialidades", "nome"),
    Tabela("especialidades_alias", "alias alias_normalizado origem criado_por"),
    Tabela("periodos", "nome"),
    Tabela("metricas_pipeline_diarias", "erros_por_estagio"),
)

AGENDAMENTOS: Final = (
    Tabela("appointments", "chave chave_natural fonte normalization_error normalization_status canal_confirmacao"
           " data_confirmacao hora_confirmacao aba", livres="observacoes", dados=(
        Dados(de={"id": De.AGENDAMENTO},
              mostra="id nome_paciente telefone cpf rg nome_marca nome_unidade data_agendamento hora_agendamento status"
              " observacoes exames carro cep endereco_coleta endereco_completo documento_completo numero_convenio"
              " nome_convenio carteira_convenio especialidade origem_id endereco_normalizado documento_normalizado created_at"),
    )),
    # A stored file is deleted when its last row has become an appointment.
    Tabela("importacao_arquivos", dados=(Dados(de={"conteudo": De.TODOS}, ocupada="TRUE"),)),
    Tabela("importacoes", "sha256 status errors warnings created_by escolhidas colunas", livres="arquivo"),
    Tabela("colunas_de_planilhas", "forma colunas created_by"),
    Tabela("carros", "nome"),
)

GESTAO: Final = (
    Tabela("campanhas", "nome_template tipo_campanha tom status audience_filters objetivo regras escopo_vagas created_by erro",
           livres="corpo"),
    Tabela("avisos_equipe", "chave destino motivo detalhe status resultado owner", livres="erro"),
    Tabela("central_fila", "grupo status owner", livres="erro", dados=(
        Dados(de={"conversa_id": De.CONVERSA}, mostra="nota created_at", ocupada="lease_until IS NOT NULL"),
    )),
    Tabela("relatorios", "tipo metricas destaques por"),
    Tabela("relatorios_envios", "destino estado erro"),
    Tabela("briefing_sync_log", "documento origem doc_title doc_hash avisos resultado", livres="conteudo_raw parseado"),
    Tabela("diretrizes", "tipo documento", livres="conteudo"),
    Tabela("prompts", "nome base por", livres="conteudo"),
    Tabela("chips", "telefone instance_name tipo provider status fase_warmup trust_level trust_factors tipos_midia_usados"
           " ban_reason"),
    Tabela("chip_transitions", "from_status to_status reason triggered_by"),
    Tabela("chip_trust_history", "trust_level factors"),
    Tabela("chip_daily_snapshots", "trust_level status"),
    Tabela("chip_erros", "motivo"),
)

MOTOR: Final = (
    Tabela("tasks", "queue name status owner limit_key", dados=(
        Dados(de={"id": De.TAREFA}, ocupada=TAREFA_VIVA, mostra="id created_at finished_at",
              apagar={"args": "'[]'", "unique_key": VAZIO, "error": VAZIO, "result": VAZIO, "progress": VAZIO}),
    ), livres="args error result progress tags", ocupada=TAREFA_VIVA),
    Tabela("task_lines", "name limit_key"),
    Tabela("task_periods", "name unique_key"),
    Tabela("task_waits", ""),
    Tabela("task_inputs", ""),
    Tabela("batches", "name members", livres="reason"),
    Tabela("pipeline_items", "pipeline stage last_stage owner unique_key limit_key",
           livres="item error", ocupada="lease_until IS NOT NULL"),
    Tabela("pipeline_lines", "name limit_key"),
    Tabela("schedules", "name schedule timezone task overlap catch_up created_by", livres="args"),
    Tabela("bulk_operations", "queue change status created_by", livres="filter"),
    Tabela("job_executions", "job_name categoria trigger owner status", livres="error reason result params"),
    Tabela("log_lines", "level logger", livres="line"),
    Tabela("job_calls", "key endpoint subject fingerprint", livres="response"),
    Tabela("audit_log", "actor action", livres="subject before after"),
    Tabela("alertas_enviados", "tipo severidade sink kind outcome next_step", livres="mensagem"),
    Tabela("health_causes", "cause told_severity", livres="message"),
    Tabela("health_incidents", "from_status to_status trigger_source", livres="details"),
    Tabela("feature_flags", "key value updated_by", livres="reason"),
    Tabela("process_requests", "worker_id request asked_by", livres="stack"),
    Tabela("worker_restarts", "worker_id worker_name loop host", livres="reason detail stack"),
    Tabela("worker_heartbeats", "worker_id worker_name status loops_status host version"),
    Tabela("circuits", "circuit_name state", livres="last_error"),
    Tabela("circuit_transitions", "circuit_name from_state to_state", livres="reason"),
    Tabela("api_tokens", "id name secret_hash scopes networks created_by"),
    Tabela("ended_sessions", "session"),
    Tabela("app_settings", "name setting"),
    Tabela("rate_tokens", dados=(Dados(de={"rate_key": De.CONTEM}),)),
    Tabela("job_schedules", "job_name categoria schedule timezone"),
    Tabela("job_timetables", "fingerprint release_name renewed_by"),
    Tabela("leases", "name owner"),
    Tabela("clock_marks", "queue_table"),
    Tabela("schema_migrations", "namespace name checksum"),
)
# fmt: on

TABELAS: Final = (*CONVERSAS, *TELEGRAM, *GRUPOS_E_VAGAS, *AGENDAMENTOS, *GESTAO, *MOTOR)
