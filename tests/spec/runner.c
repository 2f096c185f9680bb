/*
 * runner.c: plays specs and compares the output with the expected one.
 *
 *   runner [--write] FILE.spec…
 *
 * The expected lines are in FILE.out; --write creates that file, to be reviewed before it is
 * committed. The engine is that of IL_TEST_STORE, else all engines: each must give the same output.
 */
#include <stdio.h>

#include "harness/postgres.h"
#include "spec/spec.h"

#define LINE_BYTES 4096
#define DIFFS_MAX 20

static void
out_path(const char *path, char out[T_PATH_BYTES])
{
    size_t n = strlen(path);

    if (n < 5 || strcmp(path + n - 5, ".spec") != 0)
        T_FAIL("%s: not a .spec", path);
    t_path(out, "%.*s.out", (int)(n - 5), path);
}

static void
write_expected(const struct spec *sp)
{
    char         path[T_PATH_BYTES];
    char         line[LINE_BYTES];
    struct play *p = play_new(t_engine_find("memory"), sp);

    out_path(sp->path, path);
    FILE *f = fopen(path, "we");
    if (f == NULL)
        T_FAIL("%s: cannot be written", path);
    for (size_t i = 0; i < sp->n_orders; i++) {
        play_order(p, i, line, sizeof line);
        (void)fprintf(f, "%s\n", line);
    }
    if (fclose(f) != 0)
        T_FAIL("%s: cannot be written", path);
    play_free(p);
}

/* The steps of an order by name. */
static void
print_order(FILE *out, const struct spec *sp, const struct order *o)
{
    size_t n_taken[SESSIONS_MAX] = { 0 };

    for (size_t i = 0; i < o->n; i++) {
        size_t j = o->i_session[i];
        (void)fprintf(out, " %s", sp->sessions[j].steps[n_taken[j]++].name);
    }
    (void)fputc('\n', out);
}

/* How many orders came out otherwise. */
static size_t
compare(const struct spec *sp, const struct t_engine *engine)
{
    char         path[T_PATH_BYTES];
    char         line[LINE_BYTES];
    struct play *p     = play_new(engine, sp);
    size_t       n_bad = 0;

    out_path(sp->path, path);
    char *expected = t_file_read(path, NULL);
    char *rest     = expected;
    for (size_t i = 0; i < sp->n_orders; i++) {
        const char *want = rest != NULL ? strsep(&rest, "\n") : "(no such line)";
        play_order(p, i, line, sizeof line);
        if (strcmp(want, line) == 0)
            continue;
        if (n_bad++ >= DIFFS_MAX)
            continue;
        (void)fprintf(stderr, "%s: order %zu on %s:", sp->path, i + 1, engine->name);
        print_order(stderr, sp, &sp->orders[i]);
        (void)fprintf(stderr, "  expected %s\n  got      %s\n", want, line);
    }
    if (rest != NULL && rest[0] != '\0') {
        (void)fprintf(stderr, "%s: more lines than the %zu orders\n", path, sp->n_orders);
        n_bad++;
    }
    free(expected);
    play_free(p);
    return n_bad;
}

int
main(int argc, char **argv)
{
    const char *only  = getenv("IL_TEST_STORE");
    bool        write = argc > 1 && strcmp(argv[1], "--write") == 0;
    size_t      n_bad = 0;

    if (only != NULL && strcmp(only, "postgres") == 0)
        t_postgres_reuse();
    for (int i = write ? 2 : 1; i < argc; i++) {
        struct spec *sp = spec_read(argv[i]);
        if (write)
            write_expected(sp);
        for (const struct t_engine *e = t_engines; !write && e->name != NULL; e++) {
            if (only != NULL ? strcmp(only, e->name) != 0 : e->n_handles > 1)
                continue;
            size_t n = compare(sp, e);
            (void)printf("%s on %s: %zu orders, %zu differ\n", argv[i], e->name, sp->n_orders, n);
            n_bad += n;
        }
        spec_free(sp);
    }
    return n_bad == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
