/*
 * pipeline_action.c: parses the actions of steps and probes: commands and HTTP requests. Parameters
 * stay whole values here: {name} is refused wherever a shell, a host name or bare JSON would parse
 * the value again.
 */
#include "apps/runner/pipeline_internal.h"

#include <stdio.h>
#include <strings.h>

#include "apps/runner/template.h"
#include "base/parse.h"

#define PAIRS_MAX 100
#define ARGV_MAX 1000
#define JSON_BYTES_MAX 65536

const char *const il__pipeline_read_command_keys[] = { "run", "shell", "env", "limits", NULL };
const char *const il__pipeline_read_http_keys[]    = { "method", "url", "headers", "body", NULL };

/* ---- pairs ----------------------------------------------------------------------------------- */

static bool
env_name_ok(struct reading *r, const struct doc_node *m, const char *at)
{
    if (!il__template_is_name(m->key, strlen(m->key))) {
        il__reading_fault(r, m->key_line, PLACE(at, "env"),
                          "'%.60s' is not a variable name (letters, digits, '_'; at most %d)",
                          m->key, TEMPLATE_NAME_BYTES_MAX);
        return false;
    }
    if (strncmp(m->key, "INTERLOCK_", 10) == 0) {
        il__reading_fault(r, m->key_line, PLACE(at, "env"),
                          "'%.60s': names that start with INTERLOCK_ are reserved for the runner",
                          m->key);
        return false;
    }
    return true;
}

static bool
header_name_ok(struct reading *r, const struct doc_node *m, const char *at)
{
    size_t n = strspn(m->key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

    if (n > 0 && n <= 128 && m->key[n] == '\0')
        return true;
    il__reading_fault(r, m->key_line, PLACE(at, "headers"), "'%.60s' is not a header name", m->key);
    return false;
}

/* env or headers. */
static size_t
read_pairs(struct reading *r, const struct doc_node *map, const char *at, const char *key,
           bool (*name_ok)(struct reading *, const struct doc_node *, const char *),
           struct pipeline_pair **ret)
{
    const struct doc_node *node = il__doc_get(map, key);
    size_t                 n    = 0;

    if (node == NULL || (node->type == DOC_TEXT && node->text == NULL))
        return 0;
    if (node->type != DOC_MAP || node->n > PAIRS_MAX) {
        il__reading_fault(r, node->line, PLACE(at, key),
                          "must be a mapping of at most %d names to strings", PAIRS_MAX);
        return 0;
    }
    struct pipeline_pair *pairs = il__reading_alloc(r, node->n, sizeof *pairs);
    for (const struct doc_node *m = node->first; m != NULL && pairs != NULL; m = m->next) {
        char                  below[READING_FIELD_BYTES];
        struct doc_node       empty = { .type = DOC_TEXT, .text = "", .line = m->line };
        bool                  blank = m->type == DOC_TEXT && m->text == NULL;
        struct pipeline_pair *pair  = &pairs[n];
        (void)snprintf(below, sizeof below, "%s%s%s", at, at[0] != '\0' ? "." : "", key);
        if (!name_ok(r, m, at) ||
            !il__pipeline_read_template(r, blank ? &empty : m, PLACE(below, m->key), &pair->value))
            continue;
        pair->name = il__reading_strdup(r, m->key);
        n += pair->name != NULL;
        if (name_ok == header_name_ok && strpbrk(pair->value.text, "\r\n") != NULL)
            il__reading_fault(r, m->line, PLACE(below, m->key), "a header must be a single line");
    }
    *ret = pairs;
    return n;
}

/* ---- commands -------------------------------------------------------------------------------- */

static void
read_limits(struct reading *r, const struct doc_node *map, const char *at, struct proc_limits *ret)
{
    static const char *const keys[] = { "cpu_seconds", "memory_mb", "open_files", "processes",
                                        NULL };
    const struct doc_node   *node   = il__doc_get(map, "limits");
    char                     below[READING_FIELD_BYTES];

    if (node == NULL || (node->type == DOC_TEXT && node->text == NULL))
        return;
    (void)snprintf(below, sizeof below, "%s%slimits", at, at[0] != '\0' ? "." : "");
    if (!il__reading_keys(r, node, below, keys, NULL) && node->type != DOC_MAP)
        return;
    ret->cpu_s        = il__reading_number(r, node, below, "cpu_seconds", 1, 86400, 0);
    ret->memory_bytes = il__reading_number(r, node, below, "memory_mb", 1, 1 << 20, 0) * (1 << 20);
    ret->open_files   = il__reading_number(r, node, below, "open_files", 8, 1 << 20, 0);
    ret->processes    = il__reading_number(r, node, below, "processes", 1, 1 << 20, 0);
}

/* A script is never substituted. A {name} of a parameter would be pasted into it, so it is
 * refused; awk's {print} and ${HOME} are left alone. */
static void
check_script(struct reading *r, const struct doc_node *node, const char *at)
{
    const char           *script = node->text;
    struct template_piece piece;

    for (const char *s = script; il__template_next(&s, &piece) != TEMPLATE_END;) {
        bool declared = false;
        if (piece.kind != TEMPLATE_NAME)
            continue;
        for (size_t i = 0; i < own(r)->p->n_parameters; i++)
            declared |= strncmp(own(r)->p->parameters[i].name, piece.text, piece.n_bytes) == 0 &&
                        own(r)->p->parameters[i].name[piece.n_bytes] == '\0';
        if (!declared)
            continue;
        if (piece.text - 1 > script && piece.text[-2] == '$')
            il__reading_advise(r, node->line, PLACE(at, "run"),
                               "use $INTERLOCK_PARAM_%.*s in the script, not ${%.*s}",
                               (int)piece.n_bytes, piece.text, (int)piece.n_bytes, piece.text);
        else
            il__reading_fault(r, node->line, PLACE(at, "run"),
                              "{%.*s} is not substituted in a shell script, for safety; use "
                              "\"$INTERLOCK_PARAM_%.*s\"",
                              (int)piece.n_bytes, piece.text, (int)piece.n_bytes, piece.text);
    }
}

/* The name of the program without folder and version: "python" for /usr/bin/python3.11. */
static size_t
program_name(const char *path, const char **ret)
{
    const char *slash = strrchr(path, '/');
    const char *name  = slash != NULL ? slash + 1 : path;
    size_t      n     = strlen(name);

    while (n > 0 && strchr("0123456789.-", name[n - 1]) != NULL)
        n--;
    *ret = name;
    return n;
}

static bool
is_program(const char *path, const char *program)
{
    const char *name;
    size_t      n = program_name(path, &name);

    return n == strlen(program) && strncmp(name, program, n) == 0;
}

static bool
is_shell(const char *path)
{
    static const char *const shells[] = { "sh",   "bash", "rbash", "dash", "ash",  "hush",
                                          "zsh",  "ksh",  "mksh",  "lksh", "oksh", "posh",
                                          "yash", "fish", "csh",   "tcsh" };

    for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
        if (is_program(path, shells[i]))
            return true;
    }
    return false;
}

