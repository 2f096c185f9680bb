/*
 * redis.c: runs redis-server as a child, and manages the test stores in it.
 */
#include "harness/redis.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/server.h"

#define START_MS 10000
#define ARGS_MAX 64

int
t_free_port(void)
{
    struct sockaddr_in a  = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          n  = sizeof a;
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 &&
          getsockname(fd, (struct sockaddr *)&a, &n) == 0);
    (void)close(fd);
    return ntohs(a.sin_port);
}

void
t_redis_init(struct t_redis *r, bool on_disk, bool has_port)
{
    *r = (struct t_redis){ .proc = { .in = -1, .out = -1 }, .port = has_port ? t_free_port() : 0 };
    t_tmp_make_plain(r->dir, on_disk);
    t_path(r->socket, "%s/s", r->dir);
}

/* ---- a word with it -------------------------------------------------------------------------- */

static int
dial(const char *socket_path)
{
    struct sockaddr_un a  = { .sun_family = AF_UNIX };
    int                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0 && strlen(socket_path) < sizeof a.sun_path);
    memcpy(a.sun_path, socket_path, strlen(socket_path) + 1);
    if (connect(fd, (const struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* One reply, line by line. Texts with line breaks are copied as they are. */
static bool
read_reply(FILE *f, char *out, size_t *n)
{
    char   line[1024];
    size_t room;

    if (fgets(line, sizeof line, f) == NULL)
        return false;
    line[strcspn(line, "\r\n")] = '\0';
    long count                  = strtol(line + 1, NULL, 10);
    if (line[0] == '*') {
        for (long i = 0; i < count; i++) {
            if (!read_reply(f, out, n))
                return false;
        }
        return true;
    }
    room = T_REDIS_REPLY_BYTES - *n;
    if (line[0] != '$') {
        *n += (size_t)snprintf(out + *n, room, "%s\n", line[0] == '-' ? line : line + 1);
        return *n < T_REDIS_REPLY_BYTES;
    }
    if (count < 0) {
        *n += (size_t)snprintf(out + *n, room, "(nil)\n");
        return true;
    }
    if ((size_t)count + 3 > room || fread(out + *n, 1, (size_t)count + 2, f) != (size_t)count + 2)
        return false;
    *n += (size_t)count;
    out[(*n)++] = '\n';
    out[*n]     = '\0';
    return true;
}

/* False: there is no server. */
static bool
ask(const char *socket_path, char out[T_REDIS_REPLY_BYTES], const char *const words[])
{
    size_t n     = 0;
    size_t n_out = 0;
    int    fd    = dial(socket_path);

    if (fd < 0)
        return false;
    FILE *f = fdopen(fd, "r+");
    CHECK(f != NULL);
    while (words[n] != NULL)
        n++;
    (void)fprintf(f, "*%zu\r\n", n);
    for (size_t i = 0; i < n; i++)
        (void)fprintf(f, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
    out[0]  = '\0';
    bool ok = fflush(f) == 0 && read_reply(f, out, &n_out);
    (void)fclose(f);
    if (ok && n_out > 0)
        out[n_out - 1] = '\0'; /* the last line break */
    return ok;
}

const char *
t_redis_ask(const char *socket_path, char out[T_REDIS_REPLY_BYTES], const char *const words[])
{
    if (!ask(socket_path, out, words))
        T_FAIL("no answer of redis-server at %s to %s", socket_path, words[0]);
    return out;
}

/* ---- starting and killing -------------------------------------------------------------------- */

static bool
answers(const struct t_redis *r)
{
    static const char *const ping[] = { "PING", NULL };
    char                     reply[T_REDIS_REPLY_BYTES];

    return ask(r->socket, reply, ping) &&
           (strcmp(reply, "PONG") == 0 || strncmp(reply, "-NOAUTH", 7) == 0);
}

void
t_redis_start(struct t_redis *r, const char *const args[])
{
    char        port[16], log[T_PATH_BYTES];
    const char *argv[ARGS_MAX] = { "redis-server", "--port",    port,
                                   "--unixsocket", r->socket,   "--dir",
                                   r->dir,         "--logfile", log,
                                   "--bind",       "127.0.0.1" };
    size_t      n              = 0;

    (void)snprintf(port, sizeof port, "%d", r->port);
    t_path(log, "%s/log", r->dir);
    while (argv[n] != NULL)
        n++;
    for (size_t i = 0; args != NULL && args[i] != NULL; i++) {
        CHECK(n + 1 < ARGS_MAX);
        argv[n++] = args[i];
    }
    int64_t limit_ns = il__clock_boot_ns() + (int64_t)START_MS * IL__NS_PER_MS;
    t_proc_start(&r->proc, argv, NULL);
    while (!answers(r)) {
        if (il__clock_boot_ns() > limit_ns || t_pid_gone(r->proc.pid, 0))
            T_FAIL("redis-server does not start; see %s: %s", log, r->proc.text);
        (void)usleep(2000);
    }
}

void
t_redis_kill(struct t_redis *r)
{
    t_proc_signal(&r->proc, SIGKILL);
    T_TRUE(t_proc_end(&r->proc, START_MS));
    t_proc_release(&r->proc);
}

void
t_redis_follow(struct t_redis *r, const struct t_redis *master)
{
    char    port[16], reply[T_REDIS_REPLY_BYTES];
    int64_t limit_ns = il__clock_boot_ns() + (int64_t)START_MS * IL__NS_PER_MS;

    (void)snprintf(port, sizeof port, "%d", master->port);
    T_STREQ(T_REDIS(r, reply, "REPLICAOF", "127.0.0.1", port), "OK");
    while (strstr(T_REDIS(r, reply, "INFO", "replication"), "master_link_status:up") == NULL) {
        T_TRUE(il__clock_boot_ns() < limit_ns);
        (void)usleep(5000);
    }
}

void
t_redis_release(struct t_redis *r)
{
    if (r->dir[0] == '\0')
        return;
    t_proc_release(&r->proc);
    t_tmp_remove(r->dir);
    r->dir[0] = '\0';
}

/* ---- stores of tests ------------------------------------------------------------------------- */

static struct t_redis own;
static pid_t          own_pid; /* of the process that started it */

static void
stop_own(void)
{
    if (own_pid == getpid())
        t_redis_release(&own);
}

static const char *
server(void)
{
    static const char *const in_memory[] = { "--save", "", "--appendonly", "no", NULL };
    const char              *given       = getenv("IL_TEST_REDIS");

    if (given != NULL && given[0] != '\0')
        return given;
    if (own_pid == 0) {
        own_pid = getpid();
        t_redis_init(&own, false, false);
        t_redis_start(&own, in_memory);
        CHECK(atexit(stop_own) == 0);
    }
    return own.socket;
}

/* Each store has a prefix of its own: nothing of the test before can be seen. */
static void
make(char url[T_PATH_BYTES], char real_url[T_PATH_BYTES])
{
    static unsigned n_made;
    const char     *at = server();

    n_made++;
    t_path(url, "redis+unix://%s?prefix=t%d-%u&clock=test&max_ttl=86400", at, (int)getpid(),
           n_made);
    t_path(real_url, "redis+unix://%s?prefix=r%d-%u&max_ttl=86400", at, (int)getpid(), n_made);
}

static void
forget_one(const char *url)
{
    static const char unlink_all[] =
        "local at = '0' "
        "repeat local r = redis.call('SCAN', at, 'MATCH', ARGV[1], 'COUNT', 1000) at = r[1] "
        "for _, k in ipairs(r[2]) do redis.call('UNLINK', k) end until at == '0' return 'OK'";
    char        reply[T_REDIS_REPLY_BYTES];
    char        pattern[64];
    const char *prefix = strstr(url, "prefix=") + strlen("prefix=");

    (void)snprintf(pattern, sizeof pattern, "{%.*s}*", (int)strcspn(prefix, "&"), prefix);
    /* A server that a test has stopped needs no cleaning. */
    (void)ask(server(), reply, (const char *const[]){ "EVAL", unlink_all, "0", pattern, NULL });
}

static void
settle(const char *url)
{
    char        reply[T_REDIS_REPLY_BYTES], channel[64];
    const char *prefix = strstr(url, "prefix=") + strlen("prefix=");

    (void)snprintf(channel, sizeof channel, "{%.*s}:wake", (int)strcspn(prefix, "&"), prefix);
    CHECK(ask(server(), reply,
              (const char *const[]){ "PUBLISH", channel,
                                     "settle [[\"settle\",\"settle\",\"settle\"]]", NULL }));
}

static void
forget(const char *url, const char *real_url)
{
    forget_one(url);
    forget_one(real_url);
}

const struct t_server t_server_redis = { .make = make, .settle = settle, .forget = forget };
