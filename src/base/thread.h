/*
 * thread.h: starting threads.
 *
 * A library must not take the signals of its application, so a thread of ours blocks them all,
 * except those that it causes itself: SIGBUS must reach the handler of mapped_file.c.
 */
#ifndef IL_BASE_THREAD_H
#define IL_BASE_THREAD_H

#include <pthread.h>

#include "base/base.h"

/* Start a thread with this signal mask. Returns the result of pthread_create(). */
int il__thread_start(pthread_t *ret, void *(*fn)(void *), void *cookie) MUST_USE;

#endif
