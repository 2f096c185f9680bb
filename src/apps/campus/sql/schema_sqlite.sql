-- schema_sqlite.sql: the tables of the campus; schema_postgres.sql has the same for PostgreSQL.
-- Times are milliseconds since 1970, UTC. The names of constraints and unique indexes are part of
-- the contract: invariants and `interlock doctor` look for them.

-- name: campus_sqlite_1
CREATE TABLE users (
    tenant         TEXT    NOT NULL,
    id             TEXT    NOT NULL,
    email          TEXT    NOT NULL,
    is_active      INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
    credit_balance INTEGER NOT NULL DEFAULT 0,
    xp_balance     INTEGER NOT NULL DEFAULT 0,
    created_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, id),
    CONSTRAINT ck_user_credit_balance CHECK (credit_balance >= 0)
) STRICT;
CREATE UNIQUE INDEX uq_user_email ON users (tenant, email);

-- A tournament.
CREATE TABLE semesters (
    tenant                   TEXT    NOT NULL,
    id                       TEXT    NOT NULL,
    code                     TEXT    NOT NULL,
    name                     TEXT    NOT NULL,
    tournament_status        TEXT    NOT NULL,
    campus_id                TEXT,
    specialization_type      TEXT    NOT NULL,
    max_players              INTEGER NOT NULL,
    enrollment_cost          INTEGER NOT NULL CHECK (enrollment_cost >= 0),
    current_enrollment_count INTEGER NOT NULL DEFAULT 0,
    reward_config            TEXT CHECK (reward_config IS NULL OR json_valid(reward_config)),
    completed_at             INTEGER,
    created_at               INTEGER NOT NULL,
    PRIMARY KEY (tenant, id),
    CONSTRAINT ck_semester_enrollment_count
        CHECK (current_enrollment_count BETWEEN 0 AND max_players),
    CONSTRAINT ck_semester_status CHECK (tournament_status IN ('DRAFT', 'SEEKING_INSTRUCTOR',
        'ENROLLMENT_OPEN', 'ENROLLMENT_CLOSED', 'CHECK_IN_OPEN', 'IN_PROGRESS', 'COMPLETED',
        'REWARDS_DISTRIBUTED', 'ARCHIVED', 'CANCELLED')),
    CONSTRAINT ck_semester_campus
        CHECK (campus_id IS NOT NULL OR tournament_status <> 'ENROLLMENT_OPEN')
) STRICT;
CREATE UNIQUE INDEX uq_semester_code ON semesters (tenant, code);

CREATE TABLE semester_enrollments (
    tenant         TEXT    NOT NULL,
    id             TEXT    NOT NULL,
    user_id        TEXT    NOT NULL,
    semester_id    TEXT    NOT NULL,
    request_status TEXT    NOT NULL,
    is_active      INTEGER NOT NULL CHECK (is_active IN (0, 1)),
    cost           INTEGER NOT NULL CHECK (cost >= 0),
    refund         INTEGER NOT NULL DEFAULT 0,
    withdrawal_id  TEXT,
    created_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id),
    FOREIGN KEY (tenant, semester_id) REFERENCES semesters (tenant, id),
    CONSTRAINT ck_enrollment_status
        CHECK (request_status IN ('APPROVED', 'WITHDRAWN', 'CANCELLED')),
    CONSTRAINT ck_enrollment_active CHECK (is_active = (request_status = 'APPROVED'))
) STRICT;
CREATE UNIQUE INDEX uq_user_semester_enrollment
    ON semester_enrollments (tenant, user_id, semester_id) WHERE is_active;
CREATE INDEX ix_enrollment_semester ON semester_enrollments (tenant, semester_id, is_active);

CREATE TABLE sessions (
    tenant          TEXT    NOT NULL,
    id              TEXT    NOT NULL,
    semester_id     TEXT,
    name            TEXT    NOT NULL,
    price           INTEGER NOT NULL DEFAULT 0 CHECK (price >= 0),
    capacity        INTEGER NOT NULL CHECK (capacity > 0),
    available_spots INTEGER NOT NULL,
    date_start      INTEGER NOT NULL,
    date_end        INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, semester_id) REFERENCES semesters (tenant, id),
    CONSTRAINT ck_session_spots CHECK (available_spots BETWEEN 0 AND capacity),
    CONSTRAINT ck_session_times CHECK (date_end > date_start)
) STRICT;
CREATE INDEX ix_session_semester ON sessions (tenant, semester_id);