/* Short options (-c, -ec), or a long one that takes a command (fish --command). */
static bool
has_option(const char *text, const char *letters)
{
    if (text[0] != '-')
        return false;
    return text[1] == '-' ? strstr(text, "command") != NULL : strpbrk(text, letters) != NULL;
}

/*
 * [sh, -c, "… {name} …"] is a script as well. More options may stand between the -c and the script
 * (-c -e, -c --, -c -o pipefail), and which argument is the script depends on the shell. So every
 * argument after the -c counts as the script.
 */
static void
check_argv(struct reading *r, const struct doc_node *list, const char *at,
           const struct pipeline_command *c)
{
    bool shell  = false;
    bool script = false;

    for (size_t i = 0; i < c->n_argv; i++) {
        const char *text = c->argv[i].text;
        script |= shell && has_option(text, "c");
#ifdef IL_MUTANT_script_after_c_only
        script = i > 0 && shell && strcmp(c->argv[i - 1].text, "-c") == 0;
#endif
        if (script && il__template_has_names(text)) {
            il__reading_fault(r, list->line, PLACE(at, "run"),
                              "a parameter would be interpreted by the shell; use "
                              "\"$INTERLOCK_PARAM_name\" in the script");
            return;
        }
        shell |= is_shell(text);
    }
}

/* Programs other than shells that take code or a command line as an argument: only a warning,
 * since others may execute code as well. */
static const struct interpreter {
    const char *program;
    const char *letters; /* the option that precedes code; NULL = any argument can be code */
} interpreters[] = {
    { "python", "c" },  { "perl", "eE" },  { "ruby", "e" },   { "node", "ep" },     { "php", "r" },
    { "lua", "e" },     { "psql", "c" },   { "mysql", "e" },  { "mariadb", "e" },   { "su", "c" },
    { "runuser", "c" }, { "script", "c" }, { "flock", "c" },  { "env", "S" },       { "ssh", NULL },
    { "sqlite", NULL }, { "eval", NULL },  { "watch", NULL }, { "parallel", NULL },
};

/*
 * Is the argument at `i` code for the interpreter at `i_program`? Code follows its option, or is
 * part of it (-c'print({x})').
 */
