-- schema_sqlite.sql: the tables of race results. A step that has been released never changes.
--
-- A natural key of each table begins with the tenant; foreign keys are named after their table.
-- Times ..._at_ms are ms since 1970, durations ..._ms are ms; NULL = the page does not give it.
-- Texts are normalised. match_name: the form in which names are compared.

-- name: ingest_sqlite_1
CREATE TABLE tracks (
    tenant        TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    source        TEXT    NOT NULL,
    slug          TEXT    NOT NULL,
    name          TEXT    NOT NULL, -- '' = not known yet
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    CONSTRAINT tracks_pkey PRIMARY KEY (tenant, id),
    CONSTRAINT tracks_source_key UNIQUE (tenant, source, slug)
) STRICT;

CREATE TABLE events (
    tenant              TEXT    NOT NULL,
    id                  TEXT    NOT NULL,
    source              TEXT    NOT NULL,
    source_event_id     TEXT    NOT NULL,
    track_id            TEXT    NOT NULL,
    name                TEXT    NOT NULL, -- '' = not known yet
    club                TEXT    NOT NULL,
    meet                TEXT    NOT NULL,
    first_day           TEXT    NOT NULL, -- 2025-11-16, or ''
    last_day            TEXT    NOT NULL,
    n_entries           INTEGER,          -- the three as the site says
    n_drivers           INTEGER,
    n_laps              INTEGER,
    search_text         TEXT    NOT NULL, -- name, track and ids in upper case
    ingest_depth        TEXT    NOT NULL,
    digest              TEXT    NOT NULL, -- of the page at the last finished ingestion, or ''
    last_ingested_at_ms INTEGER,
    created_at_ms       INTEGER NOT NULL,
    updated_at_ms       INTEGER NOT NULL,
    CONSTRAINT events_pkey PRIMARY KEY (tenant, id),
    CONSTRAINT events_source_key UNIQUE (tenant, source, source_event_id),
    CONSTRAINT events_track_id_fkey FOREIGN KEY (tenant, track_id) REFERENCES tracks (tenant, id),
    CONSTRAINT events_ingest_depth_check CHECK (ingest_depth IN ('none', 'laps_full')),
    CONSTRAINT events_ingested_check CHECK (ingest_depth = 'none' OR
                                            (digest <> '' AND last_ingested_at_ms IS NOT NULL))
) STRICT;
CREATE INDEX events_first_day ON events (tenant, first_day, id);
CREATE INDEX events_name ON events (tenant, name, id);
CREATE INDEX events_track ON events (tenant, track_id, first_day);

CREATE TABLE drivers (
    tenant           TEXT    NOT NULL,
    id               TEXT    NOT NULL,
    source           TEXT    NOT NULL,
    source_driver_id TEXT    NOT NULL,
    name             TEXT    NOT NULL,
    match_name       TEXT    NOT NULL,
    created_at_ms    INTEGER NOT NULL,
    updated_at_ms    INTEGER NOT NULL,
    CONSTRAINT drivers_pkey PRIMARY KEY (tenant, id),
    CONSTRAINT drivers_source_key UNIQUE (tenant, source, source_driver_id)
) STRICT;