-- A live booking is confirmed or waitlisted. Only a waitlisted one has a position: 1, 2, 3, …
CREATE TABLE bookings (
    tenant            TEXT    NOT NULL,
    id                TEXT    NOT NULL,
    user_id           TEXT    NOT NULL,
    session_id        TEXT    NOT NULL,
    status            TEXT    NOT NULL,
    is_live           INTEGER NOT NULL CHECK (is_live IN (0, 1)),
    waitlist_position INTEGER,
    price             INTEGER NOT NULL CHECK (price >= 0),
    cancellation_id   TEXT,
    created_at        INTEGER NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id),
    FOREIGN KEY (tenant, session_id) REFERENCES sessions (tenant, id),
    CONSTRAINT ck_booking_status CHECK (status IN ('CONFIRMED', 'WAITLISTED', 'CANCELLED')),
    CONSTRAINT ck_booking_live CHECK (is_live = (status <> 'CANCELLED')),
    CONSTRAINT ck_booking_position
        CHECK ((waitlist_position IS NOT NULL) = (status = 'WAITLISTED'))
) STRICT;
CREATE UNIQUE INDEX uq_booking_live ON bookings (tenant, session_id, user_id) WHERE is_live;
CREATE UNIQUE INDEX uq_booking_waitlist_position
    ON bookings (tenant, session_id, waitlist_position);
CREATE INDEX ix_booking_user ON bookings (tenant, user_id, is_live);

CREATE TABLE attendance (
    tenant     TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    booking_id TEXT    NOT NULL,
    status     TEXT    NOT NULL CHECK (status IN ('PRESENT', 'ABSENT', 'LATE')),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, booking_id) REFERENCES bookings (tenant, id)
) STRICT;
CREATE UNIQUE INDEX uq_attendance_booking ON attendance (tenant, booking_id);

-- The ledgers: a balance of `users` is the sum of its amounts. A row is inserted before the balance
-- changes; balance_after follows in the same transaction.
CREATE TABLE credit_transactions (
    tenant          TEXT    NOT NULL,
    id              TEXT    NOT NULL,
    user_id         TEXT    NOT NULL,
    semester_id     TEXT,
    amount          INTEGER NOT NULL,
    balance_after   INTEGER,
    type            TEXT    NOT NULL,
    idempotency_key TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
) STRICT;
CREATE UNIQUE INDEX uq_credit_transaction_idempotency
    ON credit_transactions (tenant, idempotency_key);
CREATE INDEX ix_credit_transaction_user ON credit_transactions (tenant, user_id);
CREATE TABLE xp_transactions (
    tenant          TEXT    NOT NULL,
    id              TEXT    NOT NULL,
    user_id         TEXT    NOT NULL,
    semester_id     TEXT,
    amount          INTEGER NOT NULL,
    balance_after   INTEGER,
    type            TEXT    NOT NULL,
    idempotency_key TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
) STRICT;
CREATE UNIQUE INDEX uq_xp_transaction_idempotency ON xp_transactions (tenant, idempotency_key);
CREATE INDEX ix_xp_transaction_user ON xp_transactions (tenant, user_id);

CREATE TABLE user_licenses (
    tenant              TEXT    NOT NULL,
    id                  TEXT    NOT NULL,
    user_id             TEXT    NOT NULL,
    specialization_type TEXT    NOT NULL,
    is_active           INTEGER NOT NULL CHECK (is_active IN (0, 1)),
    football_skills     TEXT    NOT NULL CHECK (json_valid(football_skills)),
    created_at          INTEGER NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
) STRICT;
CREATE UNIQUE INDEX uq_user_license_active
    ON user_licenses (tenant, user_id, specialization_type) WHERE is_active;

