/*
 * once.c: one-line helpers for ops on idempotency keys, and the board.
 */
#include "harness/once.h"

#include <poll.h>

#include "runtime/handle.h"

#define WORD_MS 5000

il_op
t_once_op(il_op_type type, const char *key, const char *attempt, uint64_t token,
          const char *response, struct t_once_args a)
{
    il_op op = { .type = type, .tenant = a.tenant, .key = key, .holder = attempt, .fence = token };

    if (type == IL_OP_ONCE_BEGIN)
        op.in.once = (il_once_in){
            .fingerprint       = a.print,
            .fingerprint_bytes = a.print != NULL ? strlen(a.print) : 0,
            .lease_ms          = a.ttl_ms,
            .keep_ms           = a.keep_ms,
            .meta              = a.meta,
        };
    if (type == IL_OP_ONCE_FINISH)
        op.in.once = (il_once_in){
            .response       = response,
            .response_bytes = a.bytes != 0 || response == NULL ? a.bytes : strlen(response),
            .code           = a.code,
        };
    return op;
}

const il_op *
t_replays(const il_op *op, const void *bytes, size_t n, int32_t code, const char *file, int line)
{
    const char *value = op->out.value;

    (void)t_is(op, IL_REPLAY, file, line);
    t_equ(op->out.value_bytes, n, "bytes of the answer", file, line);
    if (value == NULL || (n > 0 && memcmp(value, bytes, n) != 0) || value[n] != '\0')
        t_fail(file, line, "another answer: '%s'", value != NULL ? value : "(none)");
    t_eq(op->out.code, code, "code of the answer", file, line);
    return op;
}

uint32_t
t_word(struct t_store *s, const char *name, const char *what)
{
    t_attend(s->handles[0]);
    return il__board_read(s->handles[0]->store->board, il__board_slot("default", name, what));
}

/* What another handle wakes comes through the server, a moment later. */
void
t_word_is(struct t_store *s, const char *name, const char *what, uint32_t expected,
          const char *file, int line)
{
    int64_t until_ms = t_real_ms() + (s->engine->server != NULL ? WORD_MS : 0);

    while (t_word(s, name, what) != expected && t_real_ms() < until_ms)
        (void)poll(NULL, 0, 1);
    t_equ(t_word(s, name, what), expected, "the word", file, line);
}
