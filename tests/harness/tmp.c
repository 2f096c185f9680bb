/*
 * tmp.c: temporary folders and small files.
 */
#include "harness/tmp.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/check.h"

static void
make_below(const char *parent, char path[T_PATH_BYTES])
{
    t_path(path, "%s/interlock-test-XXXXXX", parent);
    if (mkdtemp(path) == NULL)
        T_FAIL("no folder below %s: %s", parent, strerror(errno));
}

static const char *
tmpdir(void)
{
    const char *dir = getenv("TMPDIR");

    return dir != NULL && dir[0] != '\0' ? dir : NULL;
}

void
t_tmp_make_on_disk(char path[T_PATH_BYTES])
{
    make_below(tmpdir() != NULL ? tmpdir() : "/tmp", path);
}

static const char *
in_memory(void)
{
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

void
t_tmp_make(char path[T_PATH_BYTES])
{
    make_below(tmpdir() != NULL ? tmpdir() : in_memory(), path);
}

void
t_tmp_make_plain(char path[T_PATH_BYTES], bool on_disk)
{
    make_below(on_disk ? "/tmp" : in_memory(), path);
}

static int
remove_one(const char *path, const struct stat *st UNUSED, int type UNUSED, struct FTW *ftw UNUSED)
{
    return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

void
t_tmp_remove(const char *path)
{
    CHECK(strstr(path, "interlock-test-") != NULL);
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
}

void
t_file_write(const char *path, const void *data, size_t n_bytes)
{
    FILE *f = fopen(path, "we");

    if (f == NULL)
        T_FAIL("%s: %s", path, strerror(errno));
    if (fwrite(data, 1, n_bytes, f) != n_bytes || fclose(f) != 0)
        T_FAIL("%s: %s", path, strerror(errno));
}

char *
t_file_read(const char *path, size_t *ret_n)
{
    FILE       *f = fopen(path, "re");
    struct stat st;

    if (f == NULL || fstat(fileno(f), &st) != 0)
        T_FAIL("%s: %s", path, strerror(errno));
    size_t n_max = (size_t)st.st_size;
    char  *data  = malloc(n_max + 1);
    if (data == NULL)
        T_FAIL("%s: no memory", path);
    size_t n = fread(data, 1, n_max, f);
    (void)fclose(f); /* was only read from */
    data[n] = '\0';
    if (ret_n != NULL)
        *ret_n = n;
    return data;
}

bool
t_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

void
t_path(char path[T_PATH_BYTES], const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(path, T_PATH_BYTES, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= T_PATH_BYTES)
        T_FAIL("path too long: %s…", path);
}