-- The last four columns are what the step of the skills used; a replay reads them.
CREATE TABLE tournament_participations (
    tenant             TEXT    NOT NULL,
    id                 TEXT    NOT NULL,
    user_id            TEXT    NOT NULL,
    semester_id        TEXT    NOT NULL,
    license_id         TEXT,
    placement          INTEGER NOT NULL CHECK (placement > 0),
    skill_rating_delta REAL,
    xp_awarded         INTEGER NOT NULL,
    credits_awarded    INTEGER NOT NULL,
    achieved_at        INTEGER NOT NULL,
    players            INTEGER NOT NULL,
    skill_weights      TEXT    NOT NULL CHECK (json_valid(skill_weights)),
    match_modifier     REAL    NOT NULL,
    opponent_factor    REAL    NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id),
    FOREIGN KEY (tenant, semester_id) REFERENCES semesters (tenant, id),
    FOREIGN KEY (tenant, license_id) REFERENCES user_licenses (tenant, id)
) STRICT;
CREATE UNIQUE INDEX uq_user_semester_participation
    ON tournament_participations (tenant, user_id, semester_id);
CREATE INDEX ix_participation_history
    ON tournament_participations (tenant, user_id, achieved_at, id);
CREATE INDEX ix_participation_semester ON tournament_participations (tenant, semester_id);

CREATE TABLE tournament_badges (
    tenant      TEXT    NOT NULL,
    id          TEXT    NOT NULL,
    user_id     TEXT    NOT NULL,
    semester_id TEXT    NOT NULL,
    badge_type  TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id),
    FOREIGN KEY (tenant, semester_id) REFERENCES semesters (tenant, id)
) STRICT;
-- mutant campus_badge_unguarded: CREATE INDEX uq_user_tournament_badge
CREATE UNIQUE INDEX uq_user_tournament_badge
    ON tournament_badges (tenant, user_id, semester_id, badge_type);

CREATE TABLE tournament_rankings (
    tenant        TEXT    NOT NULL,
    semester_id   TEXT    NOT NULL,
    user_id       TEXT    NOT NULL,
    rank          INTEGER NOT NULL CHECK (rank > 0),
    points        INTEGER NOT NULL,
    wins          INTEGER NOT NULL,
    matches       INTEGER NOT NULL,
    goals_for     INTEGER NOT NULL,
    goals_against INTEGER NOT NULL,
    PRIMARY KEY (tenant, semester_id, user_id),
    FOREIGN KEY (tenant, semester_id) REFERENCES semesters (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
) STRICT;
CREATE UNIQUE INDEX uq_tournament_rank ON tournament_rankings (tenant, semester_id, rank);

CREATE TABLE tournament_matches (
    tenant       TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    semester_id  TEXT    NOT NULL,
    home_user_id TEXT    NOT NULL,
    away_user_id TEXT    NOT NULL,
    home_goals   INTEGER NOT NULL DEFAULT 0 CHECK (home_goals >= 0),
    away_goals   INTEGER NOT NULL DEFAULT 0 CHECK (away_goals >= 0),
    finished     INTEGER NOT NULL CHECK (finished IN (0, 1)),
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, semester_id) REFERENCES semesters (tenant, id),
    FOREIGN KEY (tenant, home_user_id) REFERENCES users (tenant, id),
    FOREIGN KEY (tenant, away_user_id) REFERENCES users (tenant, id),
    CONSTRAINT ck_match_players CHECK (home_user_id <> away_user_id)
) STRICT;
CREATE INDEX ix_match_semester ON tournament_matches (tenant, semester_id);

CREATE TABLE tournament_skill_weights (
    tenant      TEXT NOT NULL,
    semester_id TEXT NOT NULL,
    skill       TEXT NOT NULL,
    weight      REAL NOT NULL CHECK (weight >= 0 AND weight <= 10),
    PRIMARY KEY (tenant, semester_id, skill),
    FOREIGN KEY (tenant, semester_id) REFERENCES semesters (tenant, id)
) STRICT;

CREATE TABLE football_skill_assessments (
    tenant     TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    license_id TEXT    NOT NULL,
    skill      TEXT    NOT NULL,
    value      REAL    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, license_id) REFERENCES user_licenses (tenant, id)
) STRICT;

CREATE TABLE system_events (
    tenant     TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    level      TEXT    NOT NULL CHECK (level IN ('INFO', 'WARNING', 'ERROR')),
    type       TEXT    NOT NULL,
    text       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;
CREATE INDEX ix_system_event_level ON system_events (tenant, level, created_at);
