/* capture.c: keeps the output of a command in memory; the contract is in capture.h. */
#include "cli/wrap/capture.h"

#include <unistd.h>

#include "proc/sys.h"

#define MAGIC "ILO1"
#define HEAD_BYTES 8
#define FRAME_BYTES 5
#define FLAG_PARTLY 1

static void
put_u32(unsigned char *p, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(n >> (8 * i));
}

static uint32_t
get_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void
begin(struct il__capture *c, unsigned char flags)
{
    unsigned char head[HEAD_BYTES] = MAGIC;

    head[4] = flags;
    il__buf_release(&c->b);
    il__buf_init(&c->b, IL_BLOB_BYTES_MAX);
    il__buf_add(&c->b, head, sizeof head);
    c->frame = 0;
}

static void
overflow(struct il__capture *c)
{
    begin(c, FLAG_PARTLY);
    c->overflow = true;
}

void
il__capture_add(struct il__capture *c, uint32_t stream, const void *data, size_t n_bytes)
{
    if (c->overflow)
        return;
    if (c->b.n_bytes == 0)
        begin(c, 0);
    if (c->b.n_bytes + FRAME_BYTES + n_bytes > IL_BLOB_BYTES_MAX) {
        overflow(c);
        return;
    }
    unsigned char *last = c->frame != 0 ? (unsigned char *)c->b.data + c->frame : NULL;
    if (last == NULL || last[0] != stream) {
        unsigned char head[FRAME_BYTES] = { (unsigned char)stream };
        c->frame                        = c->b.n_bytes;
        il__buf_add(&c->b, head, sizeof head);
    }
    il__buf_add(&c->b, data, n_bytes);
    if (c->b.failed) {
        overflow(c);
        return;
    }
    last = (unsigned char *)c->b.data + c->frame;
    put_u32(last + 1, get_u32(last + 1) + (uint32_t)n_bytes);
}

void
il__capture_mark_incomplete(struct il__capture *c)
{
    if (c->b.n_bytes == 0)
        begin(c, 0);
    if (c->b.data != NULL)
        c->b.data[4] |= FLAG_PARTLY;
}

const void *
il__capture_answer(struct il__capture *c, size_t *ret_bytes)
{
    if (c->b.n_bytes == 0)
        begin(c, 0);
    *ret_bytes = c->b.n_bytes;
    return il__buf_str(&c->b);
}

void
il__capture_release(struct il__capture *c)
{
    il__buf_release(&c->b);
}

enum il__capture_told
il__capture_repeat(const void *answer, size_t n_bytes)
{
    const unsigned char *p   = answer;
    const unsigned char *end = p + n_bytes;

    if (n_bytes < HEAD_BYTES || memcmp(p, MAGIC, 4) != 0)
        return il__proc_write_all(STDOUT_FILENO, p, n_bytes) ? IL__CAPTURE_WHOLE
                                                             : IL__CAPTURE_UNWRITABLE;
    bool partly = (p[4] & FLAG_PARTLY) != 0;
    for (p += HEAD_BYTES; end - p >= FRAME_BYTES;) {
        uint32_t n  = get_u32(p + 1);
        int      fd = p[0] == STDERR_FILENO ? STDERR_FILENO : STDOUT_FILENO;
        p += FRAME_BYTES;
        if (n > (size_t)(end - p))
            return IL__CAPTURE_PARTLY; /* not written by us */
        if (!il__proc_write_all(fd, p, n))
            return IL__CAPTURE_UNWRITABLE;
        p += n;
    }
    return partly || p != end ? IL__CAPTURE_PARTLY : IL__CAPTURE_WHOLE;
}
