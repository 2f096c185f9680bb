/*
 * report.c: prints the table row by row, and summarises results. JSON is in json.c.
 */
#include "report.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <unistd.h>

#define ROW "%-24s %10s %10s  %-20s %-11s %-8s %s\n"

const char *
report_value(double value, enum unit unit, char out[REPORT_VALUE_BYTES])
{
    static const char *const names[][3] = {
        [UNIT_PAIRS_PER_S] = { "/s", "k/s", "M/s" },
        [UNIT_OPS_PER_S]   = { "/s", "k/s", "M/s" },
        [UNIT_NS]          = { "ns", "us", "ms" },
        [UNIT_BYTES]       = { "B", "kB", "MB" },
    };
    size_t i = 0;

    for (; value >= 1000 && i < 2; i++)
        value /= 1000;
    int n_decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
    (void)snprintf(out, REPORT_VALUE_BYTES, "%.*f %s", n_decimals, value, names[unit][i]);
    return out;
}

static double
median_of(const double *values, unsigned n)
{
    double copy[REPORT_ROUNDS_MAX];

    memcpy(copy, values, n * sizeof *copy);
    return median(copy, n);
}

struct summary
result_summary(const struct result *r)
{
    struct summary s = { .ours = median_of(r->ours, r->n_rounds) };
    double         ratios[REPORT_ROUNDS_MAX];

    if (r->against != NULL) {
        s.baseline = median_of(r->baseline, r->n_rounds);
        for (unsigned i = 0; i < r->n_rounds; i++)
            ratios[i] = r->ours[i] / r->baseline[i];
        s.ratio     = median(ratios, r->n_rounds); /* which sorts them */
        s.ratio_min = ratios[0];
        s.ratio_max = ratios[r->n_rounds - 1];
    }
    switch (r->wanted) {
    case WANTED_RATIO_AT_LEAST:
        s.missed = s.ratio < r->wanted_value;
        break;
    case WANTED_RATIO_AT_MOST:
        s.missed = s.ratio > r->wanted_value;
        break;
    case WANTED_P99_AT_MOST:
        s.missed = (double)r->ours_latency.p99_ns > r->wanted_value;
        break;
    case WANTED_RATE_AT_LEAST:
        s.missed = s.ours < r->wanted_value;
        break;
    case WANTED_BYTES_AT_MOST:
    case WANTED_TIME_AT_MOST:
        s.missed = s.ours > r->wanted_value;
        break;
    case WANTED_NOTHING:
    default:
        break;
    }
    return s;
}

static const char *
wanted_text(const struct result *r, char out[32])
{
    char value[REPORT_VALUE_BYTES];

    if (r->wanted == WANTED_NOTHING)
        return "-";
    if (r->wanted == WANTED_P99_AT_MOST)
        (void)snprintf(out, 32, "<= %s", report_value(r->wanted_value, UNIT_NS, value));
    else if (r->wanted == WANTED_RATE_AT_LEAST)
        (void)snprintf(out, 32, ">= %s", report_value(r->wanted_value, r->unit, value));
    else if (r->wanted == WANTED_BYTES_AT_MOST || r->wanted == WANTED_TIME_AT_MOST)
        (void)snprintf(out, 32, "<= %s", report_value(r->wanted_value, r->unit, value));
    else
        (void)snprintf(out, 32, "%s %.2f",
                       r->wanted == WANTED_RATIO_AT_LEAST ? ">=" : "<=", r->wanted_value);
    return out;
}

static const char *
verdict_text(const struct report *report, const struct result *r, const struct summary *s)
{
    if (r->wanted == WANTED_NOTHING)
        return "-";
    if (report->quick)
        return "(quick)";
    return s->missed ? "MISSED" : "ok";
}

static void
print_row(const struct report *report, const struct result *r)
{
    struct summary s = result_summary(r);
    char           ours[REPORT_VALUE_BYTES];
    char           baseline[REPORT_VALUE_BYTES] = "-";
    char           ratio[48]                    = "-";
    char           wanted[32];

    if (r->against != NULL) {
        (void)report_value(s.baseline, r->unit, baseline);
        (void)snprintf(ratio, sizeof ratio, "%.2f (%.2f..%.2f)", s.ratio, s.ratio_min, s.ratio_max);
    }
    (void)printf(ROW, r->name, report_value(s.ours, r->unit, ours), baseline, ratio,
                 wanted_text(r, wanted), verdict_text(report, r, &s), r->durability);
    (void)fflush(stdout); /* the next one takes a while */
}

