/*
 * tls.c: OpenSSL for rediss:, loaded when the first such store is opened. Certificates are always
 * verified, against the system's authorities or those of cacert=, and so is the host name.
 */
#include <errno.h>
#include <signal.h>

#include "base/dl.h"
#include "base/error.h"
#include "store/redis/redis_internal.h"

/* From OpenSSL's headers, which are not needed to build. */
#define VERIFY_PEER 1
#define FILETYPE_PEM 1
#define ERROR_WANT_READ 2
#define ERROR_WANT_WRITE 3
#define ERROR_ZERO_RETURN 6
#define CTRL_SET_MIN_PROTO_VERSION 123
#define CTRL_MODE 33
#define MODE_PARTIAL_WRITE 1
#define MODE_MOVING_BUFFER 2
#define CTRL_SET_TLSEXT_HOSTNAME 55
#define TLS1_2 0x0303

struct openssl {
#define X(result, name, parameters) result(*name) parameters;
#include "store/redis/openssl.def"
#undef X
};

static struct openssl api;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool           loaded;
static char           why_not[160];

static void
load(void)
{
    static const struct il__dl_symbol symbols[] = {
#define X(result, name, parameters) IL__DL_SYMBOL(struct openssl, name)
#include "store/redis/openssl.def"
#undef X
    };
    static const struct il__dl three = { "libssl.so.3", "libssl3", symbols, ARRAY_LEN(symbols) };
    static const struct il__dl one = { "libssl.so.1.1", "libssl1.1", symbols, ARRAY_LEN(symbols) };
    char                       ignored[sizeof why_not];

    /* If neither is installed, the newer one is requested. */
    loaded = il__dl_load(&three, &api, why_not, sizeof why_not) ||
             il__dl_load(&one, &api, ignored, sizeof ignored);
}

static il_status
use_files(const struct redis_url *u, struct ssl_ctx *ctx, il_error *reterr)
{
    if (u->cacert != NULL ? api.SSL_CTX_load_verify_locations(ctx, u->cacert, NULL) != 1
                          : api.SSL_CTX_set_default_verify_paths(ctx) != 1)
        return il__error_set(reterr, IL_INVAL, "%s: cannot load CA certificates from %s", u->shown,
                             u->cacert != NULL ? u->cacert : "the system's store");
    if (u->cert != NULL && api.SSL_CTX_use_certificate_chain_file(ctx, u->cert) != 1)
        return il__error_set(reterr, IL_INVAL, "%s: cannot load certificate %s", u->shown, u->cert);
    if (u->key != NULL && api.SSL_CTX_use_PrivateKey_file(ctx, u->key, FILETYPE_PEM) != 1)
        return il__error_set(reterr, IL_INVAL, "%s: cannot load key %s", u->shown, u->key);
    return IL_OK;
}

