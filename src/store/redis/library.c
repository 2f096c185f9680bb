/*
 * library.c: installs the function library in the server and opens the store on a connection.
 *
 * The names of the library and of its functions contain a hash of its text. Every version of
 * Interlock therefore calls the functions it was built with, several versions can share one server,
 * and an installed library is always the right one. It is loaded when a call reports that it is
 * missing: on a new server, one restarted without a file, or after FLUSHALL with FUNCTION FLUSH.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "store/redis/redis_internal.h"

#include "redis_lua.inc"

#define VERSION_MIN_MAJOR 7
#define LAYOUT 1           /* of the store's rows */
#define GREETING_BYTES 512 /* what greet() sends besides the login */
#define BACKOFF_MS_MIN 10
#define BACKOFF_MS_MAX 500

/* ---- the library ----------------------------------------------------------------------------- */

static pthread_once_t named = PTHREAD_ONCE_INIT;
static char           library[REDIS_FUNCTION_BYTES - 8];
static char           functions[4][REDIS_FUNCTION_BYTES];

static void
make_names(void)
{
    static const char *const suffixes[] = {
        [REDIS_WRITE] = "write", [REDIS_FREE] = "free", [REDIS_OWN] = "own", [REDIS_READ] = "read"
    };
    uint64_t hash = il__hash_stable(lua_library, sizeof lua_library - 1, 1);

    (void)snprintf(library, sizeof library, "interlock_%016" PRIx64, hash);
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
        (void)snprintf(functions[i], sizeof functions[i], "%s_%s", library, suffixes[i]);
}

/* The name of a function of this version of the library. */
static const char *
function_name(enum redis_function f)
{
    (void)pthread_once(&named, make_names); /* fails for a bad argument only */
    return functions[f];
}

static bool
is_error(const redisReply *r, const char *prefix)
{
    return r->type == REDIS_REPLY_ERROR && strncmp(r->str, prefix, strlen(prefix)) == 0;
}

il_status
il__redis_library_load(struct redis_store *s, struct redis_conn *c, int64_t deadline_ns,
                       il_error *reterr)
{
    AUTO_REPLY redisReply  *r    = NULL;
    struct il__buf AUTO_BUF text = { .n_bytes_max = (size_t)1 << 24 };

    (void)function_name(REDIS_WRITE);
    il__buf_addf(&text, "#!lua name=%s\nlocal NAME = '%s'\n", library, library);
    il__buf_add(&text, lua_library, sizeof lua_library - 1);
    if (text.failed)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a batch");
    il_status st = il__redis_ask(c, deadline_ns, &r, reterr, "FUNCTION", "LOAD", text.data);
    if (st != IL_OK)
        return st;
    /* Another process may have been faster: its library has the same text, or it would not have the
     * same name. */
    if (r->type == REDIS_REPLY_ERROR && strstr(r->str, "already exists") == NULL) {
        /* The call failed, whatever the error. A replica only now says what it is: it cannot call
         * what it lacks. */
        if (il__redis_map(c->url, r->str, reterr) == REDIS_ERROR_DROP)
            il__redis_suspect(s);
        il__redis_conn_drop(c);
        return reterr != NULL ? reterr->status : IL_STORE;
    }
    return IL_OK;
}

/* ---- settings of the server ------------------------------------------------------------------ */

void
il__redis_info(const char *info, const char *name, char *out, size_t n_bytes)
{
    size_t n_name = strlen(name);

    out[0] = '\0';
    for (const char *line = info; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n_name) == 0 && line[n_name] == ':') {
            const char *value = line + n_name + 1;
            (void)snprintf(out, n_bytes, "%.*s", (int)strcspn(value, "\r\n"), value);
            return;
        }
    }
}

static void
read_info(struct redis_facts *f, const char *info)
{
    char text[16];

    il__redis_info(info, "redis_version", f->version, sizeof f->version);
    il__redis_info(info, "maxmemory_policy", f->policy, sizeof f->policy);
    il__redis_info(info, "aof_enabled", text, sizeof text);
    f->aof = strcmp(text, "1") == 0;
    il__redis_info(info, "role", text, sizeof text);
    f->is_master = strcmp(text, "master") == 0;
}

