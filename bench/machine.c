/*
 * machine.c: describes the machine that the numbers were measured on.
 */
#include <sched.h>
#include <sys/utsname.h>

#include "bench.h"

static void
read_cpu(struct machine *m)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char  line[512];

    (void)snprintf(m->cpu, sizeof m->cpu, "unknown");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL)
            continue;
        colon += 1 + strspn(colon + 1, " ");
        (void)snprintf(m->cpu, sizeof m->cpu, "%.*s", (int)MIN(strcspn(colon, "\n"), 120), colon);
        break;
    }
    if (f != NULL)
        (void)fclose(f); /* was only read from */
}

/* Is `path` below the mount point? */
static bool
is_below(const char *path, const char *mount)
{
    size_t n = strlen(mount);

    return strcmp(mount, "/") == 0 ||
           (strncmp(path, mount, n) == 0 && (path[n] == '/' || path[n] == '\0'));
}

/* The longest mount point above the path is its own; of several mounted over each other, the
 * last. */
void
machine_filesystem(const char *path, char *out, size_t n_bytes)
{
    char  *real = realpath(path, NULL);
    FILE  *f    = fopen("/proc/self/mounts", "re");
    char   line[2048];
    char   mount[1024];
    char   type[64];
    size_t longest = 0;

    (void)snprintf(out, n_bytes, "unknown");
    while (real != NULL && f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "%*s %1023s %63s", mount, type) != 2 || !is_below(real, mount) ||
            strlen(mount) < longest)
            continue;
        longest = strlen(mount);
        (void)snprintf(out, n_bytes, "%s", type);
    }
    if (f != NULL)
        (void)fclose(f); /* was only read from */
    free(real);
}

void
machine_read(struct machine *m, const char *dir)
{
    struct utsname os;
    cpu_set_t      cpus;

    *m = (struct machine){ 0 };
    if (getloadavg(&m->load, 1) != 1)
        m->load = -1; /* unknown */
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
        m->n_cpus = (unsigned)CPU_COUNT(&cpus);
    read_cpu(m);
    CHECK(uname(&os) == 0);
    (void)snprintf(m->kernel, sizeof m->kernel, "%s %s %s", os.sysname, os.release, os.machine);
    machine_filesystem(dir, m->filesystem, sizeof m->filesystem);
}
