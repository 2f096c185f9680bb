-- schema_postgres.sql: as schema_sqlite.sql. Ids sort by their bytes, as in SQLite, whatever the
-- locale of the database: lock order, rankings and replays depend on it.

-- name: campus_postgres_1
CREATE TABLE users (
    tenant         text COLLATE "C" NOT NULL,
    id             text COLLATE "C" NOT NULL,
    email          text NOT NULL,
    is_active      boolean NOT NULL DEFAULT true,
    credit_balance bigint NOT NULL DEFAULT 0,
    xp_balance     bigint NOT NULL DEFAULT 0,
    created_at     bigint NOT NULL,
    PRIMARY KEY (tenant, id),
    CONSTRAINT ck_user_credit_balance CHECK (credit_balance >= 0)
);
CREATE UNIQUE INDEX uq_user_email ON users (tenant, email);

-- A tournament.
CREATE TABLE semesters (
    tenant                   text COLLATE "C" NOT NULL,
    id                       text COLLATE "C" NOT NULL,
    code                     text NOT NULL,
    name                     text NOT NULL,
    tournament_status        text NOT NULL,
    campus_id                text COLLATE "C",
    specialization_type      text NOT NULL,
    max_players              bigint NOT NULL,
    enrollment_cost          bigint NOT NULL CHECK (enrollment_cost >= 0),
    current_enrollment_count bigint NOT NULL DEFAULT 0,
    reward_config            jsonb,
    completed_at             bigint,
    created_at               bigint NOT NULL,
    PRIMARY KEY (tenant, id),
    CONSTRAINT ck_semester_enrollment_count
        CHECK (current_enrollment_count BETWEEN 0 AND max_players),
    CONSTRAINT ck_semester_status CHECK (tournament_status IN ('DRAFT', 'SEEKING_INSTRUCTOR',
        'ENROLLMENT_OPEN', 'ENROLLMENT_CLOSED', 'CHECK_IN_OPEN', 'IN_PROGRESS', 'COMPLETED',
        'REWARDS_DISTRIBUTED', 'ARCHIVED', 'CANCELLED')),
    CONSTRAINT ck_semester_campus
        CHECK (campus_id IS NOT NULL OR tournament_status <> 'ENROLLMENT_OPEN')
);
CREATE UNIQUE INDEX uq_semester_code ON semesters (tenant, code);

CREATE TABLE semester_enrollments (
    tenant         text COLLATE "C" NOT NULL,
    id             text COLLATE "C" NOT NULL,
    user_id        text COLLATE "C" NOT NULL,
    semester_id    text COLLATE "C" NOT NULL,
    request_status text NOT NULL,
    is_active      boolean NOT NULL,
    cost           bigint NOT NULL CHECK (cost >= 0),
    refund         bigint NOT NULL DEFAULT 0,
    withdrawal_id  text COLLATE "C",
    created_at     bigint NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id),
    FOREIGN KEY (tenant, semester_id) REFERENCES semesters (tenant, id),
    CONSTRAINT ck_enrollment_status
        CHECK (request_status IN ('APPROVED', 'WITHDRAWN', 'CANCELLED')),
    CONSTRAINT ck_enrollment_active CHECK (is_active = (request_status = 'APPROVED'))
);
CREATE UNIQUE INDEX uq_user_semester_enrollment
    ON semester_enrollments (tenant, user_id, semester_id) WHERE is_active;
CREATE INDEX ix_enrollment_semester ON semester_enrollments (tenant, semester_id, is_active);

CREATE TABLE sessions (
    tenant          text COLLATE "C" NOT NULL,
    id              text COLLATE "C" NOT NULL,
    semester_id     text COLLATE "C",
    name            text NOT NULL,
    price           bigint NOT NULL DEFAULT 0 CHECK (price >= 0),
    capacity        bigint NOT NULL CHECK (capacity > 0),
    available_spots bigint NOT NULL,
    date_start      bigint NOT NULL,
    date_end        bigint NOT NULL,
    created_at      bigint NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, semester_id) REFERENCES semesters (tenant, id),
    CONSTRAINT ck_session_spots CHECK (available_spots BETWEEN 0 AND capacity),
    CONSTRAINT ck_session_times CHECK (date_end > date_start)
);
CREATE INDEX ix_session_semester ON sessions (tenant, semester_id);

