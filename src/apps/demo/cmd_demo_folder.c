/*
 * cmd_demo_folder.c: the folder of the demo: its configuration and sample files, its API key.
 */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/demo/cmd_demo.h"
#include "base/error.h"
#include "data/data.h"
#include "apps/demo/demo_samples.inc"

static const struct {
    const char *path, *text;
} samples[] = {
    { "pipelines/" DEMO_TENANT "/export_and_check.yml", sample_export_and_check },
    { "pipelines/" DEMO_TENANT "/slow.yml", sample_slow },
    { "pipelines/" DEMO_TENANT "/flaky.yml", sample_flaky },
    { "pipelines/" DEMO_TENANT "/heartbeat.yml", sample_heartbeat },
    { "pipelines/" DEMO_TENANT "/job_table.yml", sample_job_table },
    { "checks/" DEMO_TENANT "/queue.yml", sample_queue },
};

static const char *const folders[] = {
    "pipelines",
    "pipelines/" DEMO_TENANT,
    "checks",
    "checks/" DEMO_TENANT,
};

/* Durations are short, so that nothing grows for long and the effects of a failure are seen
 * soon. */
#define CONFIG                                 \
    "store: sqlite:%s/store.db\n"              \
    "log_level: warn\n"                        \
    "shutdown: 2s\n"                           \
    "pipelines: %s/pipelines\n"                \
    "pipeline_ttl: " DEMO_LEASE "\n"           \
    "run_dir: %s\n"                            \
    "runs_shutdown: 1s\n"                      \
    "runs_keep: 1h\n"                          \
    "limit_runs: 20\n"                         \
    "checks: %s/checks\n"                      \
    "check_keep: 1d\n"                         \
    "liverc_url: http://127.0.0.1:%u/{slug}\n" \
    "ingest_request_delay_ms: 50\n"            \
    "usage:\n"                                 \
    "  source:\n"                              \
    "    type: generator\n"                    \
    "    cost: 200ms\n"                        \
    "connections:\n"                           \
    "  demo: sqlite:%s/demo.db\n"              \
    "  globex_queue: sqlite:%s/queue.db\n"     \
    "demo:\n"                                  \
    "  folder: %s\n"

il_status
demo_folder_make(struct demo *d, il_error *reterr)
{
    const char *tmp = getenv("TMPDIR");
    il_status   st  = IL_OK;

    if (tmp == NULL || tmp[0] != '/' || strlen(tmp) > sizeof d->dir - 32)
        tmp = "/tmp";
    (void)snprintf(d->dir, sizeof d->dir, "%s/interlock-demo-XXXXXX", tmp);
    if (mkdtemp(d->dir) == NULL) {
        st        = il__error_set(reterr, IL_STORE, "%s: %s", d->dir, strerror(errno));
        d->dir[0] = '\0';
    }
    return st;
}

static il_status
write_file(const struct demo *d, const char *name, const char *text, il_error *reterr)
{
    char path[DEMO_PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/%s", d->dir, name);
    FILE *file = fopen(path, "wxe");
    bool  ok   = file != NULL && fputs(text, file) >= 0;

    if (file != NULL)
        ok = fclose(file) == 0 && ok;
    return ok ? IL_OK : il__error_set(reterr, IL_STORE, "%s: %s", path, strerror(errno));
}

il_status
demo_folder_fill(const struct demo *d, il_error *reterr)
{
    char      path[DEMO_PATH_BYTES], text[sizeof CONFIG + 8 * sizeof d->dir];
    il_status st = IL_OK;

    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", d->dir, folders[i]);
        if (mkdir(path, 0700) != 0)
            return il__error_set(reterr, IL_STORE, "%s: %s", path, strerror(errno));
    }
    for (size_t i = 0; st == IL_OK && i < ARRAY_LEN(samples); i++)
        st = write_file(d, samples[i].path, samples[i].text, reterr);
    (void)snprintf(text, sizeof text, CONFIG, d->dir, d->dir, d->dir, d->dir, d->site_port, d->dir,
                   d->dir, d->dir);
    return st == IL_OK ? write_file(d, "config.yml", text, reterr) : st;
}

il_status
demo_key_make(struct demo *d, il_error *reterr)
{
    struct il__data    *data = NULL;
    char                url[DEMO_PATH_BYTES];
    struct il__data_key key = { .tenant      = DEMO_TENANT,
                                .name        = "demo",
                                .role        = DATA_ROLE_ADMIN,
                                .permissions = "",
                                .prefix      = "" };

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

static int
remove_one(const char *path, const struct stat *st UNUSED, int type UNUSED, struct FTW *ftw UNUSED)
{
    (void)remove(path); /* leave files that cannot be removed */
    return 0;
}

void
demo_folder_remove(const struct demo *d)
{
    if (d->dir[0] != '\0')
        (void)nftw(d->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
