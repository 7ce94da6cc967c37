-- A notice about the briefing names the directives that changed; it has no conversation and no entry of the pending list.
ALTER TABLE avisos_equipe ADD COLUMN detalhe TEXT CHECK (length(detalhe) <= 500);
