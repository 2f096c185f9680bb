/*
 * screen.c: the only file that talks to ncurses. Its own handlers of INT and TERM restore the
 * terminal and exit.
 */
#include "cli/top/screen.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <sys/mman.h>
#include <term.h>
#include <unistd.h>
#include <wchar.h>

#include "base/dl.h"
#include "base/error.h"

#define ROW_CHARS_MAX 2048
#define ESCAPE_MS 50 /* after this time, an escape character is the key of that name */

#undef getmaxx
#undef getmaxy

static struct {
#define X(name) __typeof__(&name) name;
#include "cli/top/ncurses.def"
#undef X
} nc;

static struct {
    SCREEN *screen;
    WINDOW *window;
    bool    colours;
    int     messages; /* memory that stands in for standard error */
    int     stderr_fd;
} top = { .messages = -1, .stderr_fd = -1 };

static il_status
load(il_error *reterr)
{
    static bool                       loaded;
    static const struct il__dl_symbol symbols[] = {
#define X(name) IL__DL_SYMBOL(__typeof__(nc), name)
#include "cli/top/ncurses.def"
#undef X
    };
    static const struct il__dl dl       = { "libncursesw.so.6", "libncursesw6", symbols,
                                            ARRAY_LEN(symbols) };
    char                       why[160] = "";

    loaded = loaded || il__dl_load(&dl, &nc, why, sizeof why);
    if (!loaded)
        return il__error_set(reterr, IL_INVAL, "top: %s", why);
    return IL_OK;
}

/* Output is UTF-8, as that of all commands, also where the locale is unset. */
static void
set_locale(void)
{
    if (setlocale(LC_CTYPE, "") == NULL || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        (void)setlocale(LC_CTYPE, "C.UTF-8"); /* if that is missing, only ASCII is shown well */
}

static void
redirect_stderr(void)
{
    (void)fflush(stderr);
    top.messages = memfd_create("messages", MFD_CLOEXEC);
    if (top.messages < 0)
        return; /* messages then appear on the screen */
    top.stderr_fd = dup(STDERR_FILENO);
    if (top.stderr_fd >= 0)
        (void)dup2(top.messages, STDERR_FILENO);
}

static void
restore_stderr(void)
{
    char    chunk[4096];
    ssize_t n;

    if (top.stderr_fd >= 0) {
        (void)fflush(stderr);
        (void)dup2(top.stderr_fd, STDERR_FILENO);
        (void)close(top.stderr_fd);
        (void)lseek(top.messages, 0, SEEK_SET);
        while ((n = read(top.messages, chunk, sizeof chunk)) > 0)
            (void)fwrite(chunk, 1, (size_t)n, stderr);
    }
    if (top.messages >= 0)
        (void)close(top.messages);
    top.messages = top.stderr_fd = -1;
}

static void
new_window(void)
{
    if (top.window != NULL)
        (void)nc.delwin(top.window);
    top.window = nc.newwin(0, 0, 0, 0);
    CHECK(top.window != NULL);
    (void)nc.keypad(top.window, true);
    (void)nc.nodelay(top.window, true);
    (void)nc.clearok(top.window, true);
}

static void
set_modes(void)
{
    (void)nc.cbreak();
    (void)nc.noecho();
    (void)nc.nonl();
    (void)nc.set_escdelay(ESCAPE_MS);
    (void)nc.curs_set(0); /* some terminals cannot hide it */
    top.colours = il__cli_style(stdout, CLI_RED)[0] != '\0' && nc.has_colors() &&
                  nc.start_color() == OK && nc.use_default_colors() == OK &&
                  nc.init_pair(1, COLOR_RED, -1) == OK;
}

il_status
top_screen_open(il_error *reterr)
{
    const char *type = getenv("TERM");

    if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0)
        return il__error_set(reterr, IL_INVAL,
                             "top: standard input and output must be a terminal; see also "
                             "interlock locks, runs and queue stats");
    il_status st = load(reterr);
    if (st != IL_OK)
        return st;
    set_locale();
    top.screen = type != NULL ? nc.newterm(NULL, stdout, stdin) : NULL;
    if (top.screen == NULL || nc.tigetstr("cup") == NULL) {
        if (top.screen != NULL)
            (void)nc.endwin();
        return il__error_set(
            reterr, IL_INVAL,
            "top: the terminal type '%.40s' (TERM) is unknown or cannot move the cursor",
            type != NULL ? type : "");
    }
    redirect_stderr();
    set_modes();
    new_window();
    return IL_OK;
}

