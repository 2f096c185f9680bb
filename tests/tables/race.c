/*
 * race.c: processes that open, upgrade and lose the tables of an app at the same moment.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "harness/proc.h"
#include "tables/rig.h"

#define N_PROCESSES 6

/* What each process does, when it is told to. */
struct task {
    const char              *url;
    const struct app_tables *tables;
    bool                     migrates;
};

static int
migrate(const struct task *t)
{
    struct tables_place *p = NULL;
    struct il__migration m;
    il_error             err;

    il_status st = il__tables_place_open(t->url, NULL, false, &p, &err);
    if (st == IL_OK)
        st = il__tables_migrate(t->tables, p, false, &m, &err);
    if (st != IL_OK)
        (void)printf("failed: %s\n", err.message);
    il__tables_place_close(p);
    return st != IL_OK;
}

static int
do_task(void *arg)
{
    const struct task *t = arg;
    char               word[16];

    (void)printf("ready\n");
    (void)fflush(stdout);
    if (fgets(word, sizeof word, stdin) == NULL)
        return 1;
    return (t->migrates && migrate(t) != 0) || t_tables_in_process(t->url, t->tables) != 0;
}

static void
all_at_once(struct task *t)
{
    static struct t_proc procs[N_PROCESSES];

    for (unsigned i = 0; i < N_PROCESSES; i++)
        t_proc_fork(&procs[i], do_task, t);
    for (unsigned i = 0; i < N_PROCESSES; i++)
        T_LINE(&procs[i], "ready", R_LIMIT_MS, NULL);
    for (unsigned i = 0; i < N_PROCESSES; i++)
        t_proc_say(&procs[i], "go");
    for (unsigned i = 0; i < N_PROCESSES; i++) {
        if (t_proc_exit(&procs[i], R_LIMIT_MS) != 0)
            T_FAIL("process %u: %s", i, procs[i].text);
        t_proc_release(&procs[i]);
    }
}

R_TEST(first_opens_at_once)
{
    struct task t = { r->url, &t_toy, false };
    il_error    err;

    for (unsigned round = 0; round < 3; round++) {
        struct t_rig other;
        t_rig_make(&other);
        t.url = other.url;
        all_at_once(&t);
        if (!other.is_memory)
            T_EQ(t_tables_try(&other, &t_toy, true, &err), IL_OK);
        t_rig_release(&other);
    }
}

R_TEST(upgrades_at_once)
{
    struct task t = { r->url, &t_toy_next, r->is_postgres };
    char        out[4096];

    if (r->is_memory)
        return; /* nobody else can open it */
    il_guard *g = t_tables_open(r, &t_toy);
    (void)t_run(g, &t_toy_course_add,
                APP_VALUES(il_guard_text("a"), il_guard_text("c"), il_guard_int(7)), out);
    il_guard_close(g);
    all_at_once(&t);
    g = t_tables_open(r, &t_toy_next);
    T_STREQ(t_run(g, &t_toy_title, APP_VALUES(il_guard_text("a")), out), "c");
    il_guard_close(g);
}

/* An app that is at work on an older version when a newer server starts. */
R_TEST(an_upgrade_waits_for_a_writer)
{
    static struct t_proc proc;
    struct task          t  = { r->url, &t_toy_next, r->is_postgres };
    il_guard_tx         *tx = NULL;
    char                 out[4096];
    il_error             err;

    if (r->is_memory)
        return;
    il_guard_close(t_tables_open(r, &t_toy));
    t_proc_fork(&proc, do_task, &t);
    T_LINE(&proc, "ready", R_LIMIT_MS, NULL);
    il_guard *g = t_tables_open(r, &t_toy);
    T_EQ(il_guard_begin(g, NULL, &tx, &err), IL_OK);
    T_EQ(il__tables_run(tx, &t_toy_course_add,
                        APP_VALUES(il_guard_text("a"), il_guard_text("c"), il_guard_int(7)), NULL,
                        NULL, NULL, &err),
         IL_OK);
    t_proc_say(&proc, "go");
    T_TRUE(!t_proc_end(&proc, 200)); /* whatever it has reached by now */
    T_EQ(il_guard_commit(tx, &err), IL_OK);
    T_EQ(t_proc_exit(&proc, R_LIMIT_MS), 0);
    t_proc_release(&proc);
    T_STREQ(t_run(g, &t_toy_title, APP_VALUES(il_guard_text("a")), out), "c");
    il_guard_close(g);
}

