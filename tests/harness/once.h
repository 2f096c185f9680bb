/*
 * once.h: one-line helpers for ops on idempotency keys.
 */
#ifndef T_ONCE_H
#define T_ONCE_H

#include "harness/store.h"

struct t_once_args {
    int         unused_;
    const char *print; /* fingerprint, a text; NULL = none */
    int64_t     ttl_ms;
    int64_t     keep_ms;
    const char *meta;
    const char *tenant;
    size_t      bytes; /* of the response; 0 = as long as the text */
    int32_t     code;
};

#define T_ONCE_ARGS(...) ((struct t_once_args){ .unused_ = 0, __VA_ARGS__ })

#define t_once_begin(s, key, attempt, ...) \
    t_op_run(s, NULL, t_once_op(IL_OP_ONCE_BEGIN, key, attempt, 0, NULL, T_ONCE_ARGS(__VA_ARGS__)))
#define t_once_finish(s, key, attempt, token, response, ...) \
    t_op_run(                                                \
        s, NULL,                                             \
        t_once_op(IL_OP_ONCE_FINISH, key, attempt, token, response, T_ONCE_ARGS(__VA_ARGS__)))
#define t_once_abandon(s, key, attempt, token, ...) \
    t_op_run(s, NULL,                               \
             t_once_op(IL_OP_ONCE_ABANDON, key, attempt, token, NULL, T_ONCE_ARGS(__VA_ARGS__)))
#define t_once_get(s, key, ...) \
    t_op_run(s, NULL, t_once_op(IL_OP_ONCE_GET, key, NULL, 0, NULL, T_ONCE_ARGS(__VA_ARGS__)))

/* Build an op without applying it. */
il_op t_once_op(il_op_type type, const char *key, const char *attempt, uint64_t token,
                const char *response, struct t_once_args a);

/* The op is a REPLAY of exactly these bytes, with a NUL behind them. */
#define T_REPLAYS(op, bytes, n, code) t_replays(op, bytes, n, code, __FILE__, __LINE__)
const il_op *t_replays(const il_op *op, const void *bytes, size_t n, int32_t code, const char *file,
                       int line);

/* The word of the board that who waits for `name` sleeps on; `what` is one of IL__WAKE_*. */
uint32_t t_word(struct t_store *s, const char *name, const char *what);
/* It has been bumped as often as expected. */
#define T_WORD_IS(s, name, what, expected) t_word_is(s, name, what, expected, __FILE__, __LINE__)
void t_word_is(struct t_store *s, const char *name, const char *what, uint32_t expected,
               const char *file, int line);

#endif
