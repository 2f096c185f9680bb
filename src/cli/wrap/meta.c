/*
 * meta.c: the meta text of a lease; its contents are described in meta.h.
 */
#include "cli/wrap/meta.h"

#include <jansson.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"

#define CWD_BYTES_MAX 500
#define CALLER_COMMAND_BYTES_MAX 200

void
wrap_make_fit(char *text, size_t n_bytes_max)
{
    size_t n_bytes = strlen(text);

    if (n_bytes > n_bytes_max) {
        n_bytes = n_bytes_max;
        while (n_bytes > 0 && ((unsigned char)text[n_bytes] & 0xC0U) == 0x80)
            n_bytes--;
        text[n_bytes] = '\0';
    }
    bool valid = il__utf8_valid(text, n_bytes);
    for (size_t i = 0; i < n_bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7F || (!valid && c >= 0x80))
            text[i] = '?';
    }
}

/* Set a string if there is one; on failure it is omitted. */
static void
set_text(json_t *object, const char *name, char *text, size_t n_bytes_max)
{
    wrap_make_fit(text, n_bytes_max);
    if (text[0] != '\0')
        (void)json_object_set_new(object, name, json_string(text));
}

static void
set_command(json_t *object, char *const *argv, size_t n_bytes_max)
{
    AUTO_BUF struct il__buf line;

    il__buf_init(&line, 2 * n_bytes_max);
    for (size_t i = 0; argv[i] != NULL && line.n_bytes <= n_bytes_max; i++) {
        if (i > 0)
            il__buf_addc(&line, ' ');
        il__buf_add(&line, argv[i], strnlen(argv[i], n_bytes_max));
        line.failed = false; /* truncated if too long */
    }
    if (line.data != NULL)
        set_text(object, "command", line.data, n_bytes_max);
}

void
wrap_user(char *text, size_t n_bytes)
{
    const struct passwd *user = getpwuid(geteuid());

    if (user != NULL)
        (void)snprintf(text, n_bytes, "%.60s", user->pw_name);
    else
        (void)snprintf(text, n_bytes, "%u", (unsigned)geteuid());
    wrap_make_fit(text, n_bytes - 1);
}

static void
set_who(json_t *object)
{
    char host[HOST_NAME_MAX + 1] = "";
    char name[64];

    if (gethostname(host, sizeof host) == 0)
        set_text(object, "host", host, sizeof host);
    wrap_user(name, sizeof name);
    set_text(object, "user", name, sizeof name);
}

/* Escaping can double a text: if it does not fit, drop the least important members. */
static void
print(json_t *object, char out[IL_META_BYTES_MAX + 1])
{
    static const char *const droppable[] = { "cwd", "command", "spool" };

    for (size_t i = 0;; i++) {
        size_t n_bytes = json_dumpb(object, out, IL_META_BYTES_MAX, JSON_COMPACT);
        if (n_bytes > 0 && n_bytes <= IL_META_BYTES_MAX) {
            out[n_bytes] = '\0';
            return;
        }
        out[0] = '\0';
        if (i == ARRAY_LEN(droppable))
            return;
        (void)json_object_del(object, droppable[i]);
    }
}

void
wrap_meta(char *const *argv, const char *spool, char out[IL_META_BYTES_MAX + 1])
{
    AUTO(json_decrefp) json_t *object = json_object();
    char                       cwd[PATH_MAX];

    out[0] = '\0';
    if (object == NULL)
        return;
    (void)json_object_set_new(object, "pid", json_integer(getpid()));
    set_who(object);
    set_command(object, argv, IL__META_COMMAND_BYTES_MAX);
    if (getcwd(cwd, sizeof cwd) != NULL)
        set_text(object, "cwd", cwd, CWD_BYTES_MAX);
    /* A path that is not UTF-8 cannot be stored here; then the run cannot be joined. */
    if (spool != NULL && il__utf8_valid(spool, strlen(spool)))
        (void)json_object_set_new(object, "spool", json_string(spool));
    print(object, out);
}

