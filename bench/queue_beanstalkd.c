/*
 * queue_beanstalkd.c: ours compared with beanstalkd with a log synced before each response (-b DIR
 * -f 0), over one loopback TCP connection with a hundred requests in flight, which is the best it
 * can do; ours does the same work in batches of a hundred. Note that the two make different
 * guarantees.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load.h"
#include "process.h"
#include "queue.h"

#define PROGRAM "beanstalkd"
#define START_MS_MAX INT64_C(5000)
#define BUFFER_BYTES 65536

struct peer {
    struct process process;
    int            fd;
    unsigned       n_batches;
    char           in[BUFFER_BYTES]; /* read, but not yet parsed */
    size_t         n_in, i_in;
    char           ids[QUEUE_BATCH][24];
    char           payload[QUEUE_PAYLOAD_BYTES];
};

/* ---- the server ------------------------------------------------------------------------------ */

/* A port that is free now. Another program may take it before the server does; then the benchmark
 * fails with a message. */
static uint16_t
free_port(void)
{
    struct sockaddr_in address = { .sin_family      = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          n_bytes = sizeof address;
    int                fd      = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &n_bytes) != 0)
        die("no free port: %s", strerror(errno));
    (void)close(fd);
    return ntohs(address.sin_port);
}

static int
try_connect(uint16_t port)
{
    struct sockaddr_in address = { .sin_family      = AF_INET,
                                   .sin_port        = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int                one     = 1;
    int                fd      = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        die("no socket: %s", strerror(errno));
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* only for speed */
        return fd;
    }
    (void)close(fd);
    return -1;
}

static void
peer_open(struct peer *p, const struct bench *b, const char *program)
{
    char     dir[BENCH_PATH_BYTES];
    char     log[BENCH_PATH_BYTES];
    char     number[8];
    uint16_t port = free_port();

    if (mkdir(temp_path(b, "beanstalkd", dir), 0700) != 0 && errno != EEXIST)
        die("%s: %s", dir, strerror(errno));
    (void)snprintf(number, sizeof number, "%u", port);
    const char *const  argv[] = { program, "-b",        dir,  "-f",   "0",
                                  "-l",    "127.0.0.1", "-p", number, NULL };
    struct process_how how    = { .log = temp_path(b, "beanstalkd.log", log) };
    p->process                = process_start(argv, &how);
    p->fd                     = -1;
    for (int64_t until_ns = il__clock_boot_ns() + START_MS_MAX * IL__NS_PER_MS;
         p->fd < 0 && il__clock_boot_ns() < until_ns;) {
        p->fd = try_connect(port);
        if (p->fd < 0)
            (void)usleep(1000);
    }
    if (p->fd < 0)
        die(PROGRAM " did not start");
}

static void
peer_close(struct peer *p)
{
    (void)close(p->fd);
    process_stop(&p->process);
}

/* ---- its protocol ---------------------------------------------------------------------------- */

static void
send_all(struct peer *p, const char *text, size_t n_bytes)
{
    while (n_bytes > 0) {
        ssize_t n = send(p->fd, text, n_bytes, MSG_NOSIGNAL);
        if (n <= 0)
            die(PROGRAM " hung up: %s", strerror(errno));
        text += n;
        n_bytes -= (size_t)n;
    }
}

static char
next_char(struct peer *p)
{
    if (p->i_in == p->n_in) {
        ssize_t n = recv(p->fd, p->in, sizeof p->in, 0);
        if (n <= 0)
            die(PROGRAM " hung up: %s", strerror(errno));
        p->n_in = (size_t)n;
        p->i_in = 0;
    }
    return p->in[p->i_in++];
}

/* Read a response line, which must start with `word`; the remainder goes to `rest`. */
static void
expect(struct peer *p, const char *word, char *rest, size_t rest_bytes)
{
    char   line[128];
    size_t n = 0;

    for (char c; (c = next_char(p)) != '\n';) {
        if (c != '\r' && n < sizeof line - 1)
            line[n++] = c;
    }
    line[n] = '\0';
    if (strncmp(line, word, strlen(word)) != 0)
        die(PROGRAM " says '%s' and not '%s'", line, word);
    if (rest != NULL)
        (void)snprintf(rest, rest_bytes, "%s", line + strlen(word));
}

