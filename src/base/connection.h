/* connection.h: a database of the configuration key `connections`. */
#ifndef IL_BASE_CONNECTION_H
#define IL_BASE_CONNECTION_H

struct il__connection {
    const char *name;
    const char *url; /* may hold a password: never shown */
};

#endif
