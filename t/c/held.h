#ifndef HELD_H
#define HELD_H
/*
 * held: the driver with an application that the test holds inside a call and lets go on, so that no time limit is a race with
 * a sleep. Paths that begin with /held go to `held`, which the test defines; the others to the driver's own.
 */
#include "driver.h"
#include "tap.h"

#include <poll.h>

static site s;
static int report[2];     /* what the supervisor would read */
static _Atomic int go_on; /* the application may return */

static void held(worker *w, sr_conn *c, const char *path); /* with the helm; finishes the response */

/* The call, until the test lets it go on */
static inline void hold(sr_engine *e)
{
    sr_engine_lend(e);
    while (!atomic_load(&go_on))
        sleep_ms(5);
    sr_engine_return(e);
}

static inline void *held_main(void *arg)
{
    worker *w = arg;
    sr_task task;
    sr_next what;
    while ((what = sr_engine_next(w->e, &task)) != SR_NEXT_DONE) {
        if (what != SR_NEXT_REQUEST)
            continue;
        char path[64];
        snprintf(path, sizeof path, "%.*s", (int)task.request->path.len, task.base + task.request->path.at);
        if (strncmp(path, "/held", 5) == 0) {
            atomic_fetch_add(&w->calls, 1);
            held(w, task.conn, path);
        } else {
            serve(w, &task);
        }
    }
    sr_engine_lend(w->e);
    return NULL;
}

static inline void held_start(uint32_t slot)
{
    worker *w = worker_new(&s, slot);
    if (pthread_create(&w->thread, NULL, held_main, w) != 0)
        abort();
}

/* One worker; more are started by held_start */
static inline void held_open(const sr_config *config, uint32_t slots)
{
    atomic_store(&go_on, 0);
    site_open(&s, config, slots);
    held_start(0);
}

static inline sr_config limits(int64_t request_ms, int64_t stream_ms)
{
    sr_config config = config_default();
    config.request_ns = request_ms * SR_MILLISECOND;
    config.stream_ns = stream_ms * SR_MILLISECOND;
    config.report_fd = report[1];
    return config;
}

static inline uint32_t calls(void)
{
    return (uint32_t)(atomic_load(&s.workers[0].calls) + atomic_load(&s.workers[1].calls));
}

/* The application has had n calls */
static inline bool called(uint32_t n)
{
    for (int i = 0; i < 2000 && calls() != n; i++)
        sleep_ms(5);
    return calls() == n;
}

/* STDERR goes to a file; with that file it comes back */
static inline FILE *stderr_to(FILE *back)
{
    static int saved;
    fflush(stderr);
    if (back) {
        dup2(saved, STDERR_FILENO);
        close(saved);
        fclose(back);
        return NULL;
    }
    FILE *file = tmpfile();
    saved = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    return file;
}

#endif
