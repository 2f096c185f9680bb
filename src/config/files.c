/* files.c: finds and reads the configuration files. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "config/config.h"

#define ETC_FILE "/etc/interlock/config.yml"
#define CONFIG_VARIABLE "INTERLOCK_CONFIG"

il_status
il__config_files(const char *named, struct il__config_files *ret, il_error *reterr)
{
    AUTO_FREE char *folder = il__config_xdg_folder("XDG_CONFIG_HOME", ".config");

    if (named == NULL)
        named = getenv(CONFIG_VARIABLE);
    *ret                 = (struct il__config_files){ 0 };
    ret->paths[ret->n++] = il__strdup(ETC_FILE);
    if (folder != NULL) {
        AUTO_BUF struct il__buf path = { 0 };
        il__buf_init(&path, 8192);
        il__buf_addf(&path, "%s/interlock/config.yml", folder);
        ret->paths[ret->n++] = il__buf_take(&path);
    }
    if (named != NULL && named[0] != '\0') {
        ret->required[ret->n] = true;
        ret->paths[ret->n++]  = il__strdup(named);
    }
    for (size_t i = 0; i < ret->n; i++) {
        if (ret->paths[i] == NULL) {
            il__config_files_release(ret);
            return il__error_set(reterr, IL_NOMEM, "out of memory while reading the configuration");
        }
    }
    return IL_OK;
}

void
il__config_files_release(struct il__config_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        il__free(files->paths[i]);
    *files = (struct il__config_files){ 0 };
}

static il_status
read_all(const char *path, int fd, struct il__buf *data, il_error *reterr)
{
    char    chunk[4096];
    ssize_t n;

    while ((n = read(fd, chunk, sizeof chunk)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return il__error_set(reterr, IL_INVAL, "%s: %s", path, strerror(errno));
        il__buf_add(data, chunk, (size_t)n);
        if (data->failed)
            return il__error_set(reterr, IL_INVAL, "%s: file larger than 1 MiB", path);
    }
    return IL_OK;
}

il_status
il__config_slurp(const char *path, bool required, struct il__buf *data, bool *ret_found,
                 il_error *reterr)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    /* A folder that cannot be searched (the home of another user, after setpriv or sudo -E)
     * counts as empty; a file that exists and cannot be read is an error. */
    int why = errno;

    *ret_found = fd >= 0;
    if (fd < 0 && !required && access(path, F_OK) != 0)
        return IL_OK;
    if (fd < 0)
        return il__error_set(reterr, IL_INVAL, "%s: %s", path, strerror(why));
    il_status st = read_all(path, fd, data, reterr);
    (void)close(fd); /* was only read from */
    return st;
}
