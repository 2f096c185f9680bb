/*
 * cmd_top.c: `interlock top`: shows locks, runs and queues live in a terminal. The keyboard and the
 * layout of the screen; top/model.c reads, sorts and filters, top/screen.c draws.
 */
#include <limits.h>
#include <wchar.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/break.h"
#include "cli/top/model.h"
#include "cli/top/screen.h"
#include "cli/why.h"

#define TEXT_BYTES_MAX ((size_t)1 << 24)
#define LINE_BYTES (IL_PLACE_BYTES_MAX + 1)
#define TABLE_ROW 2 /* below the tabs and the summary */

#define HELP "q quit  1-4 tab  </> sort  r reverse  / filter  w why  b break  up/down select"

enum prompt {
    PROMPT_NONE,
    PROMPT_FILTER,
    PROMPT_REASON,
    PROMPT_CONFIRM,
};

struct view {
    struct cli      *cli;
    struct top_model model;
    size_t           first; /* row of the table, or line of the text, at the top */
    enum prompt      prompt;
    char             line[LINE_BYTES];          /* typed so far */
    char             message[512];              /* shown until the next key; escaped */
    char            *text;                      /* of `why`, shown instead of the table; or NULL */
    char             key[IL_KEY_BYTES_MAX + 1]; /* that `why` or break is about */
    char             holder[IL_HOLDER_BYTES_MAX + 1];
    uint64_t         fence;
    bool             quit;
};

static void
say(struct view *v, const char *text)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, TEXT_BYTES_MAX);
    il__cli_escape(&b, text);
    (void)snprintf(v->message, sizeof v->message, "%s", il__buf_str(&b));
}

/* ---- drawing --------------------------------------------------------------------------------- */

static void
draw_text(size_t row, enum top_look look, const struct il__buf *b)
{
    top_screen_line(row, look, il__buf_str(b), b->n_bytes);
}

static size_t
table_rows(void)
{
    size_t n = top_screen_rows();

    return n > TABLE_ROW + 2 ? n - TABLE_ROW - 2 : 1; /* without its header and the last line */
}

static void
draw_tabs(const struct view *v)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, TEXT_BYTES_MAX);
    for (enum top_tab tab = TOP_OVERVIEW; tab < TOP_TAB_COUNT; tab++)
        il__buf_addf(&b, tab == v->model.tab ? "[%d %s] " : " %d %s  ", (int)tab + 1,
                     top_tab_name(tab));
    draw_text(0, TOP_BOLD, &b);
}

static void
draw_summary(const struct view *v)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, TEXT_BYTES_MAX);
    if (v->model.lost) {
        il__buf_adds(&b, "connection lost: ");
        il__cli_escape(&b, v->model.error.message);
    } else {
        top_model_summary(&v->model, &b);
    }
    draw_text(1, v->model.lost ? TOP_ALERT : TOP_NORMAL, &b);
}

static size_t
count_lines(const char *text)
{
    size_t n = 0;

    for (const char *p = text; *p != '\0'; n++) {
        p += strcspn(p, "\n");
        p += *p == '\n';
    }
    return n;
}

/* Draw the lines of a text from line `first` on. */
static void
draw_lines(const char *text, size_t row, size_t first, size_t n_rows, size_t selected)
{
    size_t i = 0;

    for (const char *p = text; *p != '\0'; i++) {
        size_t n = strcspn(p, "\n");
        if (i >= first && i - first < n_rows)
            top_screen_line(row + i - first, i == selected ? TOP_REVERSE : TOP_NORMAL, p, n);
        p += n + (p[n] == '\n' ? 1 : 0);
    }
}

/* Below the header of a table without rows. */
static void
draw_no_rows(const struct view *v)
{
    static const char *const none[TOP_TAB_COUNT] = {
        [TOP_OVERVIEW] = "no problems",
        [TOP_LOCKS]    = "nothing is locked",
        [TOP_RUNS]     = "no runs; record one with interlock run --record",
        [TOP_QUEUES]   = "no queues; create one with interlock queue push",
    };
    const char *text = v->model.filter[0] != '\0'
                           ? "no matching rows; press / and Escape to clear the filter"
                           : none[v->model.tab];

    if (!v->model.lost)
        top_screen_line(TABLE_ROW + 1, TOP_NORMAL, text, strlen(text));
}

