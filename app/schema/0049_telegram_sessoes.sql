-- The session of a Telegram account (telegram_contas), encrypted. A session belongs to one process at a time, because Telegram ends a
-- session that is used from two places: dono is that process, dono_ate the end of its lease.
CREATE TABLE telegram_sessoes (
    conta_id   TEXT PRIMARY KEY,
    cifrada    TEXT NOT NULL,
    dono       TEXT,
    dono_ate   TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    CHECK ((dono IS NULL) = (dono_ate IS NULL))
);
