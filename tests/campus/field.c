/*
 * field.c: a campus for tests; see field.h.
 */
#include "campus/field.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "harness/postgres.h"
#include "harness/proc.h"

#define HOUR_MS (INT64_C(3600) * 1000)

void
t_field_make(struct t_field *f)
{
    static unsigned n;
    const char     *kind = getenv("IL_TEST_GUARD");

    *f = (struct t_field){ .is_postgres = kind != NULL && strcmp(kind, "postgres") == 0 };
    t_tmp_make(f->dir);
    t_path(f->store_url, "sqlite:%s/x.db", f->dir);
    t_path(f->data_url, "%s", f->store_url);
    if (f->is_postgres) {
        (void)snprintf(f->schema, sizeof f->schema, "f_%d_%u", (int)getpid(), n++);
        t_path(f->server, "%s", t_postgres_url());
        t_path(f->data_url, "%s&schema=%s", f->server, f->schema);
    }
    t_field_open(f);
}

void
t_field_open(struct t_field *f)
{
    const struct tables_opts o = { .observe = f->observe, .cookie = f->cookie };
    il_error                 err;

    if (f->db != NULL)
        return;
    if (il__tables_place_open(f->store_url, f->data_url, false, &f->place, &err) != IL_OK ||
        il__tables_open(&campus_tables, f->place, &o, &f->db, &err) != IL_OK ||
        il_open(f->store_url, NULL, &f->store, &err) != IL_OK)
        T_FAIL("%s: %s", f->data_url, err.message);
}

void
t_field_close(struct t_field *f)
{
    il_guard_close(f->db);
    il_close(f->store);
    il__tables_place_close(f->place);
    f->db    = NULL;
    f->store = NULL;
    f->place = NULL;
}

void
t_field_release(struct t_field *f)
{
    char sql[128], out[T_PG_TEXT_BYTES];

    t_field_close(f);
    il__arena_free(&f->mem);
    if (f->is_postgres) {
        (void)snprintf(sql, sizeof sql, "DROP SCHEMA %s_campus CASCADE", f->schema);
        (void)t_postgres_ask(f->server, sql, out);
    }
    t_tmp_remove(f->dir);
}

/* ---- operations ------------------------------------------------------------------------------ */

enum campus_code
t_call(struct t_field *f, campus_fn *fn, const char *id, const struct campus_in *in, void *out)
{
    char new_id[37];
    union {
        struct campus_finalized  finalized;
        struct campus_tournament tournament;
    } unused;
    struct campus_call c = { .db     = f->db,
                             .store  = f->store,
                             .tenant = F_TENANT,
                             .id     = id != NULL ? id : new_id,
                             .now_ms = f->now_ms != 0 ? f->now_ms : il__clock_wall_ms(),
                             .mem    = f->mem };

    T_EQ(il_uuid(new_id), IL_OK);
    if (id == NULL) /* the answer may point to it */
        c.id = il__arena_strdup(&c.mem, new_id);
    f->err       = (il_error){ .message = "" };
    il_status st = fn(&c, in, out != NULL ? out : &unused, &f->err);
    f->mem       = c.mem;
    for (unsigned i = 0; i < CAMPUS_RACE_COUNT; i++)
        f->n_races[i] += c.n_races[i];
    if (st != IL_OK && c.code == CAMPUS_OK)
        T_FAIL("%s (%s)", f->err.message, il_status_name(st));
    T_EQ(st == IL_OK, c.code == CAMPUS_OK);
    return c.code;
}

const char *
t_user(unsigned i)
{
    static char     texts[8][16];
    static unsigned at;
    char           *text = texts[at++ % 8];

    (void)snprintf(text, sizeof texts[0], "u%u", i);
    return text;
}