static void
draw_table(struct view *v)
{
    AUTO_GRID struct cli_grid g    = { 0 };
    AUTO_BUF struct il__buf   b    = { 0 };
    size_t                    rows = table_rows();

    v->first = MIN(v->first, v->model.selected);
    if (v->model.selected >= v->first + rows)
        v->first = v->model.selected - rows + 1;
    top_model_grid(&v->model, &g);
    il__buf_init(&b, TEXT_BYTES_MAX);
    il__cli_grid_text(&g, false, &b);
    const char *text = il__buf_str(&b);
    size_t      n    = strcspn(text, "\n");
    top_screen_line(TABLE_ROW, TOP_BOLD, text, n);
    if (text[n] == '\n')
        draw_lines(text + n + 1, TABLE_ROW + 1, v->first, rows, v->model.selected);
    if (v->model.n_rows == 0)
        draw_no_rows(v);
}

static void
draw_last_line(const struct view *v)
{
    AUTO_BUF struct il__buf b    = { 0 };
    enum top_look           look = v->prompt == PROMPT_NONE ? TOP_NORMAL : TOP_BOLD;

    il__buf_init(&b, TEXT_BYTES_MAX);
    switch (v->prompt) {
    case PROMPT_FILTER:
        il__buf_adds(&b, "filter: ");
        il__cli_escape(&b, v->line);
        break;
    case PROMPT_REASON:
        il__buf_adds(&b, "reason to break ");
        il__cli_escape(&b, v->key);
        il__buf_adds(&b, ": ");
        il__cli_escape(&b, v->line);
        break;
    case PROMPT_CONFIRM:
        il__buf_adds(&b, "break ");
        il__cli_escape(&b, v->key);
        il__buf_adds(&b, ", held by ");
        il__cli_escape(&b, v->holder);
        il__buf_adds(&b, "? y/n");
        break;
    case PROMPT_NONE:
        if (v->message[0] != '\0')
            il__buf_adds(&b, v->message);
        else
            il__buf_adds(&b, v->text != NULL ? "Esc back  b break  up/down scroll  q quit" : HELP);
        break;
    }
    draw_text(top_screen_rows() - 1, look, &b);
}

static void
draw(struct view *v)
{
    top_screen_clear();
    draw_tabs(v);
    if (v->text != NULL) {
        size_t rows = table_rows() + 1;
        size_t n    = count_lines(v->text);
        v->first    = MIN(v->first, n > rows ? n - rows : 0);
        draw_lines(v->text, TABLE_ROW, v->first, rows, SIZE_MAX);
    } else {
        draw_summary(v);
        draw_table(v);
    }
    draw_last_line(v);
    top_screen_show();
}

/* ---- actions --------------------------------------------------------------------------------- */

static void
close_text(struct view *v)
{
    il__free(v->text);
    v->text  = NULL;
    v->first = 0;
}

static void
read_why(struct view *v)
{
    il_error err;
    char    *text = il__cli_why(v->cli, v->key, &err);

    if (text == NULL) {
        say(v, err.message);
        return;
    }
    il__free(v->text);
    v->text = text;
}

static void
read_all(struct view *v)
{
    if (v->text != NULL)
        read_why(v);
    else
        (void)top_model_read(&v->model, v->cli); /* the summary shows the error */
}

/* Remember the lock of the selected row, which may be gone after the next read. */
static bool
choose(struct view *v)
{
    const il_lease_info *info = top_model_lease(&v->model);

    if (v->text != NULL)
        return true;
    if (info == NULL) {
        say(v, "select a lock first");
        return false;
    }
    (void)snprintf(v->key, sizeof v->key, "%s", info->key);
    (void)snprintf(v->holder, sizeof v->holder, "%s", info->holder);
    v->fence = info->fence;
    return true;
}

static void
break_lease(struct view *v)
{
    struct cli_breaker b = { .cli = v->cli, .key = v->key, .reason = v->line, .only = v->fence };
    il_error           err;

    if (il__cli_break(&b, &err) != IL_OK)
        say(v, err.message);
    else
        (void)snprintf(v->message, sizeof v->message, "%.*s; " CLI_BREAK_NOTE,
                       (int)strcspn(il__buf_str(&b.text), "\n"), il__buf_str(&b.text));
    il__buf_release(&b.text);
    read_all(v);
}

/* ---- the keyboard ---------------------------------------------------------------------------- */

static void
ask(struct view *v, enum prompt prompt, const char *line)
{
    v->prompt = prompt;
    (void)snprintf(v->line, sizeof v->line, "%s", line);
}

/* Add a character to the line, or remove its last one. */
static void
edit(struct view *v, int key)
{
    size_t    n     = strlen(v->line);
    mbstate_t state = { 0 };
    char      bytes[MB_LEN_MAX];

    if (key == TOP_KEY_ERASE) {
        while (n > 0 && ((unsigned char)v->line[--n] & 0xC0U) == 0x80)
            continue;
        v->line[n] = '\0';
        return;
    }
    if (key < ' ')
        return;
    size_t n_bytes = wcrtomb(bytes, (wchar_t)key, &state);
    if (n_bytes != (size_t)-1 && n + n_bytes < sizeof v->line) {
        memcpy(v->line + n, bytes, n_bytes);
        v->line[n + n_bytes] = '\0';
    }
}

