/*
 * holder_text.c: describes the holder of a key in a message.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"
#include "cli/wrap/holder_text.h"
#include "cli/wrap/meta.h"
#include "cli/wrap/wrap_internal.h"
#include "proc/sys.h"

#define SENTENCE_BYTES_MAX 2000

/* Seconds are precise enough for people, except below one. */
static int64_t
rounded(int64_t ms)
{
    return ms < 1000 ? MAX(ms, 1) : ms - ms % 1000;
}

/* "pid 32364 on vm (sleep 3) for 311ms, holder H", or "H for 311ms" if the meta says nothing.
 * `info` is NULL if the lease has ended meanwhile. */
static void
add_who(struct il__buf *b, const char *holder, const il_lease_info *info)
{
    char                 age[IL__DURATION_TEXT_BYTES];
    struct wrap_meta_who who = { .pid = 0 };

    if (info != NULL)
        wrap_meta_who(info->meta, &who);
    if (who.pid > 0) {
        il__buf_addf(b, "pid %" PRId64, who.pid);
        if (who.host[0] != '\0')
            il__buf_addf(b, " on %s", who.host);
        if (who.command[0] != '\0')
            il__buf_addf(b, " (%s)", who.command);
    } else {
        il__buf_adds(b, holder);
    }
    if (info != NULL && info->fence != 0) /* unknown for a classic client's lock */
        il__buf_addf(b, " for %s", il__duration_text(rounded(info->age_ms), age));
    if (who.pid > 0)
        il__buf_addf(b, ", holder %s", holder);
}

/* `run` is the run that holds it, or "". */
static void
add_held(struct il__buf *b, il *store, const char *key, const il_error *error, const char *run)
{
    const il_lease_info *info = NULL;
    il_op                op   = { .type = IL_OP_NONE };

    /* More than the name is optional; the holder or the store may have gone meanwhile. */
    if (il_get(store, key, &op, NULL) == IL_OK) {
        for (size_t i = 0; i < op.out.n_items; i++) {
            if (op.out.items[i].fence == error->fence)
                info = &op.out.items[i];
        }
    }
    il__buf_addf(b, "%s is held by ", key);
    add_who(b, error->holder, info);
    if (run[0] != '\0')
        il__buf_addf(b, ", run %s", run);
    if (error->fence != 0)
        il__buf_addf(b, ", fence %" PRIu64, error->fence);
    il_op_release(&op);
}

void
wrap_holder_text(il *store, const char *key, const il_error *error, char *out, size_t n_bytes)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, SENTENCE_BYTES_MAX);
    add_held(&b, store, key, error, "");
    il__buf_addf(&b, "; see: interlock why %s", key);
    (void)snprintf(out, n_bytes, "%s", il__buf_str(&b));
}

void
wrap_tell_held(struct wrap *r, const il_error *error, const char *more)
{
    AUTO_BUF struct il__buf b = { 0 };

    if (r->opts->quiet && !r->opts->json)
        return;
    il__buf_init(&b, SENTENCE_BYTES_MAX);
    add_held(&b, r->store, r->opts->key, error, r->in_the_way);
    il__buf_adds(&b, more);
    if (more[0] == '\0')
        il__buf_addf(&b, "; see: interlock why %s", r->opts->key);
    wrap_tell(r, "%s", il__buf_str(&b));
}

/* Could one more request of our kind hold the key together with these? */
static bool
has_room(const struct wrap_opts *o, const il_op *op)
{
    const il_lease_info *first = &op->out.items[0];

    if (op->out.n_items == 0)
        return true;
    if (first->mode != o->mode || first->n_waiters > 0)
        return false;
    return o->mode == IL_MODE_SHARED || (o->mode == IL_MODE_PERMIT && op->out.n_items < o->permits);
}

void
wrap_say_waiting(const struct wrap *r)
{
    const struct wrap_opts *o  = r->opts;
    AUTO_BUF struct il__buf b  = { 0 };
    il_op                   op = { .type = IL_OP_NONE };

    if (o->quiet || o->json || isatty(STDERR_FILENO) == 0)
        return;
    il__buf_init(&b, SENTENCE_BYTES_MAX);
    if (il_get(r->store, o->key, &op, NULL) == IL_OK && !has_room(o, &op)) {
        const il_lease_info *first = &op.out.items[0];
        il__buf_addf(&b, "waiting for %s, held by ", o->key);
        add_who(&b, first->holder, first);
        if (op.out.n_items > 1)
            il__buf_addf(&b, ", and %zu more", op.out.n_items - 1);
        il__buf_addf(&b, "; %" PRIu32 " ahead", first->n_waiters);
        il__proc_say("%s", il__buf_str(&b));
    }
    il_op_release(&op);
}