/* ---- temporary folders of memory stores ------------------------------------------------------ */

static unsigned
folders(const char *dir)
{
    char     path[T_PATH_BYTES];
    unsigned n = 0;

    t_path(path, "%s/interlock-tables-%lu", dir, (unsigned long)geteuid());
    DIR *d = opendir(path);
    T_TRUE(d != NULL);
    const struct dirent *entry;
    while ((entry = readdir(d)) != NULL)
        n += entry->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

static int
open_and_stay(void *arg)
{
    struct tables_place *p = NULL;
    il_guard            *g = NULL;
    il_error             err;
    char                 word[16];

    if (il__tables_place_open(arg, NULL, false, &p, &err) != IL_OK ||
        il__tables_open(&t_toy, p, NULL, &g, &err) != IL_OK) {
        (void)printf("failed: %s\n", err.message);
        return 1;
    }
    (void)printf("open\n");
    (void)fflush(stdout);
    IGNORE(fgets(word, sizeof word, stdin) == NULL);
    il_guard_close(g);
    il__tables_place_close(p);
    return 0;
}

R_TEST(a_memory_stores_folder_goes_with_its_process)
{
    static struct t_proc killed, alive;
    struct tables_place *p = NULL;
    il_error             err;

    if (!r->is_memory)
        return;
    T_EQ(folders(r->dir), 1); /* the rig's own */
    t_proc_fork(&killed, open_and_stay, r->url);
    T_LINE(&killed, "open", R_LIMIT_MS, NULL);
    t_proc_fork(&alive, open_and_stay, r->url);
    T_LINE(&alive, "open", R_LIMIT_MS, NULL);
    T_EQ(folders(r->dir), 3);
    t_proc_signal(&killed, SIGKILL);
    T_TRUE(t_proc_end(&killed, R_LIMIT_MS));
    t_proc_release(&killed);
    T_EQ(folders(r->dir), 3);
    /* The next one removes it, and no other. */
    T_EQ(il__tables_place_open(r->url, NULL, false, &p, &err), IL_OK);
    T_EQ(folders(r->dir), 3);
    il__tables_place_close(p);
    T_EQ(folders(r->dir), 2);
    t_proc_say(&alive, "enough");
    T_EQ(t_proc_exit(&alive, R_LIMIT_MS), 0);
    t_proc_release(&alive);
    T_EQ(folders(r->dir), 1);
}

/* Creating and cleaning up at once: nobody's folder is removed. */
static int
open_and_close(void *arg)
{
    for (unsigned i = 0; i < 30; i++) {
        if (t_tables_in_process(arg, &t_toy) != 0)
            return 1;
    }
    return 0;
}

R_TEST(folders_of_many_processes)
{
    static struct t_proc procs[N_PROCESSES];

    if (!r->is_memory)
        return;
    for (unsigned i = 0; i < N_PROCESSES; i++)
        t_proc_fork(&procs[i], open_and_close, r->url);
    for (unsigned i = 0; i < N_PROCESSES; i++) {
        if (t_proc_exit(&procs[i], R_LIMIT_MS) != 0)
            T_FAIL("process %u: %s", i, procs[i].text);
        t_proc_release(&procs[i]);
    }
    T_EQ(folders(r->dir), 1);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        R_ROW(first_opens_at_once),           R_ROW(upgrades_at_once),
        R_ROW(an_upgrade_waits_for_a_writer), R_ROW(a_memory_stores_folder_goes_with_its_process),
        R_ROW(folders_of_many_processes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