-- A live booking is confirmed or waitlisted. Only a waitlisted one has a position: 1, 2, 3, …
CREATE TABLE bookings (
    tenant            text COLLATE "C" NOT NULL,
    id                text COLLATE "C" NOT NULL,
    user_id           text COLLATE "C" NOT NULL,
    session_id        text COLLATE "C" NOT NULL,
    status            text NOT NULL,
    is_live           boolean NOT NULL,
    waitlist_position bigint,
    price             bigint NOT NULL CHECK (price >= 0),
    cancellation_id   text COLLATE "C",
    created_at        bigint NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id),
    FOREIGN KEY (tenant, session_id) REFERENCES sessions (tenant, id),
    CONSTRAINT ck_booking_status CHECK (status IN ('CONFIRMED', 'WAITLISTED', 'CANCELLED')),
    CONSTRAINT ck_booking_live CHECK (is_live = (status <> 'CANCELLED')),
    CONSTRAINT ck_booking_position
        CHECK ((waitlist_position IS NOT NULL) = (status = 'WAITLISTED')),
    -- deferrable: checked when a statement ends, not row by row
    CONSTRAINT uq_booking_waitlist_position UNIQUE (tenant, session_id, waitlist_position)
        DEFERRABLE INITIALLY IMMEDIATE
);
CREATE UNIQUE INDEX uq_booking_live ON bookings (tenant, session_id, user_id) WHERE is_live;
CREATE INDEX ix_booking_user ON bookings (tenant, user_id, is_live);

CREATE TABLE attendance (
    tenant     text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    booking_id text COLLATE "C" NOT NULL,
    status     text NOT NULL CHECK (status IN ('PRESENT', 'ABSENT', 'LATE')),
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, booking_id) REFERENCES bookings (tenant, id)
);
CREATE UNIQUE INDEX uq_attendance_booking ON attendance (tenant, booking_id);

