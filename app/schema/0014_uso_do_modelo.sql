-- For whom a model was asked: each has its own figures, and all of them one budget.
ALTER TABLE leituras_modelo ADD COLUMN uso TEXT NOT NULL DEFAULT 'grupos';
