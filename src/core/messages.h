/*
 * messages.h: messages of failed ops, the same on every engine.
 */
#ifndef IL_CORE_MESSAGES_H
#define IL_CORE_MESSAGES_H

#include "core/ended.h"

#define IL__SAY_OTHER_MODE "this holder already holds the key in another mode"
#define IL__SAY_WAITS_IN_OTHER_MODE "this holder is already waiting for the key in another mode"
#define IL__SAY_OTHER_PERMITS "the key is a semaphore with another number of permits"
#define IL__SAY_OTHER_FENCE "this holder holds the key with another fence"
#define IL__SAY_COMMITTING \
    "the holder is committing; the key cannot be taken over until it has finished"
#define IL__SAY_UNCONFIRMED "the offer must be confirmed by repeating the acquire"

/* LOST: this holder's lease has ended, and the end is still remembered. */
void il__answer_lost(il_op *op, const struct il__ended *ended, int64_t now_ms);

/* LOST: this holder's lease is closing: broken, if a reason is given, else settling after its
 * expiry. */
void il__answer_closing(il_op *op, const char *reason);

#endif
