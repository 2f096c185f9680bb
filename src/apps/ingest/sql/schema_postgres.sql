-- schema_postgres.sql: as schema_sqlite.sql.

-- name: ingest_postgres_1
CREATE TABLE tracks (
    tenant        text    NOT NULL,
    id            text    NOT NULL COLLATE "C",
    source        text    NOT NULL COLLATE "C",
    slug          text    NOT NULL COLLATE "C",
    name          text    NOT NULL COLLATE "C",
    created_at_ms bigint  NOT NULL,
    updated_at_ms bigint  NOT NULL,
    CONSTRAINT tracks_pkey PRIMARY KEY (tenant, id),
    CONSTRAINT tracks_source_key UNIQUE (tenant, source, slug)
);

CREATE TABLE events (
    tenant              text    NOT NULL,
    id                  text    NOT NULL COLLATE "C",
    source              text    NOT NULL COLLATE "C",
    source_event_id     text    NOT NULL COLLATE "C",
    track_id            text    NOT NULL COLLATE "C",
    name                text    NOT NULL COLLATE "C",
    club                text    NOT NULL,
    meet                text    NOT NULL,
    first_day           text    NOT NULL COLLATE "C",
    last_day            text    NOT NULL,
    n_entries           integer,
    n_drivers           integer,
    n_laps              integer,
    search_text         text    NOT NULL,
    ingest_depth        text    NOT NULL,
    digest              text    NOT NULL,
    last_ingested_at_ms bigint,
    created_at_ms       bigint  NOT NULL,
    updated_at_ms       bigint  NOT NULL,
    CONSTRAINT events_pkey PRIMARY KEY (tenant, id),
    CONSTRAINT events_source_key UNIQUE (tenant, source, source_event_id),
    CONSTRAINT events_track_id_fkey FOREIGN KEY (tenant, track_id) REFERENCES tracks (tenant, id),
    CONSTRAINT events_ingest_depth_check CHECK (ingest_depth IN ('none', 'laps_full')),
    CONSTRAINT events_ingested_check CHECK (ingest_depth = 'none' OR
                                            (digest <> '' AND last_ingested_at_ms IS NOT NULL))
);
CREATE INDEX events_first_day ON events (tenant, first_day, id);
CREATE INDEX events_name ON events (tenant, name, id);
CREATE INDEX events_track ON events (tenant, track_id, first_day);

CREATE TABLE drivers (
    tenant           text    NOT NULL,
    id               text    NOT NULL COLLATE "C",
    source           text    NOT NULL COLLATE "C",
    source_driver_id text    NOT NULL COLLATE "C",
    name             text    NOT NULL COLLATE "C",
    match_name       text    NOT NULL COLLATE "C",
    created_at_ms    bigint  NOT NULL,
    updated_at_ms    bigint  NOT NULL,
    CONSTRAINT drivers_pkey PRIMARY KEY (tenant, id),
    CONSTRAINT drivers_source_key UNIQUE (tenant, source, source_driver_id)
);

CREATE TABLE event_entries (
    tenant        text    NOT NULL,
    event_id      text    NOT NULL COLLATE "C",
    class_name    text    NOT NULL COLLATE "C",
    upper_name    text    NOT NULL COLLATE "C",
    car_number    text    NOT NULL COLLATE "C",
    name          text    NOT NULL COLLATE "C",
    match_name    text    NOT NULL COLLATE "C",
    transponder   text,
    driver_id     text COLLATE "C",
    created_at_ms bigint  NOT NULL,
    updated_at_ms bigint  NOT NULL,
    CONSTRAINT event_entries_pkey
        PRIMARY KEY (tenant, event_id, class_name, upper_name, car_number),
    CONSTRAINT event_entries_event_id_fkey
        FOREIGN KEY (tenant, event_id) REFERENCES events (tenant, id),
    CONSTRAINT event_entries_driver_id_fkey
        FOREIGN KEY (tenant, driver_id) REFERENCES drivers (tenant, id)
);
CREATE INDEX event_entries_match_name
    ON event_entries (tenant, event_id, class_name, match_name);
CREATE INDEX event_entries_driver ON event_entries (tenant, driver_id);

CREATE TABLE races (
    tenant         text    NOT NULL,
    id             text    NOT NULL COLLATE "C",
    event_id       text    NOT NULL COLLATE "C",
    source_race_id text    NOT NULL COLLATE "C",
    race_order     integer,
    class_name     text    NOT NULL COLLATE "C",
    label          text    NOT NULL,
    section        text    NOT NULL,
    session_type   text    NOT NULL,
    url            text    NOT NULL COLLATE "C",
    completed_at   text    NOT NULL,
    round          text    NOT NULL,
    length         text    NOT NULL,
    length_ms      bigint,
    has_laps       integer NOT NULL,
    digest         text    NOT NULL,
    created_at_ms  bigint  NOT NULL,
    updated_at_ms  bigint  NOT NULL,
    ingested_at_ms bigint  NOT NULL,
    CONSTRAINT races_pkey PRIMARY KEY (tenant, id),
    CONSTRAINT races_source_key UNIQUE (tenant, event_id, source_race_id),
    CONSTRAINT races_event_id_fkey FOREIGN KEY (tenant, event_id) REFERENCES events (tenant, id),
    CONSTRAINT races_session_type_check CHECK (session_type IN
        ('race', 'seeding', 'practice', 'qualifying', 'main', 'heat')),
    CONSTRAINT races_has_laps_check CHECK (has_laps IN (0, 1))
);

