/*
 * cmd_bench.c: `interlock bench`: measures the speed of this store on this machine. The
 * measurements are in bench.c.
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>

#include "base/error.h"
#include "cli/bench.h"
#include "cli/cli.h"

struct measurement {
    const char             *name;  /* for programs */
    const char             *label; /* for people */
    size_t                  n_callers;
    struct cli_bench_result result;
};

enum {
    ALONE,
    TOGETHER,
    HANDOVER,
    MEASUREMENTS
};

static struct cli_bench      bench; /* one per process, so that the signal handler can find it */
static volatile sig_atomic_t caught;

static void
on_signal(int signo)
{
    caught = signo;
    atomic_store(&bench.stop, true);
}

static double
us(uint64_t ns)
{
    return (double)ns / 1000.0;
}

static double
per_second(const struct cli_bench_result *r)
{
    return r->took_ns > 0 ? (double)r->n_pairs * 1e9 / (double)r->took_ns : 0;
}

static json_t *
measurement_json(const struct measurement *m)
{
    const struct cli_histogram *h = &m->result.latency;

    return json_pack("{s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f}", "name", m->name, "callers",
                     (json_int_t)m->n_callers, "pairs", (json_int_t)m->result.n_pairs,
                     "pairs_per_s", per_second(&m->result), "p50_us",
                     us(il__cli_histogram_quantile(h, 500)), "p90_us",
                     us(il__cli_histogram_quantile(h, 900)), "p99_us",
                     us(il__cli_histogram_quantile(h, 990)), "max_us", us(h->max));
}

static int
print_json(const struct measurement *m, const char *url)
{
    json_t *items = json_array();

    for (size_t i = 0; i < MEASUREMENTS; i++) {
        if (json_array_append_new(items, measurement_json(&m[i])) != 0)
            return il__cli_fail_memory();
    }
    return il__cli_json_print(
        json_pack("{s:o, s:o, s:n}", "store", il__cli_json_text(url), "items", items, "next"));
}

static int
print_text(const struct measurement *m, const char *url)
{
    static const char *const  headers[] = { "MEASUREMENT", ">CALLERS", ">PAIRS/S", ">P50",
                                            ">P90",        ">P99",     ">MAX" };
    AUTO_GRID struct cli_grid g         = { 0 };

    il__cli_puts(url);
    (void)putchar('\n');
    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    for (size_t i = 0; i < MEASUREMENTS; i++) {
        const struct cli_histogram *h = &m[i].result.latency;
        il__cli_grid_add(&g, "%s", m[i].label);
        il__cli_grid_add(&g, "%zu", m[i].n_callers);
        il__cli_grid_add(&g, "%.0f", per_second(&m[i].result));
        il__cli_grid_add(&g, "%.1f µs", us(il__cli_histogram_quantile(h, 500)));
        il__cli_grid_add(&g, "%.1f µs", us(il__cli_histogram_quantile(h, 900)));
        il__cli_grid_add(&g, "%.1f µs", us(il__cli_histogram_quantile(h, 990)));
        il__cli_grid_add(&g, "%.1f µs", us(h->max));
    }
    return il__cli_grid_print(&g);
}

static il_status
measure(struct cli *cli, struct measurement *m, il_error *reterr)
{
    il__cli_progress(cli, 0, 0, "measuring one caller ...");
    il_status st = il__cli_bench_pairs(&bench, m[ALONE].n_callers, &m[ALONE].result, reterr);
    il__cli_progress(cli, 0, 0, "measuring many callers ...");
    if (st == IL_OK && !atomic_load(&bench.stop))
        st = il__cli_bench_pairs(&bench, m[TOGETHER].n_callers, &m[TOGETHER].result, reterr);
    il__cli_progress(cli, 0, 0, "measuring the handover ...");
    if (st == IL_OK && !atomic_load(&bench.stop))
        st = il__cli_bench_handover(&bench, &m[HANDOVER].result, reterr);
    il__cli_progress_end();
    /* Clean up after any failure; the first error is the one to report. */
    il_status cleaned = il__cli_bench_clean(&bench, st == IL_OK ? reterr : NULL);
    return st == IL_OK ? cleaned : st;
}

/* The second handle stands for another process. A private store cannot be opened twice, so there
 * the threads share one handle. */
static il_status
set_up(struct cli *cli, il_error *reterr)
{
    const char      *url = CLI_SETTING(cli, store)->text;
    int64_t          n   = CLI_OPTION(cli, bench, seconds)->number;
    il_open_opts     opts;
    struct sigaction action = { .sa_handler = on_signal };
    il_status        st     = il__cli_store_prepare(cli, true, &opts, reterr);

    bench.store = cli->store;
    bench.other = cli->store;
    bench.n_ns  = n * 1000000000;
    if (st == IL_OK && !il__cli_store_is_private(url))
        st = il_open(url, &opts, &bench.other, reterr);
    if (st == IL_OK && (st = il_uuid(bench.run_id)) != IL_OK)
        st = il__error_set(reterr, st, "bench: cannot read random bytes");
    CHECK(sigaction(SIGINT, &action, NULL) == 0);
    CHECK(sigaction(SIGTERM, &action, NULL) == 0);
    return st;
}

int
il__cli_cmd_bench(struct cli *cli)
{
    size_t                        n_threads = (size_t)CLI_OPTION(cli, bench, threads)->number;
    AUTO_FREE struct measurement *m         = il__calloc(MEASUREMENTS, sizeof *m);
    AUTO_FREE char               *url       = il__cli_safe_url(CLI_SETTING(cli, store)->text);
    il_error                      err;

    if (m == NULL || url == NULL)
        return il__cli_fail_memory();
    m[ALONE] = (struct measurement){ "alone", "acquire + release, alone", 1, { 0 } };
    m[TOGETHER] =
        (struct measurement){ "together", "acquire + release, together", n_threads, { 0 } };
    m[HANDOVER]  = (struct measurement){ "handover", "handover to a waiter", 2, { 0 } };
    il_status st = set_up(cli, &err);
    if (st == IL_OK)
        st = measure(cli, m, &err);
    if (bench.other != bench.store)
        il_close(bench.other);
    if (st != IL_OK)
        return il__cli_fail(&err);
    if (caught != 0)
        return CLI_EXIT_SIGNAL + (int)caught;
    return cli->json ? print_json(m, url) : print_text(m, url);
}