static bool
is_loading(const char *info)
{
    char text[4];

    il__redis_info(info, "loading", text, sizeof text);
    return strcmp(text, "1") == 0;
}

/* [name, value, …] of CONFIG GET; "" if the server does not tell. */
static void
read_config(struct redis_facts *f, const redisReply *r)
{
    bool lazy = false;

    f->appendfsync[0] = '\0';
    for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i + 1 < r->elements; i += 2) {
        const redisReply *name  = r->element[i];
        const redisReply *value = r->element[i + 1];
        if (name->type != REDIS_REPLY_STRING || value->type != REDIS_REPLY_STRING)
            continue;
        if (strcmp(name->str, "appendfsync") == 0)
            (void)snprintf(f->appendfsync, sizeof f->appendfsync, "%s", value->str);
        else if (strcmp(name->str, "no-appendfsync-on-rewrite") == 0)
            lazy = strcmp(value->str, "yes") == 0;
    }
    f->is_synced = f->aof && strcmp(f->appendfsync, "always") == 0 && !lazy;
}

static il_status
check_facts(const struct redis_url *u, const struct redis_facts *f, il_error *reterr)
{
    unsigned major = 0;

    for (const char *at = f->version; *at >= '0' && *at <= '9'; at++)
        major = 10 * major + (unsigned)(*at - '0');
    if (major < VERSION_MIN_MAJOR)
        return il__error_set(reterr, IL_STORE,
                             "%s: Redis %s is too old: 7.0 or newer is needed (function libraries)",
                             u->shown, f->version);
    return IL_OK;
}

il_status
il__redis_refuse_policy(const struct redis_conn *c, il_error *reterr)
{
    return il__error_set(reterr, IL_STORE,
                         "%s: maxmemory-policy is %s: a full server would evict locks and jobs; "
                         "set noeviction, or unsafe=eviction in the URL",
                         c->url->shown, c->policy);
}

/* ---- the first words ------------------------------------------------------------------------- */

/* A reply that must not be an error. */
static il_status
expect_ok(struct redis_conn *c, int64_t deadline_ns, il_error *reterr)
{
    AUTO_REPLY redisReply *r  = NULL;
    il_status              st = il__redis_recv(c, deadline_ns, &r, reterr);

    if (st != IL_OK || r->type != REDIS_REPLY_ERROR)
        return st;
    (void)il__redis_map(c->url, r->str, reterr); /* the connection is unusable in any case */
    return IL_STORE;
}

/* Log in, select the database, and check that it is a master. Fills in *f. */
static il_status
greet(struct redis_conn *c, struct redis_facts *f, int64_t deadline_ns, il_error *reterr)
{
    const struct redis_url *u      = c->url;
    AUTO_REPLY redisReply  *info   = NULL;
    AUTO_REPLY redisReply  *config = NULL;
    char                    db[16];

    (void)snprintf(db, sizeof db, "%u", u->db);
    /* Reserve it all at once: a growing buffer would leave copies of the password behind. */
    if (u->password != NULL)
        /* without it, nothing can be added either */
        (void)il__buf_room(&c->out, u->n_bytes + GREETING_BYTES);
    if (u->password != NULL && u->user != NULL)
        il__redis_say(c, "AUTH", u->user, u->password);
    else if (u->password != NULL)
        il__redis_say(c, "AUTH", u->password);
    il__redis_say(c, "SELECT", db);
    il__redis_say(c, "INFO");
    il__redis_say(c, "CONFIG", "GET", "appendfsync", "no-appendfsync-on-rewrite");
    il_status st = il__redis_send(c, deadline_ns, reterr);
    if (u->password != NULL && c->out.data != NULL)
        explicit_bzero(c->out.data, c->out.capacity); /* sent or not, it is empty */
    if (st == IL_OK && u->password != NULL)
        st = expect_ok(c, deadline_ns, reterr);
    if (st == IL_OK)
        st = expect_ok(c, deadline_ns, reterr);
    if (st == IL_OK)
        st = il__redis_recv(c, deadline_ns, &info, reterr);
    if (st == IL_OK)
        st = il__redis_recv(c, deadline_ns, &config, reterr);
    if (st != IL_OK)
        return st;
    if (info->type != REDIS_REPLY_STRING) {
        (void)il__redis_map(u, info->type == REDIS_REPLY_ERROR ? info->str : "INFO", reterr);
        return IL_STORE;
    }
    /* While it loads its file, a server says that it writes none, so its settings are read
     * later. */
    if (is_loading(info->str))
        return il__error_set(reterr, IL_STORE, "%s: the server is loading its data", u->shown);
    read_info(f, info->str);
    read_config(f, config);
    return check_facts(u, f, reterr);
}

