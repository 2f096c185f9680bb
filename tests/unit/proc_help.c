/*
 * proc_help.c: a command under a spawner; see proc_help.h.
 */
#include "proc_help.h"

#include <dirent.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/clock.h"

static char *const env_default[] = { (char *)(uintptr_t) "PATH=/usr/local/bin:/usr/bin:/bin",
                                     NULL };

int
c_main(int argc, char **argv)
{
    return argc == 2 && strcmp(argv[1], "spawner") == 0 ? il__proc_spawner_main() : -1;
}

struct proc_spawner *
c_open(void)
{
    struct proc_spawner *s;
    il_error             err = { 0 };

    if (il__proc_spawner_open(&s, &err) != IL_OK)
        T_FAIL("%s", err.message);
    return s;
}

struct proc_spec
c_spec(char *const *argv)
{
    return (struct proc_spec){ .argv = argv, .env = env_default, .cwd = "/", .grace_ms = 100 };
}

void
c_start(struct proc_spawner *s, struct command *c, const struct proc_spec *spec)
{
    il_error err = { 0 };

    memset(c, 0, sizeof *c);
    if (il__proc_start(s, spec, &c->child, &err) != IL_OK)
        T_FAIL("%s", err.message);
    c->out_open = c->err_open = true;
}

void
c_start_sh(struct proc_spawner *s, struct command *c, const char *script,
           const struct proc_spec *spec)
{
    char *const      argv[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                                (char *)(uintptr_t)script, NULL };
    struct proc_spec own    = spec != NULL ? *spec : c_spec(argv);

    own.argv = argv;
    c_start(s, c, &own);
}

static void
take(int fd, char *text, size_t *n, bool *is_open)
{
    ssize_t got = read(fd, text + *n, OUT_BYTES - 1 - *n);

    if (got > 0)
        *n += (size_t)got;
    if (got == 0)
        *is_open = false;
    text[*n] = '\0';
}

/* Wait for something to happen to it. */
static void
look(struct command *c, int64_t until_ms)
{
    struct pollfd fds[] = {
        { c->report.end == PROC_END_NONE ? c->child.ctl : -1, POLLIN, 0 },
        { c->out_open ? c->child.out_fd : -1, POLLIN, 0 },
        { c->err_open ? c->child.err_fd : -1, POLLIN, 0 },
    };
    int64_t left_ms = until_ms - t_real_ms();

    if (left_ms <= 0)
        T_FAIL("nothing happened; stdout '%s', stderr '%s'", c->out, c->err);
    (void)poll(fds, ARRAY_LEN(fds), (int)left_ms);
    if (fds[1].revents != 0)
        take(c->child.out_fd, c->out, &c->n_out, &c->out_open);
    if (fds[2].revents != 0)
        take(c->child.err_fd, c->err, &c->n_err, &c->err_open);
    if (fds[0].revents != 0)
        il__proc_report(&c->child, &c->report);
}

pid_t
c_number(struct command *c)
{
    int64_t until_ms = t_real_ms() + LIMIT_MS;

    for (;;) {
        char *line = c->out + c->n_taken;
        char *end  = strchr(line, '\n');
        if (end != NULL) {
            c->n_taken += (size_t)(end - line) + 1;
            return (pid_t)strtol(line, NULL, 10);
        }
        if (!c->out_open)
            T_FAIL("no more lines; stdout '%s', stderr '%s', end %d, error %d", c->out, c->err,
                   (int)c->report.end, c->report.error);
        look(c, until_ms);
    }
}

void
c_end(struct command *c)
{
    int64_t until_ms = t_real_ms() + LIMIT_MS;

    while (c->report.end == PROC_END_NONE || c->out_open || c->err_open)
        look(c, until_ms);
}

void
c_exits(struct command *c, int status)
{
    c_end(c);
    T_STREQ(c->err, "");
    T_EQ(c->report.end, PROC_END_EXITED);
    T_TRUE(WIFEXITED(c->report.wait_status));
    T_EQ(WEXITSTATUS(c->report.wait_status), status);
    il__proc_finish(&c->child);
}

size_t
c_children(pid_t pid, pid_t *ret, size_t n_max)
{
    char   path[64];
    char   text[4096];
    size_t n = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    size_t n_bytes = fread(text, 1, sizeof text - 1, file);
    text[n_bytes]  = '\0';
    (void)fclose(file);
    for (char *p = text, *end; (void)end, *p != '\0'; p = end) {
        long child = strtol(p, &end, 10);
        if (end == p)
            break;
        if (n < n_max)
            ret[n] = (pid_t)child;
        n++;
    }
    return n;
}

pid_t
c_parent(pid_t pid)
{
    char path[64];
    int  parent = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL || fscanf(file, "%*d (%*[^)]) %*c %d", &parent) != 1)
        T_FAIL("%s: cannot be read", path);
    (void)fclose(file);
    return parent;
}

pid_t
c_spawner(void)
{
    pid_t pid = 0;

    T_EQ(c_children(getpid(), &pid, 1), 1);
    return pid;
}

size_t
c_fds(pid_t pid)
{
    char   path[64];
    size_t n = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    while (dir != NULL && readdir(dir) != NULL)
        n++;
    if (dir != NULL)
        (void)closedir(dir);
    return n;
}

bool
c_settles(pid_t pid, size_t n_children, size_t n_fds)
{
    for (int64_t until_ms = t_real_ms() + LIMIT_MS; t_real_ms() < until_ms;) {
        if (c_children(pid, NULL, 0) == n_children && c_fds(pid) <= n_fds)
            return true;
        (void)poll(NULL, 0, 5);
    }
    return false;
}
