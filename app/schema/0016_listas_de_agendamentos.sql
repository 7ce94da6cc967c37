-- A page of a list is read from its index: the newest first, of one state, of one situation, of one unit.
CREATE INDEX appointments_by_reading ON appointments (normalization_status, id);
CREATE INDEX appointments_by_situation ON appointments (status, id);
CREATE INDEX appointments_by_unit ON appointments (nome_unidade, id);