CREATE TABLE event_entries (
    tenant        TEXT    NOT NULL,
    event_id      TEXT    NOT NULL,
    class_name    TEXT    NOT NULL,
    upper_name    TEXT    NOT NULL,
    car_number    TEXT    NOT NULL, -- may be ''
    name          TEXT    NOT NULL,
    match_name    TEXT    NOT NULL,
    transponder   TEXT,
    driver_id     TEXT,             -- NULL until a race page supplies it
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    CONSTRAINT event_entries_pkey
        PRIMARY KEY (tenant, event_id, class_name, upper_name, car_number),
    CONSTRAINT event_entries_event_id_fkey
        FOREIGN KEY (tenant, event_id) REFERENCES events (tenant, id),
    CONSTRAINT event_entries_driver_id_fkey
        FOREIGN KEY (tenant, driver_id) REFERENCES drivers (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX event_entries_match_name
    ON event_entries (tenant, event_id, class_name, match_name);
CREATE INDEX event_entries_driver ON event_entries (tenant, driver_id);

CREATE TABLE races (
    tenant         TEXT    NOT NULL,
    id             TEXT    NOT NULL,
    event_id       TEXT    NOT NULL,
    source_race_id TEXT    NOT NULL,
    race_order     INTEGER,          -- as the event page numbers it
    class_name     TEXT    NOT NULL,
    label          TEXT    NOT NULL,
    section        TEXT    NOT NULL,
    session_type   TEXT    NOT NULL,
    url            TEXT    NOT NULL,
    completed_at   TEXT    NOT NULL, -- local time without a zone, or ''
    round          TEXT    NOT NULL,
    length         TEXT    NOT NULL,
    length_ms      INTEGER,
    has_laps       INTEGER NOT NULL, -- the page has laps: the race was run
    digest         TEXT    NOT NULL, -- of its page
    created_at_ms  INTEGER NOT NULL,
    updated_at_ms  INTEGER NOT NULL,
    ingested_at_ms INTEGER NOT NULL, -- when its page was last seen
    CONSTRAINT races_pkey PRIMARY KEY (tenant, id),
    CONSTRAINT races_source_key UNIQUE (tenant, event_id, source_race_id),
    CONSTRAINT races_event_id_fkey FOREIGN KEY (tenant, event_id) REFERENCES events (tenant, id),
    CONSTRAINT races_session_type_check CHECK (session_type IN
        ('race', 'seeding', 'practice', 'qualifying', 'main', 'heat')),
    CONSTRAINT races_has_laps_check CHECK (has_laps IN (0, 1))
) STRICT;

CREATE TABLE race_drivers (
    tenant           TEXT    NOT NULL,
    id               TEXT    NOT NULL,
    race_id          TEXT    NOT NULL,
    source_driver_id TEXT    NOT NULL,
    driver_id        TEXT    NOT NULL,
    name             TEXT    NOT NULL, -- as this race writes it
    match_name       TEXT    NOT NULL,
    car_number       TEXT    NOT NULL, -- may be ''
    CONSTRAINT race_drivers_pkey PRIMARY KEY (tenant, id),
    CONSTRAINT race_drivers_source_key UNIQUE (tenant, race_id, source_driver_id),
    CONSTRAINT race_drivers_race_id_fkey
        FOREIGN KEY (tenant, race_id) REFERENCES races (tenant, id),
    CONSTRAINT race_drivers_driver_id_fkey
        FOREIGN KEY (tenant, driver_id) REFERENCES drivers (tenant, id)
) STRICT;
CREATE INDEX race_drivers_driver ON race_drivers (tenant, driver_id);

CREATE TABLE race_results (
    tenant            TEXT    NOT NULL,
    id                TEXT    NOT NULL,
    race_id           TEXT    NOT NULL,
    race_driver_id    TEXT    NOT NULL,
    position          INTEGER NOT NULL,
    qualified         INTEGER,
    laps_completed    INTEGER NOT NULL,
    total_raw         TEXT,
    total_ms          INTEGER,
    behind_raw        TEXT,
    behind_ms         INTEGER,
    behind_laps       INTEGER,
    fastest_ms        INTEGER,
    fastest_lap       INTEGER,
    average_ms        INTEGER,
    consistency_milli INTEGER, -- thousandths of a percent
    extras            TEXT    NOT NULL, -- JSON: {"average_top_5_ms": ...}
    CONSTRAINT race_results_pkey PRIMARY KEY (tenant, id),
    CONSTRAINT race_results_driver_key UNIQUE (tenant, race_id, race_driver_id),
    CONSTRAINT race_results_race_id_fkey
        FOREIGN KEY (tenant, race_id) REFERENCES races (tenant, id),
    CONSTRAINT race_results_race_driver_id_fkey
        FOREIGN KEY (tenant, race_driver_id) REFERENCES race_drivers (tenant, id),
    CONSTRAINT race_results_position_check CHECK (position >= 1),
    CONSTRAINT race_results_laps_completed_check CHECK (laps_completed >= 0),
    CONSTRAINT race_results_total_check CHECK (total_ms > 0),
    CONSTRAINT race_results_consistency_check CHECK (consistency_milli BETWEEN 0 AND 100000),
    CONSTRAINT race_results_extras_check CHECK (json_valid(extras))
) STRICT;
CREATE INDEX race_results_race_driver ON race_results (tenant, race_driver_id);

CREATE TABLE laps (
    tenant         TEXT    NOT NULL,
    race_result_id TEXT    NOT NULL,
    lap_number     INTEGER NOT NULL,
    position       INTEGER,
    time_raw       TEXT    NOT NULL,
    time_ms        INTEGER NOT NULL,
    pace           TEXT    NOT NULL, -- may be ''
    elapsed_ms     INTEGER NOT NULL,
    segments       TEXT,             -- JSON: a list of texts
    CONSTRAINT laps_pkey PRIMARY KEY (tenant, race_result_id, lap_number),
    CONSTRAINT laps_race_result_id_fkey
        FOREIGN KEY (tenant, race_result_id) REFERENCES race_results (tenant, id),
    CONSTRAINT laps_lap_number_check CHECK (lap_number >= 1),
    CONSTRAINT laps_time_check CHECK (time_ms > 0),
    CONSTRAINT laps_segments_check CHECK (segments IS NULL OR json_valid(segments))
) STRICT, WITHOUT ROWID;

CREATE TABLE users (
    tenant        TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    email         TEXT    NOT NULL, -- in lower case
    name          TEXT    NOT NULL,
    match_name    TEXT    NOT NULL,
    transponder   TEXT,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    CONSTRAINT users_pkey PRIMARY KEY (tenant, id),
    CONSTRAINT users_email_key UNIQUE (tenant, email)
) STRICT;

CREATE TABLE user_driver_links (
    tenant        TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    driver_id     TEXT    NOT NULL,
    user_id       TEXT    NOT NULL,
    state         TEXT    NOT NULL,
    rival_id      TEXT,             -- conflict: another user who matches, too
    score_milli   INTEGER NOT NULL, -- 1000 = certain
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    CONSTRAINT user_driver_links_pkey PRIMARY KEY (tenant, id),
    CONSTRAINT user_driver_links_driver_key UNIQUE (tenant, driver_id),
    CONSTRAINT user_driver_links_driver_id_fkey
        FOREIGN KEY (tenant, driver_id) REFERENCES drivers (tenant, id),
    CONSTRAINT user_driver_links_user_id_fkey
        FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id),
    CONSTRAINT user_driver_links_rival_id_fkey
        FOREIGN KEY (tenant, rival_id) REFERENCES users (tenant, id),
    CONSTRAINT user_driver_links_state_check
        CHECK (state IN ('suggested', 'confirmed', 'rejected', 'conflict')),
    CONSTRAINT user_driver_links_score_check CHECK (score_milli BETWEEN 0 AND 1000)
) STRICT;
CREATE INDEX user_driver_links_user ON user_driver_links (tenant, user_id);
CREATE INDEX user_driver_links_rival ON user_driver_links (tenant, rival_id);

CREATE TABLE event_driver_links (
    tenant        TEXT    NOT NULL,
    user_id       TEXT    NOT NULL,
    event_id      TEXT    NOT NULL,
    driver_id     TEXT    NOT NULL,
    match_type    TEXT    NOT NULL,
    score_milli   INTEGER NOT NULL,
    transponder   TEXT,             -- the one that both have
    created_at_ms INTEGER NOT NULL,
    CONSTRAINT event_driver_links_pkey PRIMARY KEY (tenant, user_id, event_id, driver_id),
    CONSTRAINT event_driver_links_user_id_fkey
        FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id),
    CONSTRAINT event_driver_links_event_id_fkey
        FOREIGN KEY (tenant, event_id) REFERENCES events (tenant, id),
    CONSTRAINT event_driver_links_driver_id_fkey
        FOREIGN KEY (tenant, driver_id) REFERENCES drivers (tenant, id),
    CONSTRAINT event_driver_links_match_type_check
        CHECK (match_type IN ('transponder', 'exact', 'fuzzy')),
    CONSTRAINT event_driver_links_score_check CHECK (score_milli BETWEEN 0 AND 1000)
) STRICT, WITHOUT ROWID;
CREATE INDEX event_driver_links_event ON event_driver_links (tenant, event_id);
CREATE INDEX event_driver_links_driver ON event_driver_links (tenant, driver_id);

CREATE TABLE page_validators (
    tenant        TEXT    NOT NULL,
    url           TEXT    NOT NULL,
    etag          TEXT    NOT NULL, -- '' = none
    last_modified TEXT    NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    CONSTRAINT page_validators_pkey PRIMARY KEY (tenant, url)
) STRICT, WITHOUT ROWID;