CREATE TABLE race_drivers (
    tenant           text    NOT NULL,
    id               text    NOT NULL COLLATE "C",
    race_id          text    NOT NULL COLLATE "C",
    source_driver_id text    NOT NULL COLLATE "C",
    driver_id        text    NOT NULL COLLATE "C",
    name             text    NOT NULL COLLATE "C",
    match_name       text    NOT NULL COLLATE "C",
    car_number       text    NOT NULL COLLATE "C",
    CONSTRAINT race_drivers_pkey PRIMARY KEY (tenant, id),
    CONSTRAINT race_drivers_source_key UNIQUE (tenant, race_id, source_driver_id),
    CONSTRAINT race_drivers_race_id_fkey
        FOREIGN KEY (tenant, race_id) REFERENCES races (tenant, id),
    CONSTRAINT race_drivers_driver_id_fkey
        FOREIGN KEY (tenant, driver_id) REFERENCES drivers (tenant, id)
);
CREATE INDEX race_drivers_driver ON race_drivers (tenant, driver_id);

CREATE TABLE race_results (
    tenant            text    NOT NULL,
    id                text    NOT NULL COLLATE "C",
    race_id           text    NOT NULL COLLATE "C",
    race_driver_id    text    NOT NULL COLLATE "C",
    position          integer NOT NULL,
    qualified         integer,
    laps_completed    integer NOT NULL,
    total_raw         text,
    total_ms          bigint,
    behind_raw        text,
    behind_ms         bigint,
    behind_laps       integer,
    fastest_ms        bigint,
    fastest_lap       integer,
    average_ms        bigint,
    consistency_milli integer,
    extras            jsonb   NOT NULL,
    CONSTRAINT race_results_pkey PRIMARY KEY (tenant, id),
    CONSTRAINT race_results_driver_key UNIQUE (tenant, race_id, race_driver_id),
    CONSTRAINT race_results_race_id_fkey
        FOREIGN KEY (tenant, race_id) REFERENCES races (tenant, id),
    CONSTRAINT race_results_race_driver_id_fkey
        FOREIGN KEY (tenant, race_driver_id) REFERENCES race_drivers (tenant, id),
    CONSTRAINT race_results_position_check CHECK (position >= 1),
    CONSTRAINT race_results_laps_completed_check CHECK (laps_completed >= 0),
    CONSTRAINT race_results_total_check CHECK (total_ms > 0),
    CONSTRAINT race_results_consistency_check CHECK (consistency_milli BETWEEN 0 AND 100000)
);
CREATE INDEX race_results_race_driver ON race_results (tenant, race_driver_id);

CREATE TABLE laps (
    tenant         text    NOT NULL,
    race_result_id text    NOT NULL COLLATE "C",
    lap_number     integer NOT NULL,
    position       integer,
    time_raw       text    NOT NULL,
    time_ms        bigint  NOT NULL,
    pace           text    NOT NULL,
    elapsed_ms     bigint  NOT NULL,
    segments       jsonb,
    CONSTRAINT laps_pkey PRIMARY KEY (tenant, race_result_id, lap_number),
    CONSTRAINT laps_race_result_id_fkey
        FOREIGN KEY (tenant, race_result_id) REFERENCES race_results (tenant, id),
    CONSTRAINT laps_lap_number_check CHECK (lap_number >= 1),
    CONSTRAINT laps_time_check CHECK (time_ms > 0)
);

CREATE TABLE users (
    tenant        text    NOT NULL,
    id            text    NOT NULL COLLATE "C",
    email         text    NOT NULL COLLATE "C",
    name          text    NOT NULL COLLATE "C",
    match_name    text    NOT NULL COLLATE "C",
    transponder   text,
    created_at_ms bigint  NOT NULL,
    updated_at_ms bigint  NOT NULL,
    CONSTRAINT users_pkey PRIMARY KEY (tenant, id),
    CONSTRAINT users_email_key UNIQUE (tenant, email)
);

CREATE TABLE user_driver_links (
    tenant        text    NOT NULL,
    id            text    NOT NULL COLLATE "C",
    driver_id     text    NOT NULL COLLATE "C",
    user_id       text    NOT NULL COLLATE "C",
    state         text    NOT NULL,
    rival_id      text COLLATE "C",
    score_milli   integer NOT NULL,
    created_at_ms bigint  NOT NULL,
    updated_at_ms bigint  NOT NULL,
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
);
CREATE INDEX user_driver_links_user ON user_driver_links (tenant, user_id);
CREATE INDEX user_driver_links_rival ON user_driver_links (tenant, rival_id);

CREATE TABLE event_driver_links (
    tenant        text    NOT NULL,
    user_id       text    NOT NULL COLLATE "C",
    event_id      text    NOT NULL COLLATE "C",
    driver_id     text    NOT NULL COLLATE "C",
    match_type    text    NOT NULL,
    score_milli   integer NOT NULL,
    transponder   text,
    created_at_ms bigint  NOT NULL,
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
);
CREATE INDEX event_driver_links_event ON event_driver_links (tenant, event_id);
CREATE INDEX event_driver_links_driver ON event_driver_links (tenant, driver_id);

CREATE TABLE page_validators (
    tenant        text    NOT NULL,
    url           text    NOT NULL COLLATE "C",
    etag          text    NOT NULL,
    last_modified text    NOT NULL,
    updated_at_ms bigint  NOT NULL,
    CONSTRAINT page_validators_pkey PRIMARY KEY (tenant, url)
);
