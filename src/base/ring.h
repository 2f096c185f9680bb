/*
 * ring.h: a ring of the latest few short messages, stored after the words of a board and shared by
 * all processes that map it. Each reader keeps its own position; readers and writers never block.
 *
 * A message is only a hint. If one is overwritten before it was read, or half written by a process
 * that was killed, the reader gets a gap. Every message has a checksum and is copied into the
 * reader's memory: a damaged file loses messages, but does no other harm.
 */
#ifndef IL_BASE_RING_H
#define IL_BASE_RING_H

#include "base/board.h"

#define IL__RING_TEXT_BYTES_MAX 4000

/* Create the ring of a board in memory, which is only allocated when needed; a board in a file
 * already has one. Thread-safe. False: out of memory, or the file is too short: no messages arrive
 * then. */
bool il__ring_open(struct il__board *b);

/* Is it a valid message? 1..IL__RING_TEXT_BYTES_MAX bytes without control characters. */
bool il__ring_fits(const char *text);
/* Send a message to all readers, if it fits. NULL: messages may have been missed. */
void il__ring_say(struct il__board *b, const char *text);

struct il__ring_reader {
    uint32_t next;     /* the next message to read */
    int64_t  stuck_ns; /* since when it is half written; 0 = not */
};

enum il__ring_read {
    IL__RING_NONE, /* no more for now */
    IL__RING_TEXT,
    IL__RING_GAP, /* messages may have been missed */
};

/* From now on. */
void               il__ring_reader_init(struct il__ring_reader *r, const struct il__board *b);
enum il__ring_read il__ring_read(struct il__ring_reader *r, const struct il__board *b,
                                 int64_t now_ns, char text[IL__RING_TEXT_BYTES_MAX + 1]);

#endif
