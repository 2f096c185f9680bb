/*
 * cmd_race.c: `interlock race`: starts a command N times and counts how many copies ran. race.c
 * starts them.
 */
#include <signal.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "cli/cli.h"
#include "cli/race.h"

#define RUN_WORDS 5 /* interlock run --quiet KEY -- */

/* What an exit status says about whether the work was done. */
enum outcome {
    RAN,
    REFUSED,
    NOT_STARTED,
    OUTCOME_COUNT
};

static enum outcome
outcome_of(int exit_status)
{
    if (exit_status == il_status_exit(IL_HELD))
        return REFUSED;
    if (exit_status == il_status_exit(IL_INVAL) || exit_status == il_status_exit(IL_STORE) ||
        exit_status == CLI_EXIT_NOT_EXECUTABLE || exit_status == CLI_EXIT_NOT_FOUND)
        return NOT_STARTED;
    return RAN;
}

static const char *const outcome_names[OUTCOME_COUNT] = {
    [RAN]         = "ran",
    [REFUSED]     = "refused",
    [NOT_STARTED] = "could not start",
};

struct tally {
    size_t  by_exit[256];
    size_t  by_outcome[OUTCOME_COUNT];
    int64_t fastest_ns;
    int64_t slowest_ns;
    size_t  expected;
};

static struct tally
count(const struct cli_race *race, size_t expected)
{
    struct tally t = { .expected = expected, .fastest_ns = INT64_MAX };

    for (size_t i = 0; i < race->n; i++) {
        const struct cli_racer *racer = &race->racers[i];
        t.by_exit[racer->exit_status & 255]++;
        t.by_outcome[outcome_of(racer->exit_status)]++;
        t.fastest_ns = MIN(t.fastest_ns, racer->took_ns);
        t.slowest_ns = MAX(t.slowest_ns, racer->took_ns);
    }
    return t;
}

static int
print_json(const struct cli_race *race, const struct tally *t, bool good)
{
    json_t *exits = json_array();

    for (int e = 0; e < 256; e++) {
        if (t->by_exit[e] > 0 &&
            json_array_append_new(exits, json_pack("{s:i, s:I, s:s}", "status", e, "count",
                                                   (json_int_t)t->by_exit[e], "outcome",
                                                   outcome_names[outcome_of(e)])) != 0)
            return il__cli_fail_memory();
    }
    return il__cli_json_print(json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:I, s:o}", "n", (json_int_t)race->n, "ran",
        (json_int_t)t->by_outcome[RAN], "refused", (json_int_t)t->by_outcome[REFUSED],
        "not_started", (json_int_t)t->by_outcome[NOT_STARTED], "expected", (json_int_t)t->expected,
        "ok", good ? 1 : 0, "fastest_ms", (json_int_t)(t->fastest_ns / IL__NS_PER_MS), "slowest_ms",
        (json_int_t)(t->slowest_ns / IL__NS_PER_MS), "exits", exits));
}

static int
print_text(const struct cli_race *race, const struct tally *t, bool good)
{
    static const char *const  headers[] = { ">COUNT", ">EXIT", "OUTCOME" };
    AUTO_GRID struct cli_grid g         = { 0 };
    char                      fastest[CLI_AGE_BYTES];
    char                      slowest[CLI_AGE_BYTES];

    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    for (int e = 0; e < 256; e++) {
        if (t->by_exit[e] == 0)
            continue;
        il__cli_grid_add(&g, "%zu", t->by_exit[e]);
        il__cli_grid_add(&g, "%d", e);
        il__cli_grid_add(&g, "%s", outcome_names[outcome_of(e)]);
    }
    int status = il__cli_grid_print(&g);
    (void)printf("%s%zu of %zu ran%s, expected %zu; the fastest took %s, the slowest %s\n",
                 il__cli_style(stdout, good ? CLI_GREEN : CLI_RED), t->by_outcome[RAN], race->n,
                 il__cli_style(stdout, CLI_PLAIN), t->expected,
                 il__cli_age(t->fastest_ns / IL__NS_PER_MS, fastest),
                 il__cli_age(t->slowest_ns / IL__NS_PER_MS, slowest));
    return status;
}

/* The children use the store that was chosen for us; a URL belongs in the environment, not in
 * ps. */