static void
put_batch(struct peer *p)
{
    char   text[QUEUE_BATCH * (QUEUE_PAYLOAD_BYTES + 32)];
    size_t n = 0;

    for (unsigned i = 0; i < QUEUE_BATCH; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "put 0 0 60 %d\r\n", QUEUE_PAYLOAD_BYTES);
        memcpy(text + n, p->payload, QUEUE_PAYLOAD_BYTES);
        n += QUEUE_PAYLOAD_BYTES;
        text[n++] = '\r';
        text[n++] = '\n';
    }
    send_all(p, text, n);
    for (unsigned i = 0; i < QUEUE_BATCH; i++)
        expect(p, "INSERTED ", NULL, 0);
}

static void
take_batch(struct peer *p)
{
    char   text[QUEUE_BATCH * 64];
    size_t n = 0;

    for (unsigned i = 0; i < QUEUE_BATCH; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "reserve\r\n");
    send_all(p, text, n);
    n = 0;
    for (unsigned i = 0; i < QUEUE_BATCH; i++) {
        expect(p, "RESERVED ", p->ids[i], sizeof p->ids[i]);
        p->ids[i][strcspn(p->ids[i], " ")] = '\0';
        for (unsigned j = 0; j < QUEUE_PAYLOAD_BYTES + 2; j++)
            (void)next_char(p);
        n += (size_t)snprintf(text + n, sizeof text - n, "delete %s\r\n", p->ids[i]);
    }
    send_all(p, text, n);
    for (unsigned i = 0; i < QUEUE_BATCH; i++)
        expect(p, "DELETED", NULL, 0);
}

static double
put_round(void *cookie)
{
    struct peer *p        = cookie;
    int64_t      start_ns = il__clock_boot_ns();

    for (unsigned i = 0; i < p->n_batches; i++)
        put_batch(p);
    return (double)p->n_batches * QUEUE_BATCH * BENCH_NS_PER_S /
           (double)MAX(il__clock_boot_ns() - start_ns, 1);
}

static double
take_round(void *cookie)
{
    struct peer *p = cookie;

    IGNORE(put_round(p) > 0); /* not measured here */
    int64_t start_ns = il__clock_boot_ns();
    for (unsigned i = 0; i < p->n_batches; i++)
        take_batch(p);
    return (double)p->n_batches * QUEUE_BATCH * BENCH_NS_PER_S /
           (double)MAX(il__clock_boot_ns() - start_ns, 1);
}

/* ---- both ------------------------------------------------------------------------------------ */

static void
measure(struct bench *b, struct peer *p, bool claims)
{
    struct result r    = { .name = claims ? "queue-beanstalkd-take" : "queue-beanstalkd-put",
                           .what = claims ? "claims of 100 jobs and batches of 100 finishes"
                                          : "batches of 100 pushes with 100 bytes each",
                           .against =
                            claims ? "beanstalkd, binlog with fsync: 100 reserves, then 100 deletes"
                                      : "beanstalkd, binlog with fsync: 100 puts at once",
                           .durability = BENCH_FULL,
                           .unit       = UNIT_PAIRS_PER_S };
    struct jobs  *ours = must_calloc(1, sizeof *ours);

    jobs_open(ours, b, "jobs.db", b->quick ? 2 : 50);
    p->n_batches = b->quick ? 1 : 5;
    compare(&r, b->n_rounds, (struct side){ claims ? jobs_claim_round : jobs_push_round, ours },
            (struct side){ claims ? take_round : put_round, p });
    jobs_close(ours);
    free(ours);
    report_add(&b->report, &r);
}

void
bench_queue_beanstalkd(struct bench *b, unsigned unused UNUSED)
{
    char program[BENCH_PATH_BYTES];

    if (!program_find(PROGRAM, program)) {
        report_leave_out(&b->report, "queue-beanstalkd-take", PROGRAM " is not installed");
        report_leave_out(&b->report, "queue-beanstalkd-put", PROGRAM " is not installed");
        return;
    }
    struct peer *p = must_calloc(1, sizeof *p);
    memset(p->payload, 'x', sizeof p->payload);
    peer_open(p, b, program);
    measure(b, p, true); /* leaves nothing behind in its queue */
    measure(b, p, false);
    peer_close(p);
    free(p);
}