static bool
is_code(const struct pipeline_command *c, size_t i_program, size_t i, const struct interpreter *p)
{
    if (p->letters == NULL)
        return true;
    return has_option(c->argv[i].text, p->letters) ||
           (i > i_program + 1 && has_option(c->argv[i - 1].text, p->letters));
}

static void
advise_argv(struct reading *r, const struct doc_node *list, const char *at,
            const struct pipeline_command *c)
{
    const struct interpreter *p         = NULL;
    size_t                    i_program = 0;

    for (size_t i = 0; i < c->n_argv; i++) {
        const char *text = c->argv[i].text;
        if (p != NULL && il__template_has_names(text) && is_code(c, i_program, i, p)) {
            il__reading_advise(r, list->line, PLACE(at, "run"),
                               "a parameter would be interpreted as code by %s; use "
                               "$INTERLOCK_PARAM_name, or a separate argument",
                               p->program);
            return;
        }
        for (size_t k = 0; k < ARRAY_LEN(interpreters); k++) {
            if (!is_program(text, interpreters[k].program))
                continue;
            p         = &interpreters[k];
            i_program = i;
        }
    }
}

static void
read_argv(struct reading *r, const struct doc_node *list, const char *at,
          struct pipeline_command *ret)
{
    size_t n_errors = r->n_errors;

    if (list->first == NULL || list->n > ARGV_MAX) {
        il__reading_fault(r, list->line, PLACE(at, "run"), "must be a list of 1 to %d arguments",
                          ARGV_MAX);
        return;
    }
    ret->argv = il__reading_alloc(r, list->n, sizeof *ret->argv);
    for (const struct doc_node *m = list->first; m != NULL && ret->argv != NULL; m = m->next) {
        char key[32];
        (void)snprintf(key, sizeof key, "run[%zu]", ret->n_argv);
        if (!il__pipeline_read_template(r, m, PLACE(at, key), &ret->argv[ret->n_argv]))
            continue;
        ret->n_argv++;
    }
    if (r->n_errors > n_errors || ret->argv == NULL)
        return;
    if (ret->argv[0].text[0] == '\0' || il__template_has_names(ret->argv[0].text))
        il__reading_fault(r, list->line, PLACE(at, "run[0]"),
                          "the program name must not be empty or contain parameters");
    check_argv(r, list, at, ret);
    advise_argv(r, list, at, ret);
}

void
il__pipeline_read_command(struct reading *r, const struct doc_node *map, const char *at,
                          struct pipeline_command *ret)
{
    const struct doc_node *run   = il__doc_get(map, "run");
    bool                   shell = il__reading_bool(r, map, at, "shell", false);

    ret->n_env = read_pairs(r, map, at, "env", env_name_ok, &ret->env);
    read_limits(r, map, at, &ret->limits);
    if (run == NULL) {
        il__reading_fault(r, map->line, PLACE(at, "run"), "missing; must be a list of arguments");
    } else if (!shell && run->type != DOC_LIST) {
        il__reading_fault(
            r, run->line, PLACE(at, "run"),
            "must be a list of arguments such as [python3, job.py]; or add shell: true");
    } else if (!shell) {
        read_argv(r, run, at, ret);
    } else if (run->type != DOC_TEXT || run->text == NULL || run->text[0] == '\0') {
        il__reading_fault(r, run->line, PLACE(at, "run"), "must be a string if shell is true");
    } else {
        ret->script = il__reading_text(r, map, at, "run", JSON_BYTES_MAX, true);
        check_script(r, run, at);
    }
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static void
read_url(struct reading *r, const struct doc_node *map, const char *at, struct pipeline_http *ret)
{
    const struct doc_node *node = il__doc_get(map, "url");

    if (node == NULL) {
        il__reading_fault(r, map->line, PLACE(at, "url"), "missing");
        return;
    }
    if (!il__pipeline_read_template(r, node, PLACE(at, "url"), &ret->url))
        return;
    const char *url  = ret->url.text;
    const char *host = strncmp(url, "https://", 8) == 0  ? url + 8
                       : strncmp(url, "http://", 7) == 0 ? url + 7
                                                         : NULL;
    if (host == NULL || host[strcspn(host, " \t\r\n")] != '\0' || strcspn(host, "/?#") == 0)
        il__reading_fault(r, node->line, PLACE(at, "url"),
                          "must be an https:// or http:// URL without spaces");
    else if (memchr(host, '{', strcspn(host, "/?#")) != NULL)
        il__reading_fault(r, node->line, PLACE(at, "url"),
                          "a parameter cannot be part of the host: the caller could choose which "
                          "host the server contacts");
}

/* A YAML scalar that means the same in JSON: true, false, null, a number. */
static bool
is_json_literal(const char *text)
{
    size_t digits;

    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return true;
    text += *text == '-';
    digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 15 || (digits > 1 && text[0] == '0'))
        return false;
    text += digits;
    if (*text == '.') {
        digits = strspn(++text, "0123456789");
        text += digits;
        return digits > 0 && *text == '\0';
    }
    return *text == '\0';
}

