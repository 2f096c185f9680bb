/*
 * report.h: results, one row each: printed as a line of the table as soon as known, and all
 * together as JSON.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "base/base.h"
#include "samples.h"

#define REPORT_ROUNDS_MAX 16
#define REPORT_RESULTS_MAX 64
#define REPORT_LEFT_OUT_MAX 16
#define REPORT_SOFTWARE_MAX 16

enum unit {
    UNIT_PAIRS_PER_S, /* more is better */
    UNIT_OPS_PER_S,   /* more is better */
    UNIT_NS,          /* less is better */
    UNIT_BYTES,       /* less is better */
};

enum wanted {
    WANTED_NOTHING,        /* for the record */
    WANTED_RATIO_AT_LEAST, /* ours to the baseline */
    WANTED_RATIO_AT_MOST,
    WANTED_P99_AT_MOST,   /* ours alone, in ns */
    WANTED_RATE_AT_LEAST, /* ours alone, per second */
    WANTED_BYTES_AT_MOST, /* ours alone */
    WANTED_TIME_AT_MOST,  /* ours alone, in ns */
};

struct result {
    const char      *name;
    const char      *what;       /* ours, in words */
    const char      *against;    /* the baseline, in words; NULL = none */
    const char      *durability; /* of ours and of the baseline */
    enum unit        unit;
    enum wanted      wanted;
    double           wanted_value;
    unsigned         n_rounds;
    double           ours[REPORT_ROUNDS_MAX]; /* in this unit, one value per round */
    double           baseline[REPORT_ROUNDS_MAX];
    struct quantiles ours_latency; /* n = 0: not measured */
    struct quantiles baseline_latency;
};

struct machine {
    unsigned n_cpus; /* that this process may run on */
    double   load;   /* load average before the start; other load affects every number */
    char     cpu[128];
    char     kernel[256];
    char     filesystem[64]; /* that holds the temporary files */
};

/* What could not be measured here. */
struct left_out {
    char name[32];
    char why[200];
};

struct report {
    struct machine  machine;
    bool            quick;
    unsigned        n_results;
    struct result   results[REPORT_RESULTS_MAX];
    unsigned        n_left_out;
    struct left_out left_out[REPORT_LEFT_OUT_MAX];
    unsigned        n_software;
    char            software[REPORT_SOFTWARE_MAX][64]; /* servers and peers, with their versions */
};

void report_begin(struct report *r, const char *dir, bool quick);
/* Store a copy of `result` and print its line. */
void report_add(struct report *r, const struct result *result);
/* A row without numbers: skipped because of `why`. */
void report_leave_out(struct report *r, const char *name, const char *why);
/* Record software with a version that took part; listed once, however often it is reported. */
void report_software(struct report *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Print the latencies, the software, and the number of missed targets. */
void report_end(const struct report *r);
/* Write everything as JSON; on failure returns false with errno set. */
bool report_write_json(const struct report *r, const char *path);

/* Summary of a result: medians over its rounds, and the spread of the ratio. */
struct summary {
    double ours, baseline;
    double ratio, ratio_min, ratio_max; /* 0 without a baseline */
    bool   missed;
};
struct summary result_summary(const struct result *result);

/* machine.c */
void machine_read(struct machine *m, const char *dir);
/* The type of the file system that holds `path`, or "unknown". */
void machine_filesystem(const char *path, char *out, size_t n_bytes);

/* json.c: print `text` as a JSON string. */
#include <stdio.h>
void json_put_string(FILE *f, const char *text);
void json_report(FILE *f, const struct report *r);

/* report.c: "2.31 M/s", "850 ns", "33.0 kB". */
#define REPORT_VALUE_BYTES 24
const char *report_value(double value, enum unit unit, char out[REPORT_VALUE_BYTES]);

#endif
