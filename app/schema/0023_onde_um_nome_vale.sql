-- Where people said that a hospital is called so, by the group's region: a name that was taught in one is nobody's in another, unless
-- the hospital is there. What the customer's own list calls it counts everywhere, and has no rows here.
CREATE TABLE hospitais_alias_regioes (
    hospital_id       UUID NOT NULL,
    alias_normalizado TEXT NOT NULL,
    regiao            TEXT NOT NULL,
    PRIMARY KEY (hospital_id, alias_normalizado, regiao),
    FOREIGN KEY (hospital_id, alias_normalizado) REFERENCES hospitais_alias (hospital_id, alias_normalizado) ON DELETE CASCADE
);
