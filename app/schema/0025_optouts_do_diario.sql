-- Opt-outs that a restore found in the journal and whose number was in no table: the keyed digest of the number.
CREATE TABLE optouts_do_diario (
    digest     TEXT PRIMARY KEY,
    created_at TIMESTAMPTZ NOT NULL
);
