/*
 * answer.h: what an op is told when it is not OK, in words: the same on every engine.
 */
#ifndef IL_CORE_ANSWER_H
#define IL_CORE_ANSWER_H

#include "core/ended.h"

#define IL__SAY_OTHER_MODE "this holder has the key in another mode"
#define IL__SAY_WAITS_IN_OTHER_MODE "this holder waits for the key in another mode"
#define IL__SAY_OTHER_PERMITS "the key is a semaphore with another number of permits"
#define IL__SAY_OTHER_FENCE "this holder has the key with another fence"
#define IL__SAY_COMMITTING \
    "its holder is committing work under it; nobody can take it over meanwhile"
#define IL__SAY_UNCONFIRMED "the offer must be confirmed by repeating the acquire"

/* LOST: this holder's lease has ended, and is remembered. */
void il__answer_lost(il_op *op, const struct il__ended *ended, int64_t now_ms);

/* LOST: this holder's lease is closing: broken for a reason, or, without one, settling after its expiry. */
void il__answer_closing(il_op *op, const char *reason);

#endif