void
wrap_meta_caller(char *const *argv, char out[IL_META_BYTES_MAX + 1])
{
    AUTO(json_decrefp) json_t *object = json_object();

    out[0] = '\0';
    if (object == NULL)
        return;
    set_who(object);
    set_command(object, argv, CALLER_COMMAND_BYTES_MAX);
    print(object, out);
}

void
wrap_meta_breaker(char out[IL_META_BYTES_MAX + 1])
{
    char interlock[] = "interlock";
    char command[]   = "break";

    wrap_meta_caller((char *[]){ interlock, command, NULL }, out);
}

void
wrap_meta_kept(pid_t pid, pid_t keeper, char out[IL_META_BYTES_MAX + 1])
{
    AUTO(json_decrefp) json_t *object = json_object();
    char                       command[IL__META_COMMAND_BYTES_MAX + 1];
    char                       path[64];

    out[0] = '\0';
    if (object == NULL)
        return;
    (void)json_object_set_new(object, "pid", json_integer(pid));
    set_who(object);
    (void)json_object_set_new(object, "keeper", json_integer(keeper));
    (void)snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    size_t n = il__read_small(path, command, sizeof command);
    for (size_t i = 0; i + 1 < n; i++) {
        if (command[i] == '\0')
            command[i] = ' ';
    }
    set_text(object, "command", command, IL__META_COMMAND_BYTES_MAX);
    print(object, out);
}

pid_t
wrap_meta_keeper(const char *meta, pid_t pid)
{
    AUTO(json_decrefp) json_t *object = json_loads(meta, 0, NULL);
    struct wrap_meta_spool     host;

    wrap_meta_read(meta, &host);
    json_int_t keeper = json_integer_value(json_object_get(object, "keeper"));
    return host.same_host && keeper > 0 && keeper <= INT_MAX &&
                   json_integer_value(json_object_get(object, "pid")) == pid
               ? (pid_t)keeper
               : 0;
}

void
wrap_meta_read(const char *meta, struct wrap_meta_spool *ret)
{
    AUTO(json_decrefp) json_t *object                  = json_loads(meta, 0, NULL);
    char                       host[HOST_NAME_MAX + 1] = "";

    *ret                   = (struct wrap_meta_spool){ .same_host = false };
    const char *their_host = json_string_value(json_object_get(object, "host"));
    const char *spool      = json_string_value(json_object_get(object, "spool"));
    if (gethostname(host, sizeof host) == 0)
        wrap_make_fit(host, sizeof host);
    if (their_host != NULL)
        (void)snprintf(ret->host, sizeof ret->host, "%s", their_host);
    if (spool != NULL && spool[0] == '/' && strlen(spool) < sizeof ret->spool)
        (void)snprintf(ret->spool, sizeof ret->spool, "%s", spool);
    ret->same_host = their_host != NULL && strcmp(their_host, host) == 0;
}

/* A member of the meta, truncated for display. */
static void
shown(const json_t *object, const char *name, char out[IL__META_SHOWN_BYTES_MAX + 4])
{
    const char *text = json_string_value(json_object_get(object, name));

    if (text == NULL)
        return;
    (void)snprintf(out, IL__META_SHOWN_BYTES_MAX + 4, "%.*s", IL__META_SHOWN_BYTES_MAX + 3, text);
    if (strlen(text) <= IL__META_SHOWN_BYTES_MAX)
        return;
    size_t n = IL__META_SHOWN_BYTES_MAX;
    while (n > 0 && ((unsigned char)text[n] & 0xC0U) == 0x80)
        n--; /* not within a character */
    (void)snprintf(out + n, 4, "...");
}

void
wrap_meta_who(const char *meta, struct wrap_meta_who *ret)
{
    AUTO(json_decrefp) json_t *object = json_loads(meta, 0, NULL);

    *ret     = (struct wrap_meta_who){ .pid = 0 };
    ret->pid = json_integer_value(json_object_get(object, "pid"));
    shown(object, "host", ret->host);
    shown(object, "command", ret->command);
}
