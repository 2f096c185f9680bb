/*
 * ring.h: short messages for all who share a board: the last few, in the memory or the file behind its words. Whoever reads keeps his own
 * place; nobody waits for anybody.
 *
 * A message is a hint. One that is overwritten before it was read, or half written by somebody who was killed, is a gap, which the reader is told. Every
 * message has a checksum and is read into the reader's own memory: a damaged file loses messages, and does nothing else.
 */
#ifndef IL_BASE_RING_H
#define IL_BASE_RING_H

#include "base/board.h"

#define IL__RING_TEXT_BYTES_MAX 4000

/* Make the ring of a board in memory, where it is not made for nothing; one in a file has it already. Safe from any thread. False: no
 * memory, or the file is too short: nothing is heard then. */
bool il__ring_open(struct il__board *b);

/* Can it be said? 1..IL__RING_TEXT_BYTES_MAX bytes without control characters. */
bool il__ring_fits(const char *text);
/* Say something to all readers, if it fits. NULL: something may have been missed. */
void il__ring_say(struct il__board *b, const char *text);

struct il__ring_reader {
    uint32_t next;     /* the message that is read next */
    int64_t  stuck_ns; /* since when it is half written; 0 = it is not */
};

enum il__ring_read {
    IL__RING_NONE, /* no more for now */
    IL__RING_TEXT,
    IL__RING_GAP, /* something may have been missed */
};

/* From now on. */
void               il__ring_reader_init(struct il__ring_reader *r, const struct il__board *b);
enum il__ring_read il__ring_read(struct il__ring_reader *r, const struct il__board *b,
                                 int64_t now_ns, char text[IL__RING_TEXT_BYTES_MAX + 1]);

#endif
