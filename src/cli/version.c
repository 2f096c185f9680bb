/*
 * version.c: `interlock --version`: the versions of interlock and of its libraries, as found at run
 * time. It loads those that are normally loaded when they are first needed.
 */
#include <dlfcn.h>
#include <hiredis/hiredis.h>
#include <yaml.h>

#include "cli/cli.h"
#include "data/data.h"

#define STRINGIFY(x) #x
#define STRINGIFY_VALUE(x) STRINGIFY(x)
#define HIREDIS_VERSION            \
    STRINGIFY_VALUE(HIREDIS_MAJOR) \
    "." STRINGIFY_VALUE(HIREDIS_MINOR) "." STRINGIFY_VALUE(HIREDIS_PATCH)

enum form {
    CONSTANT, /* the version itself */
    FUNCTION, /* const char *(void): a text that contains the version */
    OPENSSL,  /* const char *(int) */
    POSTGRES, /* int(void): 150012 is 15.12 */
    LIBXML2,  /* const char *: "20914" is 2.9.14 */
};

static const struct library {
    const char *name;
    const char *soname;
    enum form   form;
    const char *symbol;
    const char *used_by;
} libraries[] = {
#define X(name, soname, form, symbol, used_by) { name, soname, form, symbol, used_by },
#include "cli/libraries.def"
#undef X
};

/* What dlsym() found: ISO C has no cast from void * to a function pointer. */
union symbol {
    void *at;
    const char *(*text)(void);
    const char *(*text_of)(int which);
    int (*number)(void);
    const char *const *variable;
};

/* The version in a text such as "libcurl/7.88.1 OpenSSL/3.0.15": from the first digit on. */
static void
cut_version(const char *text, char *version, size_t n_bytes)
{
    const char *from = text != NULL ? strpbrk(text, "0123456789") : NULL;

    if (from != NULL)
        (void)snprintf(version, n_bytes, "%.*s", (int)strcspn(from, " -/"), from);
}

/* The version of a library; false: it cannot be loaded. */
static bool
find_version(const struct library *l, char *version, size_t n_bytes)
{
    void        *handle = dlopen(l->soname, RTLD_NOW | RTLD_LOCAL);
    union symbol symbol = { .at = NULL };

    if (handle == NULL)
        return false;
    (void)snprintf(version, n_bytes, "unknown");
    if (l->form == CONSTANT) {
        (void)snprintf(version, n_bytes, "%s", l->symbol);
        return true;
    }
    symbol.at = dlsym(handle, l->symbol);
    if (symbol.at == NULL)
        return true;
    switch (l->form) {
    case FUNCTION:
        cut_version(symbol.text(), version, n_bytes);
        break;
    case OPENSSL:
        cut_version(symbol.text_of(0), version, n_bytes);
        break;
    case POSTGRES: {
        int number = symbol.number();
        (void)snprintf(version, n_bytes, "%d.%d", number / 10000, number % 10000);
        break;
    }
    case LIBXML2: {
        long number = strtol(*symbol.variable, NULL, 10);
        (void)snprintf(version, n_bytes, "%ld.%ld.%ld", number / 10000, number / 100 % 100,
                       number % 100);
        break;
    }
    case CONSTANT:
        break;
    }
    return true;
}

static int
print_json(const char *sqlite, const char *json, const char *yaml)
{
    json_t *all = json_pack("{s:s, s:s, s:s}", "sqlite", sqlite, "jansson", json, "libyaml", yaml);
    char    version[64];

    for (size_t i = 0; i < ARRAY_LEN(libraries); i++) {
        bool found = find_version(&libraries[i], version, sizeof version);
        if (json_object_set_new(all, libraries[i].name,
                                found ? json_string(version) : json_null()) != 0) {
            json_decref(all);
            return il__cli_fail_memory();
        }
    }
    return il__cli_json_print(json_pack("{s:s, s:o}", "version", il_version(), "libraries", all));
}

int
il__cli_print_version(const struct cli *cli)
{
    const char *sqlite = il__data_sqlite_version();
    const char *json   = jansson_version_str();
    const char *yaml   = yaml_get_version_string();
    char        version[64];

    if (cli->json)
        return print_json(sqlite, json, yaml);
    (void)printf("interlock %s\nSQLite %s, jansson %s, libyaml %s\n\nLoaded when needed:\n",
                 il_version(), sqlite, json, yaml);
    for (size_t i = 0; i < ARRAY_LEN(libraries); i++) {
        const struct library *l     = &libraries[i];
        bool                  found = find_version(l, version, sizeof version);
        (void)printf("  %-13s %-16s %s\n", l->name, found ? version : "not installed", l->used_by);
    }
    return 0;
}