void
il__redis_learn_max_ttl(struct redis_store *s, int64_t ms)
{
    int64_t known = atomic_load(&s->max_ttl_ms);

    while (ms > known && ms <= REDIS_MAX_TTL_MS_MAX &&
           !atomic_compare_exchange_weak(&s->max_ttl_ms, &known, ms))
        continue;
}

/* The store's own row: created if missing, and compared with the URL. */
static il_status
read_hello(struct redis_store *s, struct redis_conn *c, const json_t *head, il_error *reterr)
{
    const char *shown = s->url.shown;

    if (il__remote_number(head, "found") == 0)
        return il__error_set(reterr, IL_STORE,
                             "%s: no store with prefix %s; check prefix= in the URL", shown,
                             s->url.tag);
    int64_t layout = il__remote_number(head, "layout");
    if (layout != LAYOUT)
        return il__error_set(reterr, layout > LAYOUT ? IL_NEWER : IL_STORE,
                             "%s: the store was created by %s version of Interlock (layout %lld, "
                             "this one needs %d); use that version or another prefix",
                             shown, layout > LAYOUT ? "a newer" : "an older", (long long)layout,
                             LAYOUT);
    if (strcmp(il__remote_text(head, "clock"), s->test_clock ? "test" : "server") != 0)
        return il__error_set(reterr, IL_INVAL,
                             "%s: the store was created %s ?clock=test; open it the same way",
                             shown, s->test_clock ? "without" : "with");
    if ((il__remote_number(head, "classic") != 0) != s->url.classic)
        return il__error_set(
            reterr, IL_INVAL,
            "%s: the store was created %s ?classic=yes; all clients must use the same setting",
            shown, s->url.classic ? "without" : "with");
    const char *mute = il__remote_text(head, "mute");
    if (mute[0] != '\0')
        return il__error_set(reterr, IL_STORE,
                             "%s: no permission to publish on %s:wake; allow it with ACL SETUSER "
                             "NAME &%s:wake +publish (%.200s)",
                             shown, s->url.tag, s->url.tag, mute);
    il__redis_learn_max_ttl(s, il__remote_number(head, "max_ttl_ms"));
    atomic_store(&s->lost_ms, il__remote_number(head, "lost"));
    const char *server = il__remote_text(head, "server");
    if (s->server[0] != '\0' && strcmp(s->server, server) != 0) {
        il__redis_suspect(s); /* the others may still be connected to the previous one */
        c->generation = atomic_load(&s->generation);
    }
    (void)snprintf(s->server, sizeof s->server, "%s", server);
    return IL_OK;
}

static bool
put_hello(struct redis_store *s, struct remote_request *r)
{
    il__remote_begin(r, "x_hello");
    il__remote_put_number(r, "layout", LAYOUT);
    il__remote_put_text(r, "clock", s->test_clock ? "test" : "server");
    il__remote_put_number(r, "max_ttl_ms", MAX(s->url.max_ttl_ms, atomic_load(&s->max_ttl_ms)));
    il__remote_put_number(r, "classic", s->url.classic);
    /* otherwise it existed */
    il__remote_put_number(r, "existing", s->existing && s->server[0] == '\0');
    il__remote_put_number(r, "synced", s->facts.is_synced);
    il__remote_put_number(r, "lost", atomic_load(&s->lost_ms));
    if (s->server[0] != '\0')
        il__remote_put_text(r, "was", s->server);
    return il__remote_end(r);
}

