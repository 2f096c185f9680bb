/*
 * cmd_demo_site.c: `interlock demo-site`: serves a generated site of race results.
 */
#include "apps/ingest/site/serve.h"
#include "base/error.h"
#include "cli/cli.h"

#define DAY_MS 86400000

/* options.def names these numbers. */
#define IS(name, number) _Static_assert((name) == (number), "options.def has another " #name)
IS(SITE_EVENTS_MAX, 100);
IS(SITE_ENTRIES_MAX, 1000);
IS(SITE_RACES_MAX, 200);
IS(SITE_LAPS_MAX, 200);
IS(SITE_REVISION_MAX, 1000000);
IS(SITE_DELAY_MS_MAX, 600000);
IS(SITE_EVERY_MAX, 1000000);
IS(SITE_DAY_MIN, 1000);
IS(SITE_DAY_MAX, 100000);
/* And the failures in this order. */
IS(SITE_FAIL_503, 0);
IS(SITE_FAIL_CUT, 2);
IS(SITE_FAIL_REDIRECT, 7);
IS(SITE_FAIL_COUNT, 8);

static il_status
set_options(const struct cli *cli, struct site_serve *o, il_error *reterr)
{
    struct site_options *site      = &o->site;
    bool                 no_robots = CLI_GIVEN(cli, demo_site, no_robots);
    bool                 deny      = CLI_GIVEN(cli, demo_site, robots_deny);

    if (no_robots && deny)
        return il__error_set(reterr, IL_INVAL,
                             "demo-site: --no-robots and --robots-deny cannot be combined");
    site->seed       = (uint64_t)CLI_OPTION(cli, demo_site, seed)->number;
    site->revision   = (uint64_t)CLI_OPTION(cli, demo_site, revision)->number;
    site->n_events   = (unsigned)CLI_OPTION(cli, demo_site, events)->number;
    site->n_entries  = (unsigned)CLI_OPTION(cli, demo_site, entries)->number;
    site->n_races    = (unsigned)CLI_OPTION(cli, demo_site, races)->number;
    site->n_laps     = (unsigned)CLI_OPTION(cli, demo_site, laps)->number;
    site->newest_day = (unsigned)(CLI_OPTION(cli, demo_site, newest)->number / DAY_MS);
    site->robots     = no_robots ? SITE_ROBOTS_NONE : deny ? SITE_ROBOTS_DENY : SITE_ROBOTS_ALLOW;
    site->forced     = CLI_GIVEN(cli, demo_site, style);
    o->listen        = CLI_GIVEN(cli, demo_site, listen)
                           ? CLI_OPTION(cli, demo_site, listen)->text
                           : il__cli_options[CLI_OPT_demo_site_listen].fallback;
    o->delay_ms      = CLI_OPTION(cli, demo_site, delay)->number;
    o->fail_every    = (uint64_t)CLI_OPTION(cli, demo_site, fail_every)->number;
    o->fail_how      = (enum site_failure)CLI_OPTION(cli, demo_site, fail_how)->number;
    o->change_every  = (uint64_t)CLI_OPTION(cli, demo_site, change_every)->number;
    o->out           = stdout;
    o->json          = cli->json;
    if (!site->forced)
        return IL_OK;
    il_error  why;
    il_status st =
        il__site_styles_parse(CLI_OPTION(cli, demo_site, style)->text, &site->styles, &why);
    return st == IL_OK ? IL_OK : il__error_set(reterr, st, "demo-site: --style: %s", why.message);
}

int
il__cli_cmd_demo_site(struct cli *cli)
{
    struct site_serve o = { .site = SITE_OPTIONS_INIT };
    il_error          err;
    il_status         st = set_options(cli, &o, &err);

    if (st == IL_OK)
        st = il__site_serve(&o, &err);
    return st == IL_OK ? 0 : il__cli_fail(&err);
}
