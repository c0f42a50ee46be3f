/*
 * mend: what workers do while the edge looks through its memory. The look is that of src/edge/mend.c, stopped
 * between its two halves: when the rings are read, and no request is looked at yet.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "edge/edge.h"
#include "edge/slow.h"

static void between(void);

#define sr_slow_begin(ed) between()
#include "edge/mend.c"
#undef sr_slow_begin

#include "worker/worker.h"

#include "edge_site.h"
#include "tap.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { ROWS = 4 };

static int took[2], go[2];
static bool armed;

/* Answers the first request and keeps the second until it is told; says of each that it has it. */
static _Noreturn void run_worker(void)
{
    static sr_worker w;
    char byte = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    worker_open(&w, 0);
    if (write(took[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
        _exit(8);
    for (int n = 1;; n++) {
        sr_reply_head head = {.status = 200, .length = 2, .app_length = SR_REPLY_LENGTH_UNKNOWN};
        struct iovec body = {"ok", 2};
        while (sr_worker_next(&w) != SR_WORKER_REQUEST)
            ;
        if (write(took[1], &byte, 1) != 1 || (n == 2 && read(go[0], &byte, 1) != 1))
            _exit(9);
        sr_worker_reply(&w, &head, SR_BYTES(""), &body, 1, SR_REPLY_LAST);
        sr_worker_done(&w);
    }
}

static bool told(int ms)
{
    char byte;
    return readable(took[0], ms) && read(took[0], &byte, 1) == 1;
}

static void between(void)
{
    char byte = 0;
    if (!armed)
        return;
    armed = false;
    ok(write(go[1], &byte, 1) == 1 && told(PATIENCE_MS) && told(PATIENCE_MS),
       "within a look a worker ends a request and begins the next");
}

int main(void)
{
    char byte = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    if (!site_open(ROWS) || pipe(took) || pipe(go))
        return 1;
    sr_edge *ed = edge_new();
    pid_t pid = fork();
    if (!pid)
        run_worker();
    ok(turn_until(ed, took[0]), "a worker is there");
    int first = client_of("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n");
    while (sr_queue_waiting(&ed->queue) < 1)
        sr_edge_step(ed, true);
    int second = client_of("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    while (sr_queue_waiting(&ed->queue) < 2)
        sr_edge_step(ed, true);
    for (armed = true; armed;)
        sr_edge_step(ed, true);
    ok(turn_until(ed, first), "the first is answered while the second runs");
    for (int ms = 0; ms < 300; ms++) { /* three times as long as a worker is waited for that has not begun */
        sr_edge_step(ed, false);
        usleep(1000);
    }
    ok(write(go[1], &byte, 1) == 1 && turn_until(ed, second), "then the second");
    ok(!told(300), "and no request is run twice");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(first);
    close(second);
    for (int i = 0; i < 20; i++)
        sr_edge_step(ed, false);
    sr_edge_free(ed);
    return done_testing();
}
