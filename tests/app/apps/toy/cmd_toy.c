/* cmd_toy.c: `interlock-toy toy count` and `toy ask`. */
#include "cli/cli.h"
#include "cli/request.h"

int
il__cli_cmd_toy_count(struct cli *cli)
{
    uint64_t to = (uint64_t)CLI_OPTION(cli, toy_count, to)->number;

    for (uint64_t i = 1; i <= to; i++)
        il__cli_progress(cli, i, to, "counting\n");
    il__cli_progress_end();
    (void)printf("%llu %s %lld\n", (unsigned long long)to, CLI_SETTING(cli, toy_source_type)->text,
                 (long long)CLI_SETTING(cli, toy_source_retries)->number);
    return to % 2 == 0 ? CLI_EXIT_TOY : 0;
}

int
il__cli_cmd_toy_ask(struct cli *cli)
{
    AUTO_BUF struct il__buf path   = { 0 };
    json_t                 *answer = NULL;
    il_error                err;

    if (!il__cli_is_remote(cli))
        return il__cli_usage("toy ask: needs --server");
    il__buf_init(&path, 1024);
    il__buf_adds(&path, "/toy/greetings/");
    il__buf_add_url(&path, cli->args.operands[0]);
    if (il__cli_request(cli, "GET", il__buf_str(&path), NULL, 0, &answer, &err) != IL_OK)
        return il__cli_fail(&err);
    return il__cli_json_print(answer);
}
