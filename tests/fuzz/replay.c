/*
 * replay.c: runs a fuzz target on the files of a corpus, or on single files.
 */
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"

static unsigned n_played;

static void
play_file(const char *path)
{
    static uint8_t data[1 << 20];
    FILE          *file = fopen(path, "rb");

    CHECK(file != NULL);
    size_t n_bytes = fread(data, 1, sizeof data, file);
    CHECK(ferror(file) == 0);
    (void)fclose(file);
    /* The name comes first: when the target crashes, it is the last line. */
    (void)printf("# %s\n", path);
    (void)fflush(stdout);
    (void)LLVMFuzzerTestOneInput(data, n_bytes);
    n_played++;
}

static void
play_folder(const char *path)
{
    DIR           *dir = opendir(path);
    struct dirent *entry;
    char           name[4096];

    CHECK(dir != NULL);
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        play_file(name);
    }
    (void)closedir(dir);
}

int
main(int argc, char **argv)
{
    struct stat st;

    (void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        CHECK(stat(argv[i], &st) == 0);
        if (S_ISDIR(st.st_mode))
            play_folder(argv[i]);
        else
            play_file(argv[i]);
    }
    (void)printf("%u inputs\n", n_played);
    return n_played > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
