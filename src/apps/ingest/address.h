/*
 * address.h: the addresses of pages. They are built from ids and names that were checked, never
 * taken from a page, so that no page and no caller can have another host asked.
 */
#ifndef IL_APPS_INGEST_ADDRESS_H
#define IL_APPS_INGEST_ADDRESS_H

#include "apps/ingest/liverc.h"

#define ADDRESS_BASE_DEFAULT "https://{slug}.liverc.com"
#define ADDRESS_BASE_BYTES_MAX 300
#define ADDRESS_BYTES_MAX 512
#define ADDRESS_SLUG_BYTES_MAX 63
#define ADDRESS_HOST_BYTES 320 /* "host:port" and a NUL */

/* A track: the label of a host name, in lower-case letters. */
bool il__address_is_slug(const char *slug);
/* An event or a race: 1 to LIVERC_ID_BYTES_MAX digits. */
bool il__address_is_id(const char *id);

/*
 * Check a base URL: http:// or https://, a host, optionally a path; `{slug}` is replaced by the
 * track, at most once, in host or path. No user, query or fragment. IL_OK, or IL_INVAL with the
 * reason.
 */
il_status il__address_check(const char *base, il_error *reterr) MUST_USE;

/* The parts of an address. */
struct address {
    char   url[ADDRESS_BYTES_MAX + 1];
    size_t n_origin;                 /* bytes of it before the path: "https://x.liverc.com" */
    char   host[ADDRESS_HOST_BYTES]; /* "x.liverc.com", with the port if it has one */
};

/*
 * The address of a page below a base URL that was checked. The list of tracks is at the track
 * "live" if the slug is part of the host, else at the root of the host; the others need a slug, and
 * all but the events of a track an id. IL_OK, or IL_INVAL: the slug or the id is not one.
 */
il_status il__address_of(const char *base, enum liverc_kind kind, const char *slug, const char *id,
                         struct address *ret, il_error *reterr) MUST_USE;
/* The same with the path "/robots.txt", on the host of `of`. */
void il__address_robots(const struct address *of, struct address *ret);

#endif
