/*
 * granted_leases.h: the live leases granted by this server, by fence, which is unique in the whole
 * store. Used on the loop only.
 *
 * They are tracked for two facts that the store does not report: how long a lease was held when it
 * is released, and that it expired when it is not. The server detects expiry itself by reading
 * (GET) a lease that should have expired; it may have been renewed or released through another
 * server. A lease that no longer exists is released once more, which answers OK if it had been
 * released, and LOST if it ended otherwise, with a flag if it was broken.
 */
#ifndef IL_HTTP_GRANTED_LEASES_H
#define IL_HTTP_GRANTED_LEASES_H

#include "http/http.h"

struct http_leases;

il_status http_leases_open(struct http_server *s, il_error *reterr) MUST_USE;
void      http_leases_close(struct http_server *s);
/* Check for expired leases; logs them and updates the lock metrics. */
void http_leases_tick(struct http_server *s, int64_t now_ns);

/* run: "" or NULL = a plain lock. */
void http_lease_granted(struct http_server *s, const char *tenant, const char *key,
                        const char *holder, const char *run, uint64_t fence, int64_t remaining_ms);
void http_lease_renewed(struct http_server *s, uint64_t fence, int64_t remaining_ms);
/* The lease was released or broken. Returns how long it was held, or -1 if this server did not
 * grant it. */
int64_t http_lease_ended(struct http_server *s, uint64_t fence);

#endif
