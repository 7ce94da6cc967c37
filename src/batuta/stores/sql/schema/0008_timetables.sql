-- The jobs of each version of the code that has run as a scheduler. Only the schedules of the timetable that was activated last fire.
CREATE TABLE job_timetables (
    fingerprint   TEXT PRIMARY KEY,
    -- The order of deployment: the timetable with the highest number was seen for the first time last.
    position      BIGINT NOT NULL,
    jobs          INTEGER NOT NULL,
    release_name  TEXT,
    first_seen_at TIMESTAMPTZ NOT NULL,
    -- A living scheduler of this timetable renews it. Others watch the number of renewals, not the instant.
    renewals      BIGINT NOT NULL,
    renewed_at    TIMESTAMPTZ NOT NULL,
    renewed_by    TEXT NOT NULL,
    -- The highest number is the active timetable; 0: it was never active.
    activation    BIGINT NOT NULL
);
