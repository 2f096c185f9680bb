/*
 * output.c: the tails that are kept of the output of steps.
 */
#include "apps/runner/output.h"

#include "base/parse.h"
#include "data/history.h"

void
runner_tail_init(struct runner_tail *t)
{
    il__buf_init(&t->data, (size_t)2 * DATA_OUTPUT_BYTES_MAX);
    t->n_bytes = 0;
}

void
runner_tail_add(struct runner_tail *t, const void *data, size_t n_bytes)
{
    const char *from = data;

    t->n_bytes += (int64_t)n_bytes;
    if (n_bytes > DATA_OUTPUT_BYTES_MAX) {
        from += n_bytes - DATA_OUTPUT_BYTES_MAX;
        n_bytes = DATA_OUTPUT_BYTES_MAX;
    }
    if (t->data.n_bytes + n_bytes > (size_t)2 * DATA_OUTPUT_BYTES_MAX)
        il__buf_keep_last(&t->data, DATA_OUTPUT_BYTES_MAX);
    il__buf_add(&t->data, from, n_bytes); /* out of memory: keep less of it */
}

const char *
runner_tail_text(struct runner_tail *t)
{
    struct il__buf *b = &t->data;

    if (b->n_bytes == 0)
        return "";
    if (t->n_bytes > (int64_t)DATA_OUTPUT_BYTES_MAX) {
        il__buf_keep_last(b, DATA_OUTPUT_BYTES_MAX);
        size_t n_part = 0; /* rest of a truncated character */
        while (n_part < 3 && n_part < b->n_bytes &&
               ((unsigned char)b->data[n_part] & 0xC0U) == 0x80)
            n_part++;
        il__buf_keep_last(b, b->n_bytes - n_part);
    }
    il__utf8_clean(b->data, b->n_bytes);
    return b->data;
}

void
runner_tail_release(struct runner_tail *t)
{
    il__buf_release(&t->data);
}
