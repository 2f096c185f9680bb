/*
 * doctor_database.c: `interlock doctor --connection`: opens the database, and prints what the
 * checks find. The findings are those of `doctor` with more fields: the statement that fixes it,
 * and the rows that this statement would fail on.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "cli/doctor.h"

#define STATEMENT_TIMEOUT_MS 600000 /* counting duplicates reads a whole table */

/* ---- the database ---------------------------------------------------------------------------- */

/* The URL of a name of the configuration, or the text as a URL. */
static il_status
url_of(const struct cli *cli, const char *text, char **ret, il_error *reterr)
{
    for (size_t i = 0; i < cli->config.n_connections; i++) {
        if (strcmp(cli->config.connections[i].name, text) == 0)
            return il__cli_connection_url(&cli->config.connections[i], ret, reterr);
    }
    AUTO_FREE char *url = il__config_store_url(text, NULL);
    if (url == NULL)
        return il__error_nomem(reterr);
    if (il__config_url_is_malformed(url))
        return il__error_set(
            reterr, IL_INVAL,
            "doctor: invalid --connection; use a name, sqlite:PATH, postgres://... or a path");
    if (strpbrk(text, ":/.") == NULL)
        return il__error_set(reterr, IL_INVAL,
                             "doctor: no connection '%.64s' is configured; for a file use ./%.64s",
                             text, text);
    *ret = TAKE(url);
    return IL_OK;
}

/* Looking creates no file. */
static il_status
check_url(const char *url, const char **ret_path, il_error *reterr)
{
    static const char sqlite[] = "sqlite:";

    CHECK(url != NULL);
    *ret_path = NULL;
    if (strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0)
        return IL_OK;
    if (strncmp(url, sqlite, sizeof sqlite - 1) != 0) /* not shown: it may contain a password */
        return il__error_set(reterr, IL_INVAL,
                             "doctor: unsupported database URL: use sqlite:PATH or postgres://...");
    *ret_path = url + sizeof sqlite - 1;
    if (access(*ret_path, R_OK) != 0)
        return il__error_set(reterr, IL_STORE, "cannot open database %.400s: %s", *ret_path,
                             strerror(errno));
    return IL_OK;
}

static il_status
open_database(struct doctor_database *db, const char *url, il_error *reterr)
{
    il_guard_opts    opts    = IL_GUARD_OPTS_INIT;
    il_guard_tx_opts tx_opts = IL_GUARD_TX_OPTS_INIT;

    opts.statement_timeout_ms = STATEMENT_TIMEOUT_MS;
    opts.conns_max            = 1;
    tx_opts.flags             = IL_GUARD_READ_ONLY;
    tx_opts.caller            = "interlock doctor";
    il_status st              = check_url(url, &db->path, reterr);
    if (st == IL_OK && db->path != NULL)
        db->is_wal = il__doctor_is_wal(db->path);
    if (st == IL_OK)
        st = il_guard_open(url, &opts, &db->guard, reterr);
    return st == IL_OK ? il_guard_begin(db->guard, &tx_opts, &db->tx, reterr) : st;
}

static void
close_database(struct doctor_database *db)
{
    il_guard_rollback(db->tx);
    il_guard_close(db->guard);
    il__arena_free(&db->mem);
}

/* ---- findings -------------------------------------------------------------------------------- */

struct printing {
    json_t         *items; /* NULL: not as JSON */
    struct cli_grid grid;
    struct il__buf  fixes;    /* the statements, to be printed below the grid */
    bool            with_all; /* also what is in order */
    size_t          n_shown;
    size_t          n[IL__FINDING_LEVEL_COUNT];
    bool            failed; /* no memory */
};

static void
add_json(struct printing *p, const struct doctor_finding *f)
{
    json_t *examples = json_array();

    for (size_t i = 0; i < f->n_examples; i++)
        p->failed |= json_array_append_new(examples, il__cli_json_text(f->examples[i])) != 0;
    json_t *item = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "level", il__doctor_level_name(f->level),
        "table", il__cli_json_text(f->table), "name", il__cli_json_text(f->name), "value",
        il__cli_json_text(f->value), "means", il__cli_json_text(f->means), "sql",
        il__cli_json_text(f->fix), "violations",
        f->n_violations >= 0 ? json_integer(f->n_violations) : json_null(), "examples", examples);
    p->failed |= json_array_append_new(p->items, item) != 0;
}

