/*
 * screen.h: the terminal of `interlock top`. ncurses is loaded when the screen is opened, since no
 * other command needs it.
 */
#ifndef IL_CLI_TOP_SCREEN_H
#define IL_CLI_TOP_SCREEN_H

#include "cli/out.h"

enum top_look {
    TOP_NORMAL,
    TOP_BOLD,
    TOP_REVERSE, /* to the edge: the selected row */
    TOP_ALERT,
};

/* Keys that are not characters. */
enum top_key {
    TOP_KEY_NONE      = 0,
    TOP_KEY_UP        = -1,
    TOP_KEY_DOWN      = -2,
    TOP_KEY_LEFT      = -3,
    TOP_KEY_RIGHT     = -4,
    TOP_KEY_PAGE_UP   = -5,
    TOP_KEY_PAGE_DOWN = -6,
    TOP_KEY_ENTER     = '\n',
    TOP_KEY_ESCAPE    = 27,
    TOP_KEY_ERASE     = 127,
    TOP_KEY_RESIZE    = -7,
    TOP_KEY_OTHER     = -8, /* one without a meaning here */
    TOP_KEY_GONE      = -9, /* the terminal no longer exists */
};

/*
 * Take over the terminal: IL_OK, or IL_INVAL: not a terminal, of an unknown type, or ncurses is not
 * installed. Until top_screen_close(), standard error goes to memory.
 */
MUST_USE il_status top_screen_open(il_error *reterr);
/* Restore the terminal, and print on standard error what was written there meanwhile. */
void top_screen_close(void);

size_t top_screen_rows(void);
/* Draw one line, cut at the edge; `text` is escaped UTF-8, n_bytes of it. The rest of the line is
 * in the same look. */
void top_screen_line(size_t row, enum top_look look, const char *text, size_t n_bytes);
void top_screen_clear(void);
void top_screen_show(void);

/* The next key, a character or an enum top_key, within this time; else TOP_KEY_NONE. */
int top_screen_key(int64_t wait_ms);

#endif
