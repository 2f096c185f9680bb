/*
 * cmd_demo.c: `interlock demo`: a server on a new SQLite file in a temporary folder, with sample
 * pipelines, a key and a few commands to try. The server runs as a separate process (this binary
 * again), so that users can kill it: it is restarted, and its earlier work is still visible. Ctrl-C
 * stops it and removes the folder.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/cli.h"
#include "data/data.h"
#include "apps/runner/demo_pipelines.inc"

#define TENANT "acme"
#define PORT 7600
#define LEASE "5s"
#define READY_MS 10000
#define PATH_BYTES 512

static const struct {
    const char *name, *text;
} samples[] = {
    { "export_and_check", sample_export_and_check },
    { "slow", sample_slow },
    { "flaky", sample_flaky },
    { "heartbeat", sample_heartbeat },
};

struct demo {
    struct cli *cli;
    char        dir[64];
    unsigned    port;
    char        secret[DATA_KEY_BYTES_MAX], key_id[DATA_ID_BYTES];
    char        link[DATA_TOKEN_BYTES]; /* signs in to the page once, with the key */
    pid_t       server;
    int         signal_fd;
    unsigned    n_starts;
};

/* ---- the folder ------------------------------------------------------------------------------ */

static il_status
write_file(const char *path, const char *text, il_error *reterr)
{
    FILE *file = fopen(path, "wxe");
    bool  ok   = file != NULL && fputs(text, file) >= 0;

    if (file != NULL)
        ok = fclose(file) == 0 && ok;
    return ok ? IL_OK : il__error_set(reterr, IL_STORE, "%s: %s", path, strerror(errno));
}

static il_status
make_folder(struct demo *d, il_error *reterr)
{
    const char *tmp = getenv("TMPDIR");
    char        path[PATH_BYTES], text[4 * PATH_BYTES];
    il_status   st = IL_OK;

    if (tmp == NULL || tmp[0] != '/' || strlen(tmp) > sizeof d->dir - 32)
        tmp = "/tmp";
    (void)snprintf(d->dir, sizeof d->dir, "%s/interlock-demo-XXXXXX", tmp);
    if (mkdtemp(d->dir) == NULL) {
        st        = il__error_set(reterr, IL_STORE, "%s: %s", d->dir, strerror(errno));
        d->dir[0] = '\0';
        return st;
    }
    (void)snprintf(path, sizeof path, "%s/pipelines", d->dir);
    if (mkdir(path, 0700) != 0)
        return il__error_set(reterr, IL_STORE, "%s: %s", path, strerror(errno));
    (void)snprintf(path, sizeof path, "%s/pipelines/" TENANT, d->dir);
    if (mkdir(path, 0700) != 0)
        return il__error_set(reterr, IL_STORE, "%s: %s", path, strerror(errno));
    for (size_t i = 0; st == IL_OK && i < ARRAY_LEN(samples); i++) {
        (void)snprintf(path, sizeof path, "%s/pipelines/" TENANT "/%s.yml", d->dir,
                       samples[i].name);
        st = write_file(path, samples[i].text, reterr);
    }
    (void)snprintf(path, sizeof path, "%s/config.yml", d->dir);
    (void)snprintf(text, sizeof text,
                   "store: sqlite:%s/store.db\npipelines: %s/pipelines\npipeline_ttl: " LEASE
                   "\nrun_dir: %s\nruns_shutdown: 1s\nconnections:\n  demo: sqlite:%s/demo.db\n",
                   d->dir, d->dir, d->dir, d->dir);
    return st == IL_OK ? write_file(path, text, reterr) : st;
}

static int
remove_one(const char *path, const struct stat *st UNUSED, int type UNUSED, struct FTW *ftw UNUSED)
{
    (void)remove(path); /* leave what cannot be removed */
    return 0;
}