il_status
il__redis_tls_init(const struct redis_url *u, struct ssl_ctx **ret, il_error *reterr)
{
    CHECK(pthread_once(&once, load) == 0);
    if (!loaded)
        return il__error_set(reterr, IL_STORE, "%s: TLS needs OpenSSL: %s", u->shown, why_not);
    struct ssl_ctx *ctx = api.SSL_CTX_new(api.TLS_client_method());
    if (ctx == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for TLS");
    (void)api.SSL_CTX_ctrl(ctx, CTRL_SET_MIN_PROTO_VERSION, TLS1_2,
                           NULL); /* older ones: the handshake fails */
    /* the new modes */
    (void)api.SSL_CTX_ctrl(ctx, CTRL_MODE, MODE_PARTIAL_WRITE | MODE_MOVING_BUFFER, NULL);
    api.SSL_CTX_set_verify(ctx, VERIFY_PEER, NULL);
    il_status st = use_files(u, ctx, reterr);
    if (st == IL_OK)
        *ret = ctx;
    else
        api.SSL_CTX_free(ctx);
    return st;
}

void
il__redis_tls_release(struct ssl_ctx *ctx)
{
    if (ctx != NULL)
        api.SSL_CTX_free(ctx);
}

struct ssl *
il__redis_tls_new(struct ssl_ctx *ctx, int fd, const char *host)
{
    struct ssl *ssl = api.SSL_new(ctx);
    char        name[256];

    (void)snprintf(name, sizeof name, "%s", host);
    if (ssl != NULL && api.SSL_set_fd(ssl, fd) == 1 && api.SSL_set1_host(ssl, name) == 1 &&
        api.SSL_ctrl(ssl, CTRL_SET_TLSEXT_HOSTNAME, 0, name) == 1)
        return ssl;
    if (ssl != NULL)
        api.SSL_free(ssl);
    return NULL;
}

/*
 * OpenSSL writes with write(), which raises SIGPIPE when the peer is gone, and the process belongs
 * to our caller. So the signal is blocked meanwhile, and consumed if we caused it. The thread's
 * error queue is cleared before and after: SSL_get_error() would mistake an entry left by the
 * caller's own use of OpenSSL for one of the connection.
 */
struct quiet {
    sigset_t before;
    bool     was_pending;
};

static struct quiet
begin_quiet(void)
{
    struct quiet q;
    sigset_t     pipe, pending;

    (void)sigemptyset(&pipe); /* these fail for bad arguments only */
    (void)sigaddset(&pipe, SIGPIPE);
    (void)sigpending(&pending);
    q.was_pending = sigismember(&pending, SIGPIPE) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &pipe, &q.before);
    api.ERR_clear_error();
    return q;
}

static void
end_quiet(const struct quiet *q)
{
    const struct timespec at_once = { 0 };
    int                   err     = errno;
    sigset_t              pipe;

    (void)sigemptyset(&pipe);
    (void)sigaddset(&pipe, SIGPIPE);
    if (!q->was_pending)
        (void)sigtimedwait(&pipe, NULL, &at_once); /* usually there is none */
    (void)pthread_sigmask(SIG_SETMASK, &q->before, NULL);
    api.ERR_clear_error(); /* and the caller finds none of ours */
    errno = err;
}

void
il__redis_tls_free(struct ssl *ssl)
{
    struct quiet q = begin_quiet();

    (void)api.SSL_shutdown(ssl); /* say goodbye; do not wait for a reply */
    end_quiet(&q);
    api.SSL_free(ssl);
}

static int
result(const struct ssl *ssl, int rc)
{
    if (rc > 0)
        return rc;
    switch (api.SSL_get_error(ssl, rc)) {
    case ERROR_WANT_READ:
        return REDIS_IO_READ;
    case ERROR_WANT_WRITE:
        return REDIS_IO_WRITE;
    case ERROR_ZERO_RETURN:
        errno = 0;
        return REDIS_IO_FAILED;
    default:
        return REDIS_IO_FAILED;
    }
}

int
il__redis_tls_connect(struct ssl *ssl)
{
    struct quiet q = begin_quiet();

    errno  = 0;
    int rc = result(ssl, api.SSL_connect(ssl));
    end_quiet(&q);
    return rc;
}

int
il__redis_tls_read(struct ssl *ssl, void *data, size_t n)
{
    struct quiet q = begin_quiet(); /* reading may write: alerts, keys */

    errno  = 0;
    int rc = result(ssl, api.SSL_read(ssl, data, (int)MIN(n, 1 << 20)));
    end_quiet(&q);
    return rc;
}

int
il__redis_tls_write(struct ssl *ssl, const void *data, size_t n)
{
    struct quiet q = begin_quiet();

    errno  = 0;
    int rc = result(ssl, api.SSL_write(ssl, data, (int)MIN(n, 1 << 20)));
    end_quiet(&q);
    return rc;
}

const char *
il__redis_tls_why(struct ssl *ssl)
{
    return api.SSL_get_verify_result(ssl) == 0
               ? "the peer does not speak TLS or rejected the handshake"
               : "the server's certificate is not valid for this host, or its issuer is unknown";
}
