/* systemd.c: tells systemd the state of the server; finds out whether it keeps the output. */
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "http/server.h"

/* A datagram, if $NOTIFY_SOCKET is set (Type=notify). */
void
http_notify(const char *state)
{
    const char        *path    = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t             n       = path != NULL ? strlen(path) : 0;

    if (n == 0 || n >= sizeof address.sun_path)
        return;
    memcpy(address.sun_path, path, n);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    /* On failure systemd itself reports it. */
    IGNORE(sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const void *)&address,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0);
    (void)close(fd); /* a datagram is sent or not */
}

/* $JOURNAL_STREAM gives device and inode. */
bool
http_is_in_journal(void)
{
    const char        *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat        out;

    return stream != NULL && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
           fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == device && out.st_ino == inode;
}