/* The statement, below a comment that says what for. */
static void
add_fix(struct printing *p, const struct doctor_finding *f)
{
    il__buf_adds(&p->fixes, "\n-- ");
    il__cli_escape(&p->fixes, f->table != NULL ? f->table : "the file");
    il__buf_adds(&p->fixes, ": ");
    il__cli_escape(&p->fixes, f->name);
    if (f->n_violations > 0)
        il__buf_addf(&p->fixes, "; fails while %" PRId64 " %s it", f->n_violations,
                     f->n_violations == 1 ? "row violates" : "rows violate");
    for (size_t i = 0; i < f->n_examples; i++) {
        il__buf_adds(&p->fixes, i == 0 ? ", such as those with " : "; ");
        il__cli_escape(&p->fixes, f->examples[i]);
    }
    il__buf_addc(&p->fixes, '\n');
    il__cli_escape(&p->fixes, f->fix);
    il__buf_addc(&p->fixes, '\n');
}

static void
note_finding(void *cookie, const struct doctor_finding *f)
{
    struct printing *p = cookie;

    p->n[f->level]++;
    if (f->level == IL__FINDING_GOOD && !p->with_all)
        return;
    p->n_shown++;
    if (p->items != NULL) {
        add_json(p, f);
        return;
    }
    il__cli_grid_add(&p->grid, "%s", il__doctor_level_name(f->level));
    il__cli_grid_add(&p->grid, "%s", f->table != NULL ? f->table : "-");
    il__cli_grid_add(&p->grid, "%s", f->name);
    il__cli_grid_add(&p->grid, "%s", f->value);
    il__cli_grid_add(&p->grid, "%s", f->means);
    if (f->fix != NULL)
        add_fix(p, f);
}

static int
print(struct cli *cli, struct printing *p, size_t n_tables)
{
    int status = 0;

    if (p->failed || p->fixes.failed)
        return il__cli_fail_memory();
    if (p->items != NULL)
        status = il__cli_json_print(json_pack("{s:O, s:n}", "items", p->items, "next"));
    else if (p->n_shown > 0)
        status = il__cli_grid_print(&p->grid);
    if (status != 0)
        return status;
    if (p->items == NULL)
        (void)fputs(il__buf_str(&p->fixes), stdout); /* stdout remembers its errors */
    il__cli_note(cli, "checked %zu %s: %zu bad, %zu %s, %zu %s", n_tables,
                 n_tables == 1 ? "table" : "tables", p->n[IL__FINDING_BAD], p->n[IL__FINDING_WARN],
                 p->n[IL__FINDING_WARN] == 1 ? "warning" : "warnings", p->n[IL__FINDING_NOTE],
                 p->n[IL__FINDING_NOTE] == 1 ? "note" : "notes");
    return p->n[IL__FINDING_BAD] > 0 ? 1 : 0;
}

static int
check(struct cli *cli, struct doctor_database *db, const char *table)
{
    static const char *const headers[] = { "LEVEL", "TABLE", "CHECK", "VALUE", "MEANING" };
    struct printing          p         = { .with_all = table != NULL };
    struct doctor_table     *tables    = NULL;
    size_t                   n_tables  = 0;
    il_error                 err;

    if (cli->json && (p.items = json_array()) == NULL)
        return il__cli_fail_memory();
    il__cli_grid_init(&p.grid, headers, ARRAY_LEN(headers));
    il__buf_init(&p.fixes, (size_t)64 << 20);
    il_status st = il__doctor_read(db, table, &tables, &err);
    if (st == IL_OK && table == NULL && db->path != NULL)
        st = il__doctor_check_file(db, note_finding, &p, &err);
    for (const struct doctor_table *t = tables; st == IL_OK && t != NULL; t = t->next) {
        st = il__doctor_check_table(db, t, note_finding, &p, &err);
        n_tables++;
    }
    int status = st == IL_OK ? print(cli, &p, n_tables) : il__cli_fail(&err);
    json_decref(p.items);
    il__cli_grid_release(&p.grid);
    il__buf_release(&p.fixes);
    return status;
}

int
il__doctor_database(struct cli *cli)
{
    const char            *where     = CLI_OPTION(cli, doctor, connection)->text;
    const char            *table     = CLI_OPTION(cli, doctor, table)->text;
    bool                   checklist = CLI_GIVEN(cli, doctor, checklist);
    struct doctor_database db        = { 0 };
    char                  *url       = NULL;
    il_error               err;
    int                    status;

    if (table == NULL && !checklist && !CLI_GIVEN(cli, doctor, schema))
        return il__cli_usage("doctor: --connection needs --table, --schema or --checklist");
    if (url_of(cli, where, &url, &err) != IL_OK || open_database(&db, url, &err) != IL_OK ||
        il__doctor_invariants(cli, &db, url, &err) != IL_OK)
        status = il__cli_fail(&err);
    else
        status = checklist ? il__doctor_checklist(cli, &db, table) : check(cli, &db, table);
    close_database(&db);
    if (url != NULL)
        explicit_bzero(url, strlen(url));
    il__free(url);
    return status;
}