void
il__redis_put_call(struct redis_store *s, struct redis_conn *c, enum redis_function f,
                   int64_t now_ms, int64_t wall_ms, const struct remote_request *requests, size_t n)
{
    char   timed[sizeof s->flags + 48];
    size_t n_args = 5;

    for (size_t i = 0; i < n; i++)
        n_args += il__redis_has_blob(&requests[i]) ? 2 : 1;
    il__redis_put(c, n_args);
    il__redis_args(c, f == REDIS_READ ? "FCALL_RO" : "FCALL");
    il__redis_args(c, function_name(f));
    il__redis_args(c, "1");
    il__redis_args(c, s->url.tag);
    if (s->test_clock)
        (void)snprintf(timed, sizeof timed, "%s %lld %lld", s->flags, (long long)now_ms,
                       (long long)wall_ms);
    il__redis_args(c, s->test_clock ? timed : s->flags);
    for (size_t i = 0; i < n; i++) {
        const struct remote_blob *blob = &requests[i].blob;
        il__redis_arg(c, requests[i].json.data, requests[i].json.n_bytes);
        if (il__redis_has_blob(&requests[i]))
            il__redis_arg(c, blob->data != NULL ? blob->data : "", blob->n_bytes);
    }
}

/* Send the hello once; the caller owns the reply. */
static il_status
say_hello(struct redis_store *s, struct redis_conn *c, const struct remote_request *request,
          int64_t deadline_ns, redisReply **ret, il_error *reterr)
{
    il__redis_put_call(s, c, REDIS_FREE, 0, 0, request, 1);
    il_status st = il__redis_send(c, deadline_ns, reterr);
    return st == IL_OK ? il__redis_recv(c, deadline_ns, ret, reterr) : st;
}

/* Loads the library if it is missing. The mutex of hellos is held. */
static il_status
hello(struct redis_store *s, struct redis_conn *c, int64_t deadline_ns, il_error *reterr)
{
    struct remote_request AUTO_REQUEST request = { 0 };
    AUTO_REPLY redisReply             *r       = NULL;

    if (!put_hello(s, &request))
        return il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    il_status st = say_hello(s, c, &request, deadline_ns, &r, reterr);
    if (st == IL_OK && is_error(r, "ERR Function not found")) {
        il__redis_api.freeReplyObject(TAKE(r));
        st = il__redis_library_load(s, c, deadline_ns, reterr);
        if (st == IL_OK)
            st = say_hello(s, c, &request, deadline_ns, &r, reterr);
    }
    if (st != IL_OK)
        return st;
    const redisReply *one = r->type == REDIS_REPLY_ARRAY && r->elements == 1 ? r->element[0] : r;
    if (one->type == REDIS_REPLY_ERROR) {
        (void)il__redis_map(&s->url, one->str, reterr); /* without a hello there is no store */
        return reterr != NULL ? reterr->status : IL_STORE;
    }
    bool whole = one->type == REDIS_REPLY_ARRAY && one->elements > 0 &&
                 one->element[0]->type == REDIS_REPLY_STRING;
    json_t *head = whole ? json_loadb(one->element[0]->str, one->element[0]->len, 0, NULL) : NULL;
    if (head == NULL)
        return il__error_set(reterr, IL_STORE, "%s: unexpected reply from the store", s->url.shown);
    st = read_hello(s, c, head, reterr);
    json_decref(head);
    return st;
}

