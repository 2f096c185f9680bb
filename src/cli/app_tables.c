/*
 * app_tables.c: the tables of the apps of this binary; see app_tables.h.
 */
#include "cli/app_tables.h"

#include "apps/app.h"

/* The tables of the app after *at, or NULL. */
static const struct app_tables *
next_tables(size_t *at)
{
    while (*at < IL_APP_COUNT) {
        const struct http_app *app = il__apps[(*at)++];
        if (app->tables != NULL)
            return app->tables;
    }
    return NULL;
}

il_status
il__cli_tables_place(const struct cli *cli, struct tables_place **ret, il_error *reterr)
{
    const char *data = CLI_SETTING(cli, data)->text;
    il_status   st   = il__tables_place_open(CLI_SETTING(cli, store)->text,
                                         data[0] != '\0' ? data : NULL, true, ret, reterr);

    return st == IL_NOT_FOUND ? IL_OK : st;
}

il_status
il__cli_each_tables(const struct cli *cli, cli_tables_fn *fn, void *cookie, il_error *reterr)
{
    struct tables_place     *p  = NULL;
    size_t                   at = 0;
    const struct app_tables *t  = next_tables(&at);

    if (t == NULL)
        return IL_OK;
    il_status st = il__cli_tables_place(cli, &p, reterr);
    for (; st == IL_OK && p != NULL && t != NULL; t = next_tables(&at))
        st = fn(cookie, t, p, reterr);
    il__tables_place_close(p);
    return st;
}