static il_status
export_choices(const struct cli *cli, il_error *reterr)
{
    const char *config = CLI_OPTION(cli, common, config)->text;
    int         rc     = 0;

    if (CLI_GIVEN(cli, common, store) || CLI_GIVEN(cli, common, server)) {
        rc |= setenv(il__cli_keys[CLI_KEY_store].env, CLI_SETTING(cli, store)->text, 1);
        rc |= unsetenv(il__cli_keys[CLI_KEY_server].env); /* a server counts as a store */
    }
    if (CLI_GIVEN(cli, common, tenant))
        rc |= setenv(il__cli_keys[CLI_KEY_tenant].env, CLI_SETTING(cli, tenant)->text, 1);
    if (config != NULL)
        rc |= setenv("INTERLOCK_CONFIG", config, 1);
    return rc == 0 ? IL_OK : il__error_set(reterr, IL_NOMEM, "race: out of memory");
}

/* With --key: our own binary with `run` in front. The caller frees the array; its words are
 * borrowed. */
static char **
wrap(const char *key, char **command)
{
    static char words[][12] = { "interlock", "run", "--quiet", "--" };
    size_t      n           = 0;

    while (command[n] != NULL)
        n++;
    char **argv = il__calloc(n + RUN_WORDS + 1, sizeof *argv);
    if (argv == NULL)
        return NULL;
    argv[0] = words[0];
    argv[1] = words[1];
    argv[2] = words[2];
    memcpy(&argv[3], &key, sizeof key); /* exec does not modify the words, whatever its type says */
    argv[4] = words[3];
    memcpy(&argv[RUN_WORDS], command, n * sizeof *argv);
    return argv;
}

static il_status
start(struct cli *cli, size_t n, struct cli_race *race, il_error *reterr)
{
    const char *key     = CLI_OPTION(cli, race, key)->text;
    bool        verbose = CLI_GIVEN(cli, race, verbose);
    il_status   st      = export_choices(cli, reterr);

    if (st != IL_OK)
        return st;
    if (key == NULL)
        return il__cli_race_run(race, n, cli->args.tail[0], cli->args.tail, verbose, reterr);
    st = il__cli_check_key(cli, key, reterr);
    if (st != IL_OK)
        return st;
    AUTO_FREE char **argv = wrap(key, cli->args.tail);
    if (argv == NULL)
        return il__error_set(reterr, IL_NOMEM, "race: out of memory");
    return il__cli_race_run(race, n, "/proc/self/exe", argv, verbose, reterr);
}

int
il__cli_cmd_race(struct cli *cli)
{
    struct cli_race race     = { 0 };
    size_t          expected = (size_t)CLI_OPTION(cli, race, expect)->number;
    uint64_t        n;
    il_error        err;

    if (!il__parse_u64(cli->args.operands[0], CLI_RACE_MAX, &n) || n == 0)
        return il__cli_usage("race: '%.40s' is not a number from 1 to %d", cli->args.operands[0],
                             CLI_RACE_MAX);
    il_status st = start(cli, n, &race, &err);
    if (st != IL_OK) {
        int failed = il__cli_fail(&err);
        il__free(race.racers);
        return st == IL_CANCELLED ? CLI_EXIT_SIGNAL + race.stopped_by : failed;
    }
    struct tally t      = count(&race, expected);
    bool         good   = t.by_outcome[RAN] == expected && race.stopped_by == 0;
    int          status = cli->json ? print_json(&race, &t, good) : print_text(&race, &t, good);
    il__free(race.racers);
#ifndef IL_MUTANT_stopped_race_is_good
    if (race.stopped_by != 0) {
        (void)il__error_set(&err, IL_CANCELLED,
                            "race: stopped by SIG%s; the counts are meaningless",
                            race.stopped_by == SIGINT ? "INT" : "TERM");
        (void)il__cli_fail(&err);
        return CLI_EXIT_SIGNAL + race.stopped_by;
    }
#endif
    if (!good && CLI_GIVEN(cli, race, key) && t.by_outcome[RAN] > expected)
        il__cli_note(cli, "the copies may have run one after another; race a command that takes "
                          "longer, such as sleep 2");
    if (t.by_outcome[NOT_STARTED] > 0 && !CLI_GIVEN(cli, race, verbose))
        il__cli_note(cli, "some copies could not start; use --verbose to see why");
    return status == 0 && !good ? CLI_EXIT_NO : status;
}
