/*
 * robots.h: the rules of a robots.txt (RFC 9309). Bytes in, rules out: nothing here does I/O.
 */
#ifndef IL_APPS_INGEST_ROBOTS_H
#define IL_APPS_INGEST_ROBOTS_H

#include "base/base.h"

#define ROBOTS_RULES_MAX 512         /* kept; a file with more denies everything */
#define ROBOTS_PATTERN_BYTES_MAX 512 /* the same for a longer pattern */

struct robots_rule {
    const char *pattern; /* "*" and a "$" at its end have a meaning; escapes are normalised */
    bool        allow;
};

/* Zero-initialise: no rules, so everything is allowed. */
struct robots {
    struct robots_rule *rules;
    size_t              n;
    bool                denies_all; /* the file exceeds a limit */
    void               *mem;
};

/* Read the rules for `agent`, a lower-case word: those of the groups that name it, else those
 * of the groups for "*". `text` may have any bytes. False: out of memory. */
bool il__robots_parse(struct robots *r, const char *text, size_t n_bytes, const char *agent)
    MUST_USE;
void il__robots_release(struct robots *r);
/* May this be fetched? `path` is what follows the host in a URL, with the query. The longest
 * pattern that matches decides; of two that are equally long, the one that allows. */
bool il__robots_allow(const struct robots *r, const char *path) MUST_USE;

#endif