-- The ledgers: a balance of `users` is the sum of its amounts. A row is inserted before the balance
-- changes; balance_after follows in the same transaction.
CREATE TABLE credit_transactions (
    tenant          text COLLATE "C" NOT NULL,
    id              text COLLATE "C" NOT NULL,
    user_id         text COLLATE "C" NOT NULL,
    semester_id     text COLLATE "C",
    amount          bigint NOT NULL,
    balance_after   bigint,
    type            text NOT NULL,
    idempotency_key text NOT NULL,
    created_at      bigint NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE UNIQUE INDEX uq_credit_transaction_idempotency
    ON credit_transactions (tenant, idempotency_key);
CREATE INDEX ix_credit_transaction_user ON credit_transactions (tenant, user_id);
CREATE TABLE xp_transactions (
    tenant          text COLLATE "C" NOT NULL,
    id              text COLLATE "C" NOT NULL,
    user_id         text COLLATE "C" NOT NULL,
    semester_id     text COLLATE "C",
    amount          bigint NOT NULL,
    balance_after   bigint,
    type            text NOT NULL,
    idempotency_key text NOT NULL,
    created_at      bigint NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE UNIQUE INDEX uq_xp_transaction_idempotency ON xp_transactions (tenant, idempotency_key);
CREATE INDEX ix_xp_transaction_user ON xp_transactions (tenant, user_id);

CREATE TABLE user_licenses (
    tenant              text COLLATE "C" NOT NULL,
    id                  text COLLATE "C" NOT NULL,
    user_id             text COLLATE "C" NOT NULL,
    specialization_type text NOT NULL,
    is_active           boolean NOT NULL,
    football_skills     jsonb NOT NULL,
    created_at          bigint NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE UNIQUE INDEX uq_user_license_active
    ON user_licenses (tenant, user_id, specialization_type) WHERE is_active;

-- The last four columns are what the step of the skills used; a replay reads them.
CREATE TABLE tournament_participations (
    tenant             text COLLATE "C" NOT NULL,
    id                 text COLLATE "C" NOT NULL,
    user_id            text COLLATE "C" NOT NULL,
    semester_id        text COLLATE "C" NOT NULL,
    license_id         text COLLATE "C",
    placement          bigint NOT NULL CHECK (placement > 0),
    skill_rating_delta double precision,
    xp_awarded         bigint NOT NULL,
    credits_awarded    bigint NOT NULL,
    achieved_at        bigint NOT NULL,
    players            bigint NOT NULL,
    skill_weights      jsonb NOT NULL,
    match_modifier     double precision    NOT NULL,
    opponent_factor    double precision    NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id),
    FOREIGN KEY (tenant, semester_id) REFERENCES semesters (tenant, id),
    FOREIGN KEY (tenant, license_id) REFERENCES user_licenses (tenant, id)
);
CREATE UNIQUE INDEX uq_user_semester_participation
    ON tournament_participations (tenant, user_id, semester_id);
CREATE INDEX ix_participation_history
    ON tournament_participations (tenant, user_id, achieved_at, id);
CREATE INDEX ix_participation_semester ON tournament_participations (tenant, semester_id);

CREATE TABLE tournament_badges (
    tenant      text COLLATE "C" NOT NULL,
    id          text COLLATE "C" NOT NULL,
    user_id     text COLLATE "C" NOT NULL,
    semester_id text COLLATE "C" NOT NULL,
    badge_type  text NOT NULL,
    created_at  bigint NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id),
    FOREIGN KEY (tenant, semester_id) REFERENCES semesters (tenant, id)
);
-- mutant campus_badge_unguarded: CREATE INDEX uq_user_tournament_badge
CREATE UNIQUE INDEX uq_user_tournament_badge
    ON tournament_badges (tenant, user_id, semester_id, badge_type);

CREATE TABLE tournament_rankings (
    tenant        text COLLATE "C" NOT NULL,
    semester_id   text COLLATE "C" NOT NULL,
    user_id       text COLLATE "C" NOT NULL,
    rank          bigint NOT NULL CHECK (rank > 0),
    points        bigint NOT NULL,
    wins          bigint NOT NULL,
    matches       bigint NOT NULL,
    goals_for     bigint NOT NULL,
    goals_against bigint NOT NULL,
    PRIMARY KEY (tenant, semester_id, user_id),
    FOREIGN KEY (tenant, semester_id) REFERENCES semesters (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE UNIQUE INDEX uq_tournament_rank ON tournament_rankings (tenant, semester_id, rank);

CREATE TABLE tournament_matches (
    tenant       text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    semester_id  text COLLATE "C" NOT NULL,
    home_user_id text COLLATE "C" NOT NULL,
    away_user_id text COLLATE "C" NOT NULL,
    home_goals   bigint NOT NULL DEFAULT 0 CHECK (home_goals >= 0),
    away_goals   bigint NOT NULL DEFAULT 0 CHECK (away_goals >= 0),
    finished     boolean NOT NULL,
    created_at   bigint NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, semester_id) REFERENCES semesters (tenant, id),
    FOREIGN KEY (tenant, home_user_id) REFERENCES users (tenant, id),
    FOREIGN KEY (tenant, away_user_id) REFERENCES users (tenant, id),
    CONSTRAINT ck_match_players CHECK (home_user_id <> away_user_id)
);
CREATE INDEX ix_match_semester ON tournament_matches (tenant, semester_id);

CREATE TABLE tournament_skill_weights (
    tenant      text COLLATE "C" NOT NULL,
    semester_id text COLLATE "C" NOT NULL,
    skill       text NOT NULL,
    weight      double precision NOT NULL CHECK (weight >= 0 AND weight <= 10),
    PRIMARY KEY (tenant, semester_id, skill),
    FOREIGN KEY (tenant, semester_id) REFERENCES semesters (tenant, id)
);

CREATE TABLE football_skill_assessments (
    tenant     text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    license_id text COLLATE "C" NOT NULL,
    skill      text NOT NULL,
    value      double precision    NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, license_id) REFERENCES user_licenses (tenant, id)
);

CREATE TABLE system_events (
    tenant     text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    level      text NOT NULL CHECK (level IN ('INFO', 'WARNING', 'ERROR')),
    type       text NOT NULL,
    text       text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX ix_system_event_level ON system_events (tenant, level, created_at);