void
top_screen_close(void)
{
    (void)nc.endwin();
    (void)nc.delwin(top.window);
    nc.delscreen(top.screen);
    top.window = NULL;
    top.screen = NULL;
    restore_stderr();
}

size_t
top_screen_rows(void)
{
    return (size_t)MAX(nc.getmaxy(top.window), 1);
}

static int
attributes(enum top_look look)
{
    switch (look) {
    case TOP_BOLD:
        return (int)A_BOLD;
    case TOP_REVERSE:
        return (int)A_REVERSE;
    case TOP_ALERT:
        return (int)(top.colours ? COLOR_PAIR(1) | A_BOLD : A_BOLD);
    default:
        return (int)A_NORMAL;
    }
}

void
top_screen_line(size_t row, enum top_look look, const char *text, size_t n_bytes)
{
    wchar_t   line[ROW_CHARS_MAX];
    size_t    n_columns = MIN((size_t)MAX(nc.getmaxx(top.window), 0), ROW_CHARS_MAX);
    size_t    column    = 0;
    size_t    n         = 0;
    mbstate_t state     = { 0 };

    if (row >= top_screen_rows())
        return;
    while (n_bytes > 0 && n < ROW_CHARS_MAX) {
        wchar_t c;
        size_t  used  = mbrtowc(&c, text, n_bytes, &state);
        bool    valid = used != 0 && used != (size_t)-1 && used != (size_t)-2;
        if (!valid) {
            state = (mbstate_t){ 0 };
            used  = 1;
        }
        int width = valid ? wcwidth(c) : -1;
        if (width < 0) { /* not printable in this locale */
            c     = L'?';
            width = 1;
        }
        if (column + (size_t)width > n_columns)
            break;
        line[n++] = c;
        column += (size_t)width;
        text += used;
        n_bytes -= used;
    }
    for (; look == TOP_REVERSE && column < n_columns && n < ROW_CHARS_MAX; column++)
        line[n++] = L' ';
    (void)nc.wattrset(top.window, attributes(look));
    (void)nc.wmove(top.window, (int)row, 0);
    (void)nc.waddnwstr(top.window, line, (int)n); /* fails at the last cell, after writing it */
    (void)nc.wattrset(top.window, (int)A_NORMAL);
}

void
top_screen_clear(void)
{
    (void)nc.werase(top.window);
}

void
top_screen_show(void)
{
    (void)nc.wrefresh(top.window);
}

static int
named(wint_t key)
{
    switch (key) {
    case KEY_UP:
        return TOP_KEY_UP;
    case KEY_DOWN:
        return TOP_KEY_DOWN;
    case KEY_LEFT:
        return TOP_KEY_LEFT;
    case KEY_RIGHT:
        return TOP_KEY_RIGHT;
    case KEY_PPAGE:
        return TOP_KEY_PAGE_UP;
    case KEY_NPAGE:
        return TOP_KEY_PAGE_DOWN;
    case KEY_ENTER:
        return TOP_KEY_ENTER;
    case KEY_BACKSPACE:
        return TOP_KEY_ERASE;
    case KEY_RESIZE:
        new_window();
        return TOP_KEY_RESIZE;
    default:
        return TOP_KEY_OTHER;
    }
}

int
top_screen_key(int64_t wait_ms)
{
    wint_t        key;
    struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

    for (int i = 0; i < 2; i++) { /* what ncurses has read already, then what comes */
        int kind = nc.wget_wch(top.window, &key);
        if (kind == KEY_CODE_YES)
            return named(key);
        if (kind == OK && key == '\r')
            return TOP_KEY_ENTER;
        if (kind == OK && key == 8)
            return TOP_KEY_ERASE;
        if (kind == OK)
            return (int)key;
        if (i == 0 && poll(&in, 1, (int)wait_ms) > 0 && (in.revents & (POLLHUP | POLLERR)) != 0)
            return TOP_KEY_GONE;
    }
    return TOP_KEY_NONE;
}
