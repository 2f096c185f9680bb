/*
 * parse.c: parses specs, and generates all interleavings if none are given. Commands are in
 * parse_command.c.
 */
#include <stdarg.h>
#include <stdio.h>

#include "spec/spec.h"

void
parse_bad(const struct parser *p, const char *fmt, ...)
{
    va_list ap;

    (void)fprintf(stderr, "%s:%u: ", p->sp->path, p->line);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
    exit(EXIT_FAILURE);
}

char *
parse_word(char **text)
{
    char *word = *text + strspn(*text, " \t");

    if (*word == '\0')
        return NULL;
    char *end = word + strcspn(word, " \t");
    *text     = *end == '\0' ? end : end + 1;
    *end      = '\0';
    return word;
}

void
parse_name(const struct parser *p, char name[NAME_BYTES], const char *text)
{
    if (text == NULL || text[0] == '\0' || strlen(text) >= NAME_BYTES)
        parse_bad(p, "a name is missing or too long");
    (void)snprintf(name, NAME_BYTES, "%s", text);
}

/* `{ command; command }` */
static void
parse_block(const struct parser *p, struct step *st, char *text)
{
    char *open  = strchr(text, '{');
    char *close = strrchr(text, '}');

    if (open == NULL || close == NULL || close < open)
        parse_bad(p, "a step is NAME { COMMAND; … }");
    *close     = '\0';
    char *rest = open + 1;
    while (rest != NULL) {
        char *command = strsep(&rest, ";");
        if (command[strspn(command, " \t")] == '\0')
            continue;
        if (st->n_commands == COMMANDS_MAX)
            parse_bad(p, "more than %d commands in a step", COMMANDS_MAX);
        parse_command(p, &st->commands[st->n_commands++], command);
    }
}

static size_t
find_session_of_step(const struct parser *p, const char *name, const size_t *n_taken)
{
    for (size_t i = 0; i < p->sp->n_sessions; i++) {
        const struct session *s = &p->sp->sessions[i];
        if (n_taken[i] < s->n_steps && strcmp(s->steps[n_taken[i]].name, name) == 0)
            return i;
    }
    parse_bad(p, "'%s' is not the next step of any session", name);
}

static struct order *
new_order(const struct parser *p)
{
    struct spec *sp = p->sp;

    if (sp->n_orders == ORDERS_MAX)
        parse_bad(p, "more than %d orders", ORDERS_MAX);
    struct order *orders = realloc(sp->orders, (sp->n_orders + 1) * sizeof *orders);
    CHECK(orders != NULL);
    sp->orders           = orders;
    orders[sp->n_orders] = (struct order){ 0 };
    return &orders[sp->n_orders++];
}

static void
parse_permutation(const struct parser *p, char *text)
{
    struct order *o                     = new_order(p);
    size_t        n_taken[SESSIONS_MAX] = { 0 };

    for (const char *word = parse_word(&text); word != NULL; word = parse_word(&text)) {
        size_t i             = find_session_of_step(p, word, n_taken);
        o->i_session[o->n++] = (unsigned char)i;
        n_taken[i]++;
    }
}

static void
parse_line(struct parser *p, char *text)
{
    struct spec *sp   = p->sp;
    char        *word = parse_word(&text);

    if (word == NULL)
        return;
    if (strcmp(word, "ranks") == 0) {
        for (word = parse_word(&text); word != NULL && sp->n_ranks < RANKS_MAX;
             word = parse_word(&text)) {
            parse_name(p, sp->rank_names[sp->n_ranks], word);
            sp->ranks[sp->n_ranks] = sp->rank_names[sp->n_ranks];
            sp->n_ranks++;
        }
    } else if (strcmp(word, "setup") == 0) {
        sp->setup.n_steps = 1;
        parse_block(p, &sp->setup.steps[0], text);
    } else if (strcmp(word, "session") == 0) {
        if (sp->n_sessions == SESSIONS_MAX)
            parse_bad(p, "more than %d sessions", SESSIONS_MAX);
        p->session = &sp->sessions[sp->n_sessions++];
        parse_name(p, p->session->name, parse_word(&text));
    } else if (strcmp(word, "step") == 0) {
        if (p->session == NULL || p->session->n_steps == STEPS_MAX)
            parse_bad(p, "a step belongs to a session, at most %d to one", STEPS_MAX);
        struct step *st = &p->session->steps[p->session->n_steps++];
        parse_name(p, st->name, parse_word(&text));
        parse_block(p, st, text);
    } else if (strcmp(word, "permutation") == 0) {
        parse_permutation(p, text);
    } else {
        parse_bad(p, "unknown word '%s'", word);
    }
}

/* All interleavings, depth first, sessions in the order they are written. */
static void
make_orders(const struct parser *p, struct order *o, size_t *n_taken)
{
    bool done = true;

    for (size_t i = 0; i < p->sp->n_sessions; i++) {
        if (n_taken[i] == p->sp->sessions[i].n_steps)
            continue;
        done                 = false;
        o->i_session[o->n++] = (unsigned char)i;
        n_taken[i]++;
        make_orders(p, o, n_taken);
        n_taken[i]--;
        o->n--;
    }
    if (done)
        *new_order(p) = *o;
}

struct spec *
spec_read(const char *path)
{
    struct spec  *sp = calloc(1, sizeof *sp);
    struct parser p  = { .sp = sp };

    CHECK(sp != NULL);
    sp->path   = path;
    char *text = t_file_read(path, NULL);
    char *rest = text;
    while (rest != NULL) {
        char *line = strsep(&rest, "\n");
        p.line++;
        line[strcspn(line, "#")] = '\0';
        parse_line(&p, line);
    }
    free(text);
    (void)snprintf(sp->setup.name, sizeof sp->setup.name, "setup");
    (void)snprintf(sp->setup.steps[0].name, sizeof sp->setup.steps[0].name, "setup");
    if (sp->n_sessions == 0)
        parse_bad(&p, "no session");
    if (sp->n_orders == 0) {
        struct order o                     = { 0 };
        size_t       n_taken[SESSIONS_MAX] = { 0 };
        make_orders(&p, &o, n_taken);
    }
    return sp;
}

void
spec_free(struct spec *sp)
{
    free(sp->orders);
    free(sp);
}