static void
add_json_text(struct il__buf *out, const char *text)
{
    il__buf_addc(out, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            il__buf_addf(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            il__buf_addf(out, "\\u%04x", (unsigned char)*text);
        else
            il__buf_addc(out, *text);
    }
    il__buf_addc(out, '"');
}

/* At most DOC_DEPTH_MAX deep. */
static void
add_json(struct il__buf *out, const struct doc_node *node)
{
    if (node->type == DOC_TEXT) {
        if (node->text == NULL || (node->plain && is_json_literal(node->text)))
            il__buf_adds(out, node->text != NULL ? node->text : "null");
        else
            add_json_text(out, node->text);
        return;
    }
    il__buf_addc(out, node->type == DOC_MAP ? '{' : '[');
    for (const struct doc_node *m = node->first; m != NULL; m = m->next) {
        if (m != node->first)
            il__buf_addc(out, ',');
        if (node->type == DOC_MAP) {
            add_json_text(out, m->key);
            il__buf_addc(out, ':');
        }
        add_json(out, m);
    }
    il__buf_addc(out, node->type == DOC_MAP ? '}' : ']');
}

/* In JSON text, a {name} outside a string would be parsed as JSON. */
static bool
names_in_strings(const char *json)
{
    bool                  in_string = false;
    struct template_piece piece;

    for (const char *at = json; il__template_next(&at, &piece) != TEMPLATE_END;) {
        if (piece.kind == TEMPLATE_NAME && !in_string)
            return false;
        for (size_t i = 0; piece.kind == TEMPLATE_TEXT && i < piece.n_bytes; i++) {
            if (in_string && piece.text[i] == '\\')
                i++;
            else if (piece.text[i] == '"')
                in_string = !in_string;
        }
    }
    return true;
}

static enum pipeline_escape
escape_of(const struct pipeline_http *h)
{
    for (size_t i = 0; i < h->n_headers; i++) {
        if (strcasecmp(h->headers[i].name, "Content-Type") != 0)
            continue;
        const char *type = h->headers[i].value.text;
        if (strcasestr(type, "json") != NULL)
            return PIPELINE_JSON;
        return strcasestr(type, "x-www-form-urlencoded") != NULL ? PIPELINE_URL : PIPELINE_PLAIN;
    }
    char first = h->body.text[strspn(h->body.text, " \t\r\n")];
    return first == '{' || first == '[' ? PIPELINE_JSON : PIPELINE_PLAIN;
}

static void
read_body(struct reading *r, const struct doc_node *map, const char *at, struct pipeline_http *ret)
{
    const struct doc_node  *node = il__doc_get(map, "body");
    AUTO_BUF struct il__buf json = { 0 };

    if (node == NULL || (node->type == DOC_TEXT && node->text == NULL))
        return;
    il__buf_init(&json, JSON_BYTES_MAX);
    struct doc_node text = { .type = DOC_TEXT, .line = node->line, .text = node->text };
    if (node->type != DOC_TEXT) {
        add_json(&json, node);
        if (json.failed && json.n_bytes + 64 < JSON_BYTES_MAX) { /* it was not full */
            r->no_memory = true;
            return;
        }
        if (json.failed) {
            il__reading_fault(r, node->line, PLACE(at, "body"), "longer than %d bytes",
                              JSON_BYTES_MAX);
            return;
        }
        text.text = il__buf_str(&json);
    }
    if (!il__pipeline_read_template(r, &text, PLACE(at, "body"), &ret->body))
        return;
    ret->body_escape = node->type == DOC_TEXT ? escape_of(ret) : PIPELINE_JSON;
    if (ret->body_escape == PIPELINE_JSON && !names_in_strings(ret->body.text))
        il__reading_fault(r, node->line, PLACE(at, "body"),
                          "a {name} in JSON must be inside a string: \"{name}\"");
}

void
il__pipeline_read_http(struct reading *r, const struct doc_node *map, const char *at,
                       struct pipeline_http *ret)
{
    static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", NULL };

    read_url(r, map, at, ret);
    ret->n_headers = read_pairs(r, map, at, "headers", header_name_ok, &ret->headers);
    read_body(r, map, at, ret);
    size_t method = il__reading_choice(r, map, at, "method", methods, false);
    ret->method   = method != SIZE_MAX ? methods[method] : ret->body.text != NULL ? "POST" : "GET";
    ret->expect_from = 200;
    ret->expect_to   = 299;
}