void
report_begin(struct report *r, const char *dir, bool quick)
{
    r->quick = quick;
    machine_read(&r->machine, dir);
    (void)printf("interlock %s, %u CPUs (load %.1f), %s, SQLite %s, %s%s\n\n", il_version(),
                 r->machine.n_cpus, r->machine.load, r->machine.kernel, sqlite3_libversion(),
                 r->machine.filesystem,
                 strcmp(r->machine.filesystem, "tmpfs") == 0 ? " (nothing is durable here)" : "");
    (void)printf(ROW, "name", "ours", "baseline", "ratio (spread)", "wanted", "verdict",
                 "durability");
    (void)fflush(stdout);
}

void
report_add(struct report *r, const struct result *result)
{
    CHECK(r->n_results < REPORT_RESULTS_MAX);
    CHECK(result->n_rounds > 0);
    r->results[r->n_results++] = *result;
    print_row(r, result);
}

void
report_leave_out(struct report *r, const char *name, const char *why)
{
    CHECK(r->n_left_out < REPORT_LEFT_OUT_MAX);
    struct left_out *l = &r->left_out[r->n_left_out++];
    (void)snprintf(l->name, sizeof l->name, "%s", name);
    (void)snprintf(l->why, sizeof l->why, "%s", why);
    l->why[strcspn(l->why, "\n")] = '\0';
    (void)printf("%-24s left out: %s\n", l->name, l->why);
    (void)fflush(stdout);
}

void
report_software(struct report *r, const char *fmt, ...)
{
    char    text[sizeof r->software[0]];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (unsigned i = 0; i < r->n_software; i++) {
        if (strcmp(r->software[i], text) == 0)
            return;
    }
    CHECK(r->n_software < REPORT_SOFTWARE_MAX);
    (void)snprintf(r->software[r->n_software++], sizeof text, "%s", text);
}

static void
print_latency(const struct result *r)
{
    const struct quantiles *all[] = { &r->ours_latency, &r->baseline_latency };
    int64_t                 ns[6] = { 0 };
    char                    texts[6][REPORT_VALUE_BYTES];

    for (size_t i = 0; i < 2; i++) {
        ns[3 * i]     = all[i]->p50_ns;
        ns[3 * i + 1] = all[i]->p99_ns;
        ns[3 * i + 2] = all[i]->max_ns;
        for (size_t j = 3 * i; j < 3 * i + 3; j++) {
            (void)report_value((double)ns[j], UNIT_NS, texts[j]);
            if (all[i]->n == 0)
                (void)snprintf(texts[j], sizeof texts[j], "-");
        }
    }
    (void)printf("%-24s %9s %9s %9s   %9s %9s %9s\n", r->name, texts[0], texts[1], texts[2],
                 texts[3], texts[4], texts[5]);
}

void
report_end(const struct report *r)
{
    unsigned n_missed = 0;
    unsigned n_wanted = 0;

    (void)printf("\n%-24s %9s %9s %9s   %9s %9s %9s\n", "latency", "ours p50", "p99", "max",
                 "base p50", "p99", "max");
    for (unsigned i = 0; i < r->n_results; i++) {
        if (r->results[i].ours_latency.n > 0)
            print_latency(&r->results[i]);
        n_wanted += r->results[i].wanted != WANTED_NOTHING;
        n_missed += result_summary(&r->results[i]).missed;
    }
    for (unsigned i = 0; i < r->n_software; i++)
        (void)printf("%s%s%s", i == 0 ? "\nwith " : ", ", r->software[i],
                     i + 1 == r->n_software ? "\n" : "");
    if (r->quick)
        (void)printf("\na quick run: it works, but its numbers mean nothing\n");
    else
        (void)printf("\n%u of %u as wanted, %u MISSED\n", n_wanted - n_missed, n_wanted, n_missed);
}

bool
report_write_json(const struct report *r, const char *path)
{
    FILE *f = fopen(path, "we");

    if (f == NULL)
        return false;
    json_report(f, r);
    bool ok = ferror(f) == 0;
    return fclose(f) == 0 && ok;
}