void
t_users(struct t_field *f, unsigned n, int64_t credits, const char *skills)
{
    for (unsigned i = 1; i <= n; i++) {
        char email[32], license[16];
        (void)snprintf(email, sizeof email, "u%u@example.com", i);
        (void)snprintf(license, sizeof license, "l%u", i);
        T_DO(f, campus_user_create, t_user(i), NULL, .email = email, .credits = credits);
        if (skills != NULL)
            T_DO(f, campus_license_create, license, NULL, .user = t_user(i), .skills = skills);
    }
}

void
t_move(struct t_field *f, const char *tournament, enum campus_state state)
{
    T_DO(f, campus_transition, NULL, NULL, .tournament = tournament,
         .state = campus_state_name(state));
}

void
t_tournament(struct t_field *f, const char *id, int64_t max_players, int64_t cost,
             enum campus_state state)
{
    T_DO(f, campus_tournament_create, id, NULL, .code = id, .campus = "north",
         .max_players = max_players, .cost = cost);
    for (unsigned i = CAMPUS_ENROLLMENT_OPEN; i <= state && state != CAMPUS_DRAFT; i++)
        t_move(f, id, i);
}

void
t_session(struct t_field *f, const char *id, const char *tournament, int64_t capacity,
          int64_t price, int64_t in_hours)
{
    int64_t start_ms = il__clock_wall_ms() + in_hours * HOUR_MS;

    T_DO(f, campus_session_create, id, NULL, .name = id, .tournament = tournament,
         .capacity = capacity, .price = price, .start_ms = start_ms,
         .end_ms = start_ms + 2 * HOUR_MS);
}

void
t_enroll(struct t_field *f, const char *tournament, unsigned from, unsigned to)
{
    for (unsigned i = from; i <= to; i++)
        T_DO(f, campus_enroll, NULL, NULL, .tournament = tournament, .user = t_user(i));
}

/* ---- the database ---------------------------------------------------------------------------- */

static int
take_first(void *cookie, int n, char **values, char **names UNUSED)
{
    if (n > 0 && ((char *)cookie)[0] == '\0')
        (void)snprintf(cookie, 4096, "%s", values[0] != NULL ? values[0] : "");
    return 0;
}

static const char *
ask(struct t_field *f, const char *before, const char *sql, char out[4096])
{
    sqlite3 *db  = NULL;
    char    *why = NULL;
    char     path[T_PATH_BYTES];

    out[0] = '\0';
    if (f->is_postgres) {
        t_path(path, "%s&options=-csearch_path%%3D%s_campus", f->server, f->schema);
        return t_postgres_ask(path, sql, out);
    }
    t_path(path, "%s/x-campus.db", f->dir);
    T_EQ(sqlite3_open(path, &db), SQLITE_OK);
    T_EQ(sqlite3_busy_timeout(db, 5000), SQLITE_OK);
    T_EQ(sqlite3_exec(db, before, NULL, NULL, NULL), SQLITE_OK);
    if (sqlite3_exec(db, sql, take_first, out, &why) != SQLITE_OK)
        T_FAIL("%s: %s", sql, why);
    T_EQ(sqlite3_close(db), SQLITE_OK);
    return out;
}

const char *
t_ask(struct t_field *f, const char *sql, char out[4096])
{
    return ask(f, "", sql, out);
}

int64_t
t_count(struct t_field *f, const char *sql)
{
    char out[4096], text[1024];

    (void)snprintf(text, sizeof text, "SELECT CAST((%s) AS text)", sql);
    (void)t_ask(f, text, out);
    if (out[0] == '\0')
        T_FAIL("%s: no answer", sql);
    return strtoll(out, NULL, 10);
}

int64_t
t_credits(struct t_field *f, const char *user)
{
    char sql[128];

    (void)snprintf(sql, sizeof sql, "SELECT credit_balance FROM users WHERE id = '%s'", user);
    return t_count(f, sql);
}

