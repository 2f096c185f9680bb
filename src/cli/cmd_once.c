/*
 * cmd_once.c: parses the command line of `interlock once`; wrap/hold_once.c does the work.
 */
#include "base/error.h"
#include "base/hash.h"
#include "cli/input.h"
#include "cli/wrap/wrap.h"

/* A hash that distinguishes requests: the command line and the other inputs. Neither a secret
 * nor a defence: it catches a key that is used twice by mistake. */
static il_status
set_fingerprint(const struct cli *cli, struct wrap_opts *run, il_error *reterr)
{
    const char             *more = CLI_OPTION(cli, once, fingerprint)->text;
    AUTO_BUF struct il__buf b    = { 0 };

    il__buf_init(&b, SIZE_MAX / 2);
    for (char **word = cli->args.tail; *word != NULL; word++)
        il__buf_add(&b, *word, strlen(*word) + 1); /* including the NUL: `a b` is not `ab` */
    il__buf_addc(&b, more != NULL ? 1 : 0);
    il__buf_adds(&b, more != NULL ? more : "");
    if (b.failed)
        return il__error_nomem(reterr);
    for (uint64_t seed = 0; seed < 2; seed++) {
        uint64_t hash = il__hash_stable(b.data, b.n_bytes, seed);
        for (int i = 0; i < 8; i++)
            run->once.fingerprint[run->once.fingerprint_bytes++] = (unsigned char)(hash >> (8 * i));
    }
    return IL_OK;
}

static il_status
fill(struct cli *cli, il_open_opts *open_opts, struct wrap_opts *run, il_error *reterr)
{
    *run = (struct wrap_opts){
        .open_opts     = open_opts,
        .key           = cli->args.operands[0],
        .argv          = cli->args.tail,
        .ttl_ms        = CLI_OPTION(cli, once, lease)->number,
        .wait_ms       = CLI_OPTION(cli, once, wait)->number,
        .timeout_ms    = CLI_OPTION(cli, once, timeout)->number,
        .conflict_exit = il_status_exit(IL_BUSY),
        .quiet         = cli->quiet,
        .json          = cli->json,
        .kind          = WRAP_ONCE,
        .keep_ms       = CLI_OPTION(cli, once, keep)->number,
        .once          = { .only_success = CLI_GIVEN(cli, once, only_success) },
    };
    il_status st = set_fingerprint(cli, run, reterr);
    if (st == IL_OK)
        st = il__cli_choose_grace(cli, CLI_OPTION(cli, once, grace), run->ttl_ms, &run->grace_ms,
                                  reterr);
    if (st == IL_OK)
        st = il__cli_shared_store(cli, open_opts, &run->store_url, reterr);
    return st;
}

int
il__cli_cmd_once(struct cli *cli)
{
    il_open_opts     open_opts;
    struct wrap_opts run;
    il_error         err;
    il_status        st = il__cli_check_key(cli, cli->args.operands[0], &err);

    if (st == IL_OK && strlen(cli->args.operands[0]) > IL_ONCE_KEY_BYTES_MAX)
        st = il__error_set(&err, IL_INVAL, "once: key longer than %d bytes", IL_ONCE_KEY_BYTES_MAX);
    if (st == IL_OK)
        st = fill(cli, &open_opts, &run, &err);
    return st == IL_OK ? wrap_command(&run) : il__cli_fail(&err);
}
