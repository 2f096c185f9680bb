/*
 * zone_file.c: converts a TZif file (RFC 8536) to transitions: those listed, then those that follow
 * from its last line, a rule in the format of the TZ variable. The file is untrusted: every length
 * is checked.
 */
#include "base/parse.h"
#include "base/zone.h"

#define DAY_S INT64_C(86400)

struct bytes {
    const unsigned char *at, *end;
};

struct zone_builder {
    struct il__zone_transition *out;
    size_t                      n;
};

static int64_t
big_endian(const unsigned char *p, size_t n)
{
    uint64_t v = (p[0] & 0x80) != 0 ? UINT64_MAX : 0;

    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return (int64_t)v;
}

/* The offset from time_s on. Before 1970 it replaces the initial offset. */
static void
add(struct zone_builder *b, int64_t time_s, int64_t offset)
{
    if (time_s <= 0) {
        b->out[0].offset_s = (int32_t)offset;
        return;
    }
    if (b->n == IL__ZONE_TRANSITIONS_MAX || time_s > INT64_MAX / 1000 ||
        (b->n > 1 && time_s * 1000 <= b->out[b->n - 1].at_ms) ||
        offset == b->out[b->n - 1].offset_s) /* only its name changes */
        return;
    b->out[b->n++] = (struct il__zone_transition){ time_s * 1000, (int32_t)offset };
}

/* ---- the rule -------------------------------------------------------------------------------- */

struct rule_day {
    /* 'M': weekday of the week of the month; 'J': day 1..365 without leap days; 'D': day 0..365 */
    char    form;
    int     month, week, day;
    int64_t time_s; /* of the local day; may be negative, or of a later day */
};

struct rule {
    int64_t         standard, summer; /* seconds east */
    bool            has_summer;
    struct rule_day begin, end;
};

/* CET, <+1030>: skipped. */
static bool
skip_name(const char **p)
{
    const char *s = *p;

    if (*s == '<') {
        s = strchr(s, '>');
        if (s == NULL)
            return false;
        *p = s + 1;
        return true;
    }
    while ((*s >= 'A' && *s <= 'Z') || (*s >= 'a' && *s <= 'z'))
        s++;
    bool ok = s - *p >= 3;
    *p      = s;
    return ok;
}

static bool
number(const char **p, int max, int *ret)
{
    int value = 0;

    if (**p < '0' || **p > '9')
        return false;
    for (; **p >= '0' && **p <= '9'; (*p)++) {
        value = value * 10 + (**p - '0');
        if (value > max)
            return false;
    }
    *ret = value;
    return true;
}

/* [+-]h[h[h]][:mm[:ss]] */
static bool
clock_time(const char **p, int64_t *ret)
{
    int64_t sign    = **p == '-' ? -1 : 1;
    int     hours   = 0;
    int     minutes = 0;
    int     seconds = 0;

    *p += **p == '-' || **p == '+';
    if (!number(p, 167, &hours))
        return false;
    if (**p == ':' && (++*p, !number(p, 59, &minutes)))
        return false;
    if (**p == ':' && (++*p, !number(p, 59, &seconds)))
        return false;
    *ret = sign * ((int64_t)hours * 3600 + minutes * 60 + seconds);
    return true;
}

static bool
rule_day(const char **p, struct rule_day *ret)
{
    *ret = (struct rule_day){ .form = 'D', .time_s = 7200 };
    if (**p == 'M') {
        ++*p;
        ret->form = 'M';
        if (!number(p, 12, &ret->month) || *(*p)++ != '.' || !number(p, 5, &ret->week) ||
            *(*p)++ != '.' || !number(p, 6, &ret->day) || ret->month < 1 || ret->week < 1)
            return false;
    } else {
        if (**p == 'J') {
            ++*p;
            ret->form = 'J';
        }
        if (!number(p, 365, &ret->day))
            return false;
    }
    if (**p != '/')
        return true;
    ++*p;
    return clock_time(p, &ret->time_s);
}

/* CET-1CEST,M3.5.0,M10.5.0/3: offsets count west of Greenwich here. */
static bool
read_rule(const char *s, struct rule *ret)
{
    *ret = (struct rule){ .standard = 0 };
    if (!skip_name(&s) || !clock_time(&s, &ret->standard))
        return false;
    ret->standard = -ret->standard;
    if (*s == '\0')
        return true;
    ret->summer = ret->standard + 3600;
    if (!skip_name(&s))
        return false;
    if (*s != ',') {
        if (!clock_time(&s, &ret->summer))
            return false;
        ret->summer = -ret->summer;
    }
    ret->has_summer = *s == ',';
    if (*s++ != ',' || !rule_day(&s, &ret->begin))
        return false;
    return *s++ == ',' && rule_day(&s, &ret->end) && *s == '\0';
}