void
t_plant(struct t_field *f, const char *sql)
{
    static const char *const drop =
        "DO $$ DECLARE r record; BEGIN FOR r IN SELECT conrelid::regclass AS t, conname AS n "
        "FROM pg_constraint WHERE contype = 'c' AND connamespace = current_schema()::regnamespace "
        "LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', r.t, r.n); END LOOP; END $$";
    char out[4096], one[1024];

    if (f->is_postgres)
        (void)ask(f, "", drop, out);
    for (const char *end; sql != NULL; sql = end != NULL ? end + 2 : NULL) { /* one by one */
        end = strstr(sql, "; ");
        (void)snprintf(one, sizeof one, "%.*s", end != NULL ? (int)(end - sql) : 1023, sql);
        (void)ask(f, "PRAGMA ignore_check_constraints = 1; PRAGMA foreign_keys = 0", one, out);
    }
}

static void
tell_broken(void *cookie UNUSED, const struct app_invariant *invariant, int64_t n, const char *key,
            const char *text)
{
    (void)fprintf(stderr, "%s: %d offenders, first %s: %s\n", invariant->name, (int)n, key,
                  text != NULL ? text : "");
}

void
t_verify(struct t_field *f)
{
    il_error err;
    size_t   n = 0;

    if (campus_verify(f->db, F_TENANT, tell_broken, NULL, &n, &err) != IL_OK)
        T_FAIL("%s", err.message);
    T_EQ(n, 0);
}

/* ---- processes ------------------------------------------------------------------------------- */

struct process {
    struct t_field *f;
    struct t_task  *task;
};

static int
run_task(void *arg)
{
    const struct process *p = arg;
    char                  word[16];

    t_field_open(p->f);
    (void)printf("ready\n");
    (void)fflush(stdout);
    if (fgets(word, sizeof word, stdin) == NULL)
        return 1;
    p->f->now_ms = p->task->now_ms;
    enum campus_code code =
        t_call(p->f, p->task->fn, p->task->id[0] != '\0' ? p->task->id : NULL, &p->task->in, NULL);
    (void)printf("code %d\n", (int)code);
    (void)fflush(stdout);
    t_field_close(p->f);
    return 0;
}

void
t_count_down(void *cookie)
{
    struct t_victim *v = cookie;

    if (--v->at == 0)
        (void)kill(getpid(), SIGKILL);
}

void
t_at_once(struct t_field *f, struct t_task *tasks, unsigned n)
{
    static struct t_proc procs[F_TASKS_MAX];
    char                 line[T_PROC_LINE_BYTES];

    T_TRUE(n <= F_TASKS_MAX);
    t_field_close(f);
    for (unsigned i = 0; i < n; i++)
        t_proc_fork(&procs[i], run_task, &(struct process){ f, &tasks[i] });
    for (unsigned i = 0; i < n; i++)
        T_LINE(&procs[i], "ready", F_LIMIT_MS, NULL);
    for (unsigned i = 0; i < n; i++)
        t_proc_say(&procs[i], "go");
    for (unsigned i = 0; i < n; i++) {
        T_LINE(&procs[i], "code", F_LIMIT_MS, line);
        tasks[i].code = (enum campus_code)strtol(line + strlen("code "), NULL, 10);
        T_EQ(t_proc_exit(&procs[i], F_LIMIT_MS), 0);
        t_proc_release(&procs[i]);
    }
    t_field_open(f);
}

unsigned
t_with_code(const struct t_task *tasks, unsigned n, enum campus_code code)
{
    unsigned n_found = 0;

    for (unsigned i = 0; i < n; i++)
        n_found += tasks[i].code == code;
    return n_found;
}

void
t_n_times(struct t_field *f, struct t_task *tasks, unsigned n, campus_fn *fn,
          const struct campus_in *in)
{
    for (unsigned i = 0; i < n; i++)
        tasks[i] = (struct t_task){ .fn = fn, .in = *in, .now_ms = f->now_ms };
    t_at_once(f, tasks, n);
}
