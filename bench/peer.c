/*
 * peer.c: installs and runs npm peers with node. The packages are those of peers/package.json, with
 * exact versions, from the registry or npm's own cache.
 */
#include "peer.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRIPTS BENCH_SOURCE "/peers"
#define LINE_BYTES 256
#define FILE_BYTES 8192 /* no script is longer */

static const char *const scripts[] = { "rounds.mjs", "graphile-worker.mjs", "pg-boss.mjs",
                                       "bullmq.mjs" };

/* The outcome: tried once per run. */
static struct {
    bool tried;
    char why[200]; /* "" = installed */
    char node[BENCH_PATH_BYTES];
    char dir[BENCH_PATH_BYTES];
} peers;

/* ---- installing ------------------------------------------------------------------------------ */

/* The text of a file, "" if missing. */
static void
read_file(const char *dir, const char *name, char text[FILE_BYTES])
{
    char path[BENCH_PATH_BYTES + 64];

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE  *f = fopen(path, "re");
    size_t n = f != NULL ? fread(text, 1, FILE_BYTES - 1, f) : 0;
    CHECK(n < FILE_BYTES - 1);
    text[n] = '\0';
    if (f != NULL)
        (void)fclose(f); /* was only read from */
}

/* Scripts find packages in their own folder. True: it already existed with this content. */
static bool
copy(const char *name)
{
    char text[FILE_BYTES];
    char there[FILE_BYTES];
    char path[BENCH_PATH_BYTES + 64];

    read_file(SCRIPTS, name, text);
    if (text[0] == '\0')
        die("%s/%s cannot be read", SCRIPTS, name);
    read_file(peers.dir, name, there);
    if (strcmp(text, there) == 0)
        return true;
    (void)snprintf(path, sizeof path, "%s/%s", peers.dir, name);
    FILE *f = fopen(path, "we");
    if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0)
        die("%s: %s", path, strerror(errno));
    return false;
}

/* Their location, as an absolute path. */
static void
make_dir(const struct bench *b)
{
    char dir[BENCH_PATH_BYTES];

    (void)snprintf(dir, sizeof dir, "%s",
                   b->peers != NULL ? b->peers : temp_path(b, "peers", peers.dir));
    char *real = mkdir(dir, 0755) == 0 || errno == EEXIST ? realpath(dir, NULL) : NULL;
    if (real == NULL || strlen(real) >= sizeof peers.dir)
        die("%s: %s", dir, strerror(errno));
    memcpy(peers.dir, real, strlen(real) + 1);
    free(real);
}

/* False: peers.why is the first line of npm's output. */
static bool
run_npm(const char *npm)
{
    const char *const argv[] = { npm,
                                 "install",
                                 "--prefix",
                                 peers.dir,
                                 "--ignore-scripts",
                                 "--no-audit",
                                 "--no-fund",
                                 "--no-package-lock",
                                 "--no-update-notifier",
                                 "--prefer-offline",
                                 "--fetch-retries=1",
                                 "--fetch-timeout=20000",
                                 "--loglevel=error",
                                 NULL };
    char              text[4096];

    if (process_run(argv, &(struct process_how){ .dir = peers.dir }, text, sizeof text))
        return true;
    (void)snprintf(peers.why, sizeof peers.why, "npm install failed: %.*s",
                   (int)MIN(strcspn(text, "\n"), 160), text);
    return false;
}

static void
install(const struct bench *b)
{
    char npm[BENCH_PATH_BYTES];
    char done[BENCH_PATH_BYTES + 64]; /* this file exists once the packages are complete */

    if (!program_find("node", peers.node) || !program_find("npm", npm)) {
        (void)snprintf(peers.why, sizeof peers.why, "node and npm are not installed");
        return;
    }
    make_dir(b);
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++)
        IGNORE(copy(scripts[i])); /* it is the newest now */
    (void)snprintf(done, sizeof done, "%s/installed", peers.dir);
    if (copy("package.json") && access(done, F_OK) == 0)
        return;
    (void)unlink(done);
    if (!run_npm(npm))
        return;
    FILE *f = fopen(done, "we");
    if (f == NULL || fclose(f) != 0)
        die("%s: %s", done, strerror(errno));
}

bool
peers_ready(struct bench *b, const char **why)
{
    if (!peers.tried) {
        peers.tried = true;
        install(b);
    }
    *why = peers.why;
    return peers.why[0] == '\0';
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* The text of a member of an answer: {"name":"text"}. The scripts are ours, so this is
 * sufficient. */
static void
member(const char *line, const char *name, char *out, size_t out_bytes)
{
    char key[32];

    (void)snprintf(key, sizeof key, "\"%s\":\"", name);
    const char *at = strstr(line, key);
    if (at == NULL)
        die("a peer says no %s: %s", name, line);
    at += strlen(key);
    (void)snprintf(out, out_bytes, "%.*s", (int)strcspn(at, "\""), at);
}

void
peer_open(struct peer *p, struct bench *b, const char *script, const char *const args[3],
          unsigned n_jobs)
{
    char        line[LINE_BYTES];
    char        version[64];
    const char *argv[6] = { peers.node, script, args[0] };

    argv[3]    = args[0] != NULL ? args[1] : NULL;
    argv[4]    = argv[3] != NULL ? args[2] : NULL;
    p->n_jobs  = n_jobs;
    p->process = process_start(argv, &(struct process_how){ .dir = peers.dir });
    process_read_line(&p->process, line, sizeof line);
    member(line, "peer", version, sizeof version);
    report_software(&b->report, "%s", version);
    member(line, "node", version, sizeof version);
    report_software(&b->report, "node %s", version);
}

void
peer_close(struct peer *p)
{
    process_stop(&p->process);
}

double
peer_round(void *cookie)
{
    static const char key[] = "\"seconds\":";
    struct peer      *p     = cookie;
    char              line[LINE_BYTES];

    (void)snprintf(line, sizeof line, "%u", p->n_jobs);
    process_send_line(&p->process, line);
    process_read_line(&p->process, line, sizeof line);
    const char *at      = strstr(line, key);
    double      seconds = at != NULL ? strtod(at + strlen(key), NULL) : 0;
    if (seconds <= 0)
        die("a peer says '%s'", line);
    return p->n_jobs / seconds;
}