/* When a rule applies in a year, in local seconds since 1970. */
static int64_t
rule_time(const struct rule_day *d, int year)
{
    int64_t first = il__date_days(year, 1, 1);
    bool    leap  = il__date_is_leap(year);

    if (d->form == 'D')
        return (first + d->day) * DAY_S + d->time_s;
    if (d->form == 'J')
        return (first + d->day - 1 + (leap && d->day > 59 ? 1 : 0)) * DAY_S + d->time_s;
    int64_t month    = il__date_days(year, d->month, 1);
    int     of_month = (int)(((d->day - (month + 4) % 7) + 7) % 7) + (d->week - 1) * 7;
    if (il__date_days(year, d->month, of_month + 1) < 0) /* the fifth means the last */
        of_month -= 7;
    return (month + of_month) * DAY_S + d->time_s;
}

static void
add_rule(struct zone_builder *b, const char *text)
{
    struct rule rule;

    if (!read_rule(text, &rule) || !rule.has_summer)
        return;
    for (int year = 1971; year <= IL__ZONE_YEAR_END; year++) {
        int64_t begin = rule_time(&rule.begin, year) - rule.standard;
        int64_t end   = rule_time(&rule.end, year) - rule.summer;
        bool    first =
            /* of the year: summer time begins before it ends, or (in the south) ends first */
            begin < end;
        add(b, first ? begin : end, first ? rule.summer : rule.standard);
        add(b, first ? end : begin, first ? rule.standard : rule.summer);
    }
}

/* ---- the file -------------------------------------------------------------------------------- */

struct zone_header {
    size_t n_utc, n_std, n_leaps, n_times, n_types, n_chars;
    char   version;
};
#define HEADER_BYTES 44

static bool
take_header(struct bytes *b, struct zone_header *h)
{
    const unsigned char *p = b->at;

    if (b->end - b->at < HEADER_BYTES || memcmp(p, "TZif", 4) != 0)
        return false;
    size_t *counts[] = { &h->n_utc, &h->n_std, &h->n_leaps, &h->n_times, &h->n_types, &h->n_chars };
    h->version       = (char)p[4];
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        int64_t n = big_endian(p + 20 + i * 4, 4);
        if (n < 0 || n > IL__ZONE_FILE_BYTES_MAX)
            return false;
        *counts[i] = (size_t)n;
    }
    b->at += HEADER_BYTES;
    return true;
}

static size_t
body_bytes(const struct zone_header *h, size_t time_bytes)
{
    return h->n_times * (time_bytes + 1) + h->n_types * 6 + h->n_chars +
           h->n_leaps * (time_bytes + 4) + h->n_std + h->n_utc;
}

static bool
add_listed(struct zone_builder *b, const struct bytes *in, const struct zone_header *h,
           size_t time_bytes)
{
    const unsigned char *indexes = in->at + h->n_times * time_bytes;
    const unsigned char *types   = indexes + h->n_times;

    if (h->n_types == 0)
        return false;
    b->out[0].at_ms    = 0;
    b->out[0].offset_s = (int32_t)big_endian(types, 4);
    b->n               = 1;
    for (size_t i = 0; i < h->n_times; i++) {
        if (indexes[i] >= h->n_types)
            return false;
        add(b, big_endian(in->at + i * time_bytes, time_bytes),
            big_endian(types + (size_t)indexes[i] * 6, 4));
    }
    return true;
}

/* The last line: \nRULE\n */
static void
add_footer(struct zone_builder *b, const struct bytes *in)
{
    char   text[128];
    size_t n = 0;

    if (in->at == in->end || *in->at != '\n')
        return;
    for (const unsigned char *p = in->at + 1; p < in->end && *p != '\n' && n + 1 < sizeof text; p++)
        text[n++] = (char)*p;
    text[n] = '\0';
    add_rule(b, text);
}

size_t
il__zone_parse(const unsigned char *data, size_t n_bytes, struct il__zone_transition *out)
{
    struct bytes        in         = { data, data + n_bytes };
    struct zone_builder b          = { out, 0 };
    size_t              time_bytes = 4;
    struct zone_header  h;

    if (!take_header(&in, &h) || (size_t)(in.end - in.at) < body_bytes(&h, 4))
        return 0;
    if (h.version >= '2') { /* the same data again, with 64-bit times */
        in.at += body_bytes(&h, 4);
        time_bytes = 8;
        if (!take_header(&in, &h) || (size_t)(in.end - in.at) < body_bytes(&h, 8))
            return 0;
    }
    if (!add_listed(&b, &in, &h, time_bytes))
        return 0;
    in.at += body_bytes(&h, time_bytes);
    if (time_bytes == 8)
        add_footer(&b, &in);
    return b.n;
}
