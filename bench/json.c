/*
 * json.c: writes the report as JSON. Times are in ns, rates in pairs per second; a ratio is ours to
 * the baseline.
 */
#include <sqlite3.h>

#include "base/clock.h"
#include "base/parse.h"
#include "report.h"

void
json_put_string(FILE *f, const char *text)
{
    (void)fputc('"', f);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            (void)fprintf(f, "\\%c", c);
        else if (c < 0x20)
            (void)fprintf(f, "\\u%04x", (unsigned)c);
        else
            (void)fputc(c, f);
    }
    (void)fputc('"', f);
}

static void
member(FILE *f, const char *name, const char *value)
{
    (void)fprintf(f, "\"%s\": ", name);
    if (value == NULL)
        (void)fputs("null", f);
    else
        json_put_string(f, value);
}

static void
rounds(FILE *f, const char *name, const double *values, unsigned n)
{
    (void)fprintf(f, ", \"%s\": [", name);
    for (unsigned i = 0; i < n; i++)
        (void)fprintf(f, "%s%.1f", i == 0 ? "" : ", ", values[i]);
    (void)fputc(']', f);
}

static void
latency(FILE *f, const char *name, const struct quantiles *q)
{
    (void)fprintf(f, ",\n     \"%s\": ", name);
    if (q->n == 0)
        (void)fputs("null", f);
    else
        (void)fprintf(f, "{\"n\": %zu, \"p50_ns\": %lld, \"p99_ns\": %lld, \"max_ns\": %lld}", q->n,
                      (long long)q->p50_ns, (long long)q->p99_ns, (long long)q->max_ns);
}

static void
wanted(FILE *f, const struct report *report, const struct result *r, bool missed)
{
    static const char *const kinds[] = {
        [WANTED_NOTHING]        = NULL,
        [WANTED_RATIO_AT_LEAST] = "ratio_at_least",
        [WANTED_RATIO_AT_MOST]  = "ratio_at_most",
        [WANTED_P99_AT_MOST]    = "p99_ns_at_most",
        [WANTED_RATE_AT_LEAST]  = "rate_at_least",
        [WANTED_BYTES_AT_MOST]  = "bytes_at_most",
        [WANTED_TIME_AT_MOST]   = "ns_at_most",
    };

    (void)fputs(",\n     \"wanted\": ", f);
    if (r->wanted == WANTED_NOTHING)
        (void)fputs("null", f);
    else
        (void)fprintf(f, "{\"%s\": %g}", kinds[r->wanted], r->wanted_value);
    (void)fputs(", \"verdict\": ", f);
    if (r->wanted == WANTED_NOTHING || report->quick)
        (void)fputs("null", f);
    else
        (void)fputs(missed ? "\"missed\"" : "\"ok\"", f);
}

static void
result(FILE *f, const struct report *report, const struct result *r)
{
    static const char *const units[] = { "pairs_per_s", "ops_per_s", "ns", "bytes" };
    struct summary           s       = result_summary(r);

    (void)fputs("    {", f);
    member(f, "name", r->name);
    (void)fputs(",\n     ", f);
    member(f, "what", r->what);
    (void)fputs(",\n     ", f);
    member(f, "against", r->against);
    (void)fputs(",\n     ", f);
    member(f, "durability", r->durability);
    (void)fputs(", ", f);
    member(f, "unit", units[r->unit]);
    (void)fprintf(f, ",\n     \"ours\": %.1f", s.ours);
    if (r->against != NULL) {
        (void)fprintf(f, ", \"baseline\": %.1f, \"ratio\": %.4f", s.baseline, s.ratio);
        (void)fprintf(f, ", \"ratio_min\": %.4f, \"ratio_max\": %.4f", s.ratio_min, s.ratio_max);
    }
    rounds(f, "ours_rounds", r->ours, r->n_rounds);
    if (r->against != NULL)
        rounds(f, "baseline_rounds", r->baseline, r->n_rounds);
    latency(f, "ours_latency", &r->ours_latency);
    latency(f, "baseline_latency", &r->baseline_latency);
    wanted(f, report, r, s.missed);
    (void)fputc('}', f);
}

void
json_report(FILE *f, const struct report *r)
{
    char now[IL__TIME_TEXT_BYTES];

    (void)fputs("{\n  ", f);
    member(f, "version", il_version());
    (void)fputs(",\n  ", f);
    member(f, "date", il__time_text(il__clock_wall_ms(), now));
    (void)fprintf(f, ",\n  \"quick\": %s,\n  \"machine\": {", r->quick ? "true" : "false");
    (void)fprintf(f, "\"cpus\": %u, \"load\": %.2f, ", r->machine.n_cpus, r->machine.load);
    member(f, "cpu", r->machine.cpu);
    (void)fputs(",\n    ", f);
    member(f, "kernel", r->machine.kernel);
    (void)fputs(", ", f);
    member(f, "filesystem", r->machine.filesystem);
    (void)fputs(",\n    ", f);
    member(f, "sqlite", sqlite3_libversion());
    (void)fputs(", ", f);
    member(f, "compiler", __VERSION__);
    (void)fputs(",\n    \"software\": [", f);
    for (unsigned i = 0; i < r->n_software; i++) {
        (void)fputs(i == 0 ? "" : ", ", f);
        json_put_string(f, r->software[i]);
    }
    (void)fputs("]},\n  \"results\": [\n", f);
    for (unsigned i = 0; i < r->n_results; i++) {
        result(f, r, &r->results[i]);
        (void)fputs(i + 1 < r->n_results ? ",\n" : "\n", f);
    }
    (void)fputs("  ],\n  \"left_out\": [", f);
    for (unsigned i = 0; i < r->n_left_out; i++) {
        (void)fputs(i == 0 ? "\n    {" : ",\n    {", f);
        member(f, "name", r->left_out[i].name);
        (void)fputs(", ", f);
        member(f, "why", r->left_out[i].why);
        (void)fputc('}', f);
    }
    (void)fputs("]\n}\n", f);
}