static void
set_filter(struct view *v, const char *text)
{
    (void)snprintf(v->model.filter, sizeof v->model.filter, "%.*s", (int)sizeof v->model.filter - 1,
                   text); /* a longer one is cut */
    top_model_arrange(&v->model);
}

static void
on_prompt_key(struct view *v, int key)
{
    enum prompt prompt = v->prompt;

    if (prompt == PROMPT_CONFIRM) {
        if (key < 0)
            return;
        v->prompt = PROMPT_NONE;
        if (key == 'y')
            break_lease(v);
        else
            say(v, "break cancelled");
    } else if (key == TOP_KEY_ESCAPE) {
        v->prompt = PROMPT_NONE;
        if (prompt == PROMPT_FILTER)
            set_filter(v, "");
    } else if (key != TOP_KEY_ENTER) {
        edit(v, key);
        if (prompt == PROMPT_FILTER)
            set_filter(v, v->line);
    } else if (prompt == PROMPT_FILTER) {
        v->prompt = PROMPT_NONE;
    } else if (v->line[0] != '\0') { /* a reason is required */
        v->prompt = PROMPT_CONFIRM;
    }
}

static void
move(struct view *v, int64_t step)
{
    if (v->text == NULL)
        top_model_select(&v->model, step);
    else
        v->first = (size_t)MAX((int64_t)v->first + step, 0);
}

/* Keys of the table only. */
static void
on_table_key(struct view *v, int key)
{
    switch (key) {
    case TOP_KEY_LEFT:
    case '<':
        top_model_sort(&v->model, -1);
        break;
    case TOP_KEY_RIGHT:
    case '>':
        top_model_sort(&v->model, 1);
        break;
    case 'r':
        v->model.reverse[v->model.tab] = !v->model.reverse[v->model.tab];
        top_model_arrange(&v->model);
        break;
    case '/':
        ask(v, PROMPT_FILTER, v->model.filter);
        break;
    case TOP_KEY_ENTER:
    case 'w':
        if (choose(v)) {
            v->first = 0;
            read_why(v);
        }
        break;
    default:
        break;
    }
}

static void
on_key(struct view *v, int key)
{
    int64_t page = (int64_t)table_rows();

    if (v->prompt != PROMPT_NONE) {
        on_prompt_key(v, key);
        return;
    }
    v->message[0] = '\0';
    switch (key) {
    case 'q':
        v->quit = true;
        break;
    case TOP_KEY_UP:
    case 'k':
        move(v, -1);
        break;
    case TOP_KEY_DOWN:
    case 'j':
        move(v, 1);
        break;
    case TOP_KEY_PAGE_UP:
        move(v, -page);
        break;
    case TOP_KEY_PAGE_DOWN:
        move(v, page);
        break;
    case TOP_KEY_ESCAPE:
        close_text(v);
        break;
    case 'b':
        if (choose(v))
            ask(v, PROMPT_REASON, "");
        break;
    case '1':
    case '2':
    case '3':
    case '4':
        close_text(v);
        top_model_tab(&v->model, (enum top_tab)(key - '1'));
        read_all(v);
        break;
    default:
        if (v->text == NULL)
            on_table_key(v, key);
    }
}

static int64_t
boot_ms(void)
{
    return il__clock_boot_ns() / 1000000;
}

static void
watch(struct view *v, int64_t interval_ms)
{
    int64_t next_ms = boot_ms() + interval_ms;

    while (!v->quit) {
        draw(v);
        int key = top_screen_key(MAX(next_ms - boot_ms(), 0));
        if (key == TOP_KEY_GONE)
            return;
        if (key != TOP_KEY_NONE && key != TOP_KEY_RESIZE)
            on_key(v, key);
        if (boot_ms() >= next_ms) {
            read_all(v);
            next_ms = boot_ms() + interval_ms;
        }
    }
}

int
il__cli_cmd_top(struct cli *cli)
{
    struct view v = { .cli = cli };
    il_error    err;

    top_model_init(&v.model, cli->args.operands[0]);
    il_status st = top_model_read(&v.model, cli);
    if (st != IL_OK)
        err = v.model.error;
    else
        st = top_screen_open(&err);
    if (st == IL_OK) {
        watch(&v, CLI_OPTION(cli, top, interval)->number);
        top_screen_close();
    }
    close_text(&v);
    top_model_release(&v.model);
    return st == IL_OK ? 0 : il__cli_fail(&err);
}