static void
remove_folder(const struct demo *d)
{
    if (d->dir[0] != '\0')
        (void)nftw(d->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static il_status
make_key(struct demo *d, il_error *reterr)
{
    struct il__data    *data = NULL;
    char                url[PATH_BYTES];
    struct il__data_key key = {
        .tenant = TENANT, .name = "demo", .role = DATA_ROLE_ADMIN, .permissions = "", .prefix = ""
    };

    (void)snprintf(url, sizeof url, "sqlite:%s/store.db", d->dir);
    struct il__data_open o  = { .store_url = url };
    il_status            st = il__data_open(&o, &data, reterr);
    if (st == IL_OK)
        st = il__data_key_create(data, &key, true, d->key_id, d->secret, reterr);
    if (st == IL_OK)
        st = il__data_token(d->link, reterr);
    il__data_close(data);
    return st;
}

/* ---- the server ------------------------------------------------------------------------------ */

/* A free port of this machine: the usual one, or any. 0: none. */
static unsigned
free_port(unsigned wanted)
{
    struct sockaddr_in a   = { .sin_family      = AF_INET,
                               .sin_port        = htons((uint16_t)wanted),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          n   = sizeof a;
    int                one = 1;
    int                fd  = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unsigned           got = 0;

    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        bind(fd, (const void *)&a, sizeof a) == 0 && listen(fd, 1) == 0 &&
        getsockname(fd, (void *)&a, &n) == 0)
        got = ntohs(a.sin_port);
    if (fd >= 0)
        (void)close(fd); /* nothing was sent */
    return got != 0 || wanted == 0 ? got : free_port(0);
}

_Noreturn static void
be_server(const struct demo *d, pid_t parent)
{
    char     config[PATH_BYTES], listen_on[64], log[PATH_BYTES];
    char     link[DATA_ID_BYTES + DATA_TOKEN_BYTES];
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(0);
    (void)snprintf(config, sizeof config, "%s/config.yml", d->dir);
    (void)snprintf(log, sizeof log, "%s/server.log", d->dir);
    (void)snprintf(listen_on, sizeof listen_on, "127.0.0.1:%u", d->port);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        _exit(71);
    /* Ignore what the user has configured for other stores. */
    (void)unsetenv("INTERLOCK_STORE");
    (void)unsetenv("INTERLOCK_SERVER");
    (void)unsetenv("INTERLOCK_DATA");
    (void)unsetenv("INTERLOCK_TENANT");
    /* Only the first server takes the link: sessions survive a restart. */
    (void)snprintf(link, sizeof link, "%s %s", d->key_id, d->link);
    if (d->n_starts == 1 && setenv("INTERLOCK_LINK", link, 1) != 0)
        _exit(71);
    (void)execl("/proc/self/exe", "interlock", "serve", "--config", config, "--listen", listen_on,
                "--log-format", "text", "--allow-root", (char *)NULL);
    _exit(71);
}

static bool
answers(unsigned port)
{
    struct sockaddr_in a  = { .sin_family      = AF_INET,
                              .sin_port        = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool               ok = fd >= 0 && connect(fd, (const void *)&a, sizeof a) == 0;

    if (fd >= 0)
        (void)close(fd); /* nothing was sent */
    return ok;
}

static il_status
start_server(struct demo *d, il_error *reterr)
{
    pid_t parent = getpid();

    d->n_starts++;
    d->server = fork();
    if (d->server == 0)
        be_server(d, parent);
    if (d->server < 0)
        return il__error_set(reterr, IL_NOMEM, "cannot start a process: %s", strerror(errno));
    for (int waited_ms = 0; waited_ms < READY_MS; waited_ms += 20) {
        int status;
        if (answers(d->port))
            return IL_OK;
        if (waitpid(d->server, &status, WNOHANG) == d->server) {
            d->server = 0;
            break;
        }
        (void)poll(NULL, 0, 20);
    }
    return il__error_set(reterr, IL_STORE, "the server did not start; see %s/server.log", d->dir);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void
print_welcome(const struct demo *d)
{
    const char *bold  = il__cli_style(stdout, CLI_BOLD);
    const char *plain = il__cli_style(stdout, CLI_PLAIN);

    (void)printf("%sInterlock is running: http://127.0.0.1:%u/ui/#link=%s%s\n"
                 "(The link signs in once, within ten minutes. API: /openapi.json, metrics: "
                 "/metrics)\n\n",
                 bold, d->port, d->link, plain);
    (void)printf("    export KEY=%s URL=http://127.0.0.1:%u\n\n", d->secret, d->port);
    (void)printf("1. Trigger a slow pipeline twice: the second call gets the id of the run that is "
                 "going.\n\n"
                 "    curl -s -XPOST -H \"X-API-Key: $KEY\" $URL/pipelines/run/slow\n"
                 "    curl -s -XPOST -H \"X-API-Key: $KEY\" $URL/pipelines/run/slow\n\n"
                 "2. Watch it: steps, attempts, output (put the id in).\n\n"
                 "    curl -s -H \"X-API-Key: $KEY\" $URL/pipelines/runs/ID\n"
                 "    INTERLOCK_API_KEY=$KEY %s --server $URL logs --follow ID\n\n"
                 "3. Kill the server in the middle of it. Its processes end with it; the run is "
                 "FAILED and the key free after " LEASE ".\n\n"
                 "    kill -9 %d\n"
                 "    curl -s -H \"X-API-Key: $KEY\" $URL/pipelines/runs/ID\n\n"
                 "4. Others: export_and_check (two steps at once, then checks), flaky (fails "
                 "twice, then not), heartbeat (each minute).\n\n"
                 "    curl -s -XPOST -H \"X-API-Key: $KEY\" $URL/pipelines/run/export_and_check\n"
                 "    curl -s -H \"X-API-Key: $KEY\" \"$URL/pipelines/runs?limit=5\"\n\n"
                 "Everything is in %s; Ctrl-C ends the demo and removes it.\n",
                 program_invocation_name, (int)d->server, d->dir);
    (void)fflush(stdout); /* a missing reader is not an error */
}

/* ---- running it ------------------------------------------------------------------------------ */

/* Run until a signal; restart a server that died. */
static il_status
watch(struct demo *d, il_error *reterr)
{
    struct signalfd_siginfo info;

    for (;;) {
        if (read(d->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
            continue;
        if (info.ssi_signo != SIGCHLD)
            return IL_OK;
        int status;
        if (d->server == 0 || waitpid(d->server, &status, WNOHANG) != d->server)
            continue;
        d->server = 0;
        if (!WIFSIGNALED(status))
            return il__error_set(reterr, IL_STORE, "the server has exited; see %s/server.log",
                                 d->dir);
        (void)printf("\nThe server was killed (signal %d).", WTERMSIG(status));
        il_status st = start_server(d, reterr);
        if (st != IL_OK)
            return st;
        (void)printf(" A new one runs (pid %d): what was committed is there, a run that was going "
                     "is FAILED after " LEASE ".\n",
                     (int)d->server);
        (void)fflush(stdout);
    }
}

static void
end(struct demo *d)
{
    if (d->server > 0) {
        (void)kill(d->server, SIGTERM);
        while (waitpid(d->server, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    remove_folder(d);
    explicit_bzero(d->secret, sizeof d->secret);
    explicit_bzero(d->link, sizeof d->link);
    if (d->signal_fd >= 0)
        (void)close(d->signal_fd);
}

int
il__cli_cmd_demo(struct cli *cli)
{
    struct demo d = { .cli = cli, .signal_fd = -1 };
    sigset_t    signals;
    il_error    err;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGHUP);
    (void)sigaddset(&signals, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    d.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    d.port      = free_port(PORT);
    il_status st =
        d.signal_fd >= 0 && d.port != 0
            ? make_folder(&d, &err)
            : il__error_set(&err, IL_NOMEM, "cannot open a descriptor or find a free port");
    if (st == IL_OK)
        st = make_key(&d, &err);
    if (st == IL_OK)
        st = start_server(&d, &err);
    if (st == IL_OK) {
        print_welcome(&d);
        st = watch(&d, &err);
    }
    end(&d);
    return st == IL_OK ? 0 : il__cli_fail(&err);
}