il_status
il__redis_hello(struct redis_store *s, struct redis_conn *c, int64_t deadline_ns, il_error *reterr)
{
    il__mutex_lock(&s->hello_mutex);
    il_status st = hello(s, c, deadline_ns, reterr);
    il__mutex_unlock(&s->hello_mutex);
    if (st != IL_OK)
        il__redis_conn_drop(c);
    return st;
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* Remember a policy for which the server is refused. */
static void
note_policy(struct redis_conn *c, const char *policy)
{
    bool keeps = policy[0] == '\0' || strcmp(policy, "noeviction") == 0 || c->url->evicts;

    (void)snprintf(c->policy, sizeof c->policy, "%s", keeps ? "" : policy);
}

/* *ret_is_master: whether it says that it is a master, even if it cannot be used. */
static il_status
try_host(struct redis_store *s, struct redis_conn *c, size_t i_host, int64_t deadline_ns,
         bool *ret_is_master, il_error *reterr)
{
    struct redis_facts facts = { 0 };
    il_status          st    = il__redis_conn_dial(c, i_host, deadline_ns, reterr);

    if (st == IL_OK)
        st = greet(c, &facts, deadline_ns, reterr);
    if (st == IL_OK && !facts.is_master)
        st = il__error_set(reterr, IL_STORE, "%s: the server is a replica", s->url.shown);
    if (st == IL_OK)
        note_policy(c, facts.policy);
    /* Opening only an existing store is allowed, so that doctor can show what is wrong. But calls
     * are refused. */
    bool refused = st == IL_OK && c->policy[0] != '\0';
    if (refused && !s->existing) {
        st = IL_STORE;
    } else if (st == IL_OK && c->writes) {
        il__mutex_lock(&s->hello_mutex);
        s->facts = facts;
        st       = hello(s, c, deadline_ns, reterr);
        il__mutex_unlock(&s->hello_mutex);
    }
    if (refused && st != IL_OK)
        st = il__redis_refuse_policy(c, reterr);
    if (st != IL_OK)
        il__redis_conn_drop(c);
    *ret_is_master = facts.is_master;
    return st;
}

/*
 * Connect to the first host that is a usable master. Each gets its share of the remaining time, so
 * that a hanging host does not hide those after it. If there is none, the problem of a master is
 * reported: the other hosts were not meant.
 */
static il_status
try_hosts(struct redis_store *s, struct redis_conn *c, int64_t deadline_ns, il_error *why)
{
    il_status st            = IL_STORE;
    bool      found_masters = false;

    for (size_t i = 0; i < s->url.n_hosts; i++) {
        bool      is_master = false;
        il_error  own       = { 0 };
        int64_t   share_ns  = il__redis_attempt_deadline(deadline_ns, s->url.n_hosts - i);
        il_status one       = try_host(s, c, i, share_ns, &is_master, &own);
        if (one == IL_OK)
            return IL_OK;
        if (is_master || !found_masters) {
            st   = one;
            *why = own;
        }
        found_masters = found_masters || is_master;
    }
    return st;
}

/* After each failure, wait longer before the next attempt, and report the error meanwhile. */
static void
note_failure(struct redis_conn *c, const il_error *why)
{
    int64_t ms = BACKOFF_MS_MIN << MIN(c->n_failures, 10);

    c->failure  = *why;
    c->retry_ns = il__clock_boot_ns() + MIN(ms, BACKOFF_MS_MAX) * IL__NS_PER_MS;
    c->n_failures++;
}

il_status
il__redis_connect(struct redis_store *s, struct redis_conn *c, int64_t deadline_ns,
                  il_error *reterr)
{
    il_error why = { 0 };

    if (!il__redis_conn_is_dead(c) && c->generation == atomic_load(&s->generation))
        return IL_OK;
    if (c->n_failures > 0 && il__clock_boot_ns() < c->retry_ns) {
        if (reterr != NULL)
            *reterr = c->failure;
        return c->failure.status;
    }
    /* Before connecting: if it is raised meanwhile, this connection is outdated, too. */
    c->generation = atomic_load(&s->generation);
    il_status st  = try_hosts(s, c, deadline_ns, &why);
    if (st == IL_OK) {
        c->n_failures = 0;
        return IL_OK;
    }
    if (st != IL_NOMEM) /* that is not the server's fault */
        note_failure(c, &why);
    if (reterr != NULL)
        *reterr = why;
    return st;
}
