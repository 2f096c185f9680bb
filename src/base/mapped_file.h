/*
 * mapped_file.h: memory mapped from a file that another process may truncate.
 *
 * Accessing a page beyond the end of its file raises SIGBUS, and no prior check can rule that out.
 * While a mapping is watched, a SIGBUS handler extends the file, and the access continues there. If
 * the file cannot be extended (a full disk), the handler replaces the whole mapping with the
 * owner's spare memory. The mapping then no longer serves its purpose, but nothing else breaks. A
 * SIGBUS that belongs to no watched mapping is passed on to the previous action.
 *
 * Extending is tried first because futexes are keyed by file: threads that sleep on a word of the
 * file can only be woken through the file, and only while it contains the page.
 *
 * A thread that blocks SIGBUS is still killed: start threads with il__thread_start() (thread.h).
 */
#ifndef IL_BASE_MAPPED_FILE_H
#define IL_BASE_MAPPED_FILE_H

#include "base/base.h"

struct il__mapped_file;

/*
 * Watch n_bytes at start, mapped from fd. `spare`: the same number of bytes, mapped shared and
 * anonymous. Until il__mapped_file_unwatch(), fd must refer to a file that may be extended. NULL: a
 * thousand mappings are watched already, and this one is not. Thread-safe, as are the other
 * functions, which accept NULL.
 */
struct il__mapped_file *il__mapped_file_watch(void *start, size_t n_bytes, int fd, void *spare)
    MUST_USE;
/* Call before unmapping. */
void il__mapped_file_unwatch(struct il__mapped_file *m);
/* Was the file truncated? Then the owner should map it again. */
bool il__mapped_file_is_lost(const struct il__mapped_file *m);
/* The owner is about to map a file there again. */
void il__mapped_file_found(struct il__mapped_file *m);

#endif
