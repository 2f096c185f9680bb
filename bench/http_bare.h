/*
 * http_bare.h: the baseline of the HTTP rows: bare libmicrohttpd, driven the same way as ours,
 * which reads a body and responds with a constant.
 */
#ifndef BENCH_HTTP_BARE_H
#define BENCH_HTTP_BARE_H

/* `interlock-bench --bare`: serves on a free loopback port, prints it, and exits with its
 * parent. */
int http_bare_main(void);

#endif
