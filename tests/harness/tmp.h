/*
 * tmp.h: temporary folders and small files.
 */
#ifndef T_TMP_H
#define T_TMP_H

#include <stdbool.h>
#include <stddef.h>

#define T_PATH_BYTES 512

/* A new folder in $TMPDIR if that is set, else in memory (/dev/shm), else in /tmp. Fails the test
 * when it cannot. */
void t_tmp_make(char path[T_PATH_BYTES]);
/* A new folder on a real disk: $TMPDIR, else /tmp. */
void t_tmp_make_on_disk(char path[T_PATH_BYTES]);
/* A new folder with a short and plain path, not in $TMPDIR: for sockets of servers, and for what is
 * written into URLs and scripts as it is. */
void t_tmp_make_plain(char path[T_PATH_BYTES], bool on_disk);
/* Remove it with all that is in it; a folder that is gone is fine. */
void t_tmp_remove(const char *path);

/* Write a whole file; read one (NUL added, caller frees, *ret_n may be NULL). Fail the test
 * otherwise. */
void  t_file_write(const char *path, const void *data, size_t n_bytes);
char *t_file_read(const char *path, size_t *ret_n);
bool  t_file_exists(const char *path);

/* printf into a path buffer; fails the test when it does not fit. */
void t_path(char path[T_PATH_BYTES], const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
