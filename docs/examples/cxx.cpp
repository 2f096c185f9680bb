/*
 * cxx.cpp: the library from C++: a lease that ends with its scope.
 */
#include <interlock.h>

#include <cstdio>
#include <stdexcept>

class Store {
public:
    explicit Store(const char *url)
    {
        il_error err;

        if (il_open(url, nullptr, &handle, &err) != IL_OK)
            throw std::runtime_error(err.message);
    }
    Store(const Store &)            = delete;
    Store &operator=(const Store &) = delete;
    ~Store() { il_close(handle); }

    il *get() const { return handle; }

private:
    il *handle = nullptr;
};

class Lease {
public:
    Lease(const Store &store, const char *key, int64_t wait_ms = 0)
    {
        il_acquire_opts opts = IL_ACQUIRE_OPTS_INIT;
        il_error        err;

        opts.wait_ms = wait_ms;
        if (il_acquire(store.get(), key, &opts, &lease, &err) != IL_OK)
            throw std::runtime_error(err.message);
    }
    Lease(const Lease &)            = delete;
    Lease &operator=(const Lease &) = delete;
    ~Lease()
    {
        il_lease_release(lease, nullptr); /* a lease that cannot be released expires */
        il_lease_free(lease);
    }

    uint64_t fence() const { return il_lease_fence(lease); }
    bool     held() const { return il_lease_status(lease) == IL_OK; }

private:
    il_lease *lease = nullptr;
};

int
main(int argc, char **argv)
{
    Store    store(argc > 1 ? argv[1] : "sqlite:locks.db");
    bool     refused = false;
    uint64_t first;

    {
        Lease lease(store, "report");
        first = lease.fence();
        try {
            Lease second(store, "report");
        } catch (const std::runtime_error &held) {
            std::printf("%s\n", held.what());
            refused = lease.held();
        }
    }
    Lease next(store, "report");
    std::printf("free again; the fence has grown: %s\n", next.fence() > first ? "yes" : "no");
    return refused && next.fence() > first ? 0 : 1;
}
