/* Each of several edges is told of the replies that wait in its ring, whenever another one was told. */
#include "../../src/worker/worker.c"

#include "tap.h"

#include <sys/eventfd.h>

static sr_replies rooms[2];

/* Has been told a while ago, and sleeps */
static sr_worker_line line_of(sr_replies *replies, int64_t told_at)
{
    *replies = (sr_replies){.asleep = 1};
    return (sr_worker_line){
        .bell = eventfd(0, EFD_NONBLOCK), .told_at = told_at, .queue = {.replies = replies}};
}

static bool rang(const sr_worker_line *l)
{
    uint64_t n;
    return read(l->bell, &n, sizeof n) == sizeof n;
}

int main(void)
{
    static sr_worker w;
    w.now = SR_SECOND;
    sr_worker_line a = line_of(&rooms[0], w.now - SR_MILLISECOND), b = line_of(&rooms[1], a.told_at);
    w.open[0] = &a;
    w.open[1] = &b;
    w.n_open = 2;

    mark(&w, &a);
    ring_bell(&w, &a);
    mark(&w, &b);
    ok(rang(&a) && !rang(&b), "the first edge is told");
    flush_late(&w);
    ok(rang(&b) && !b.silent, "so is the second, which was told earlier, before another request runs");

    atomic_store(&rooms[1].asleep, 1);
    w.now += PATIENCE_NS / 2;
    mark(&w, &b);
    flush_late(&w);
    ok(!rang(&b) && b.silent, "not again at once");
    w.now += PATIENCE_NS;
    flush_late(&w);
    ok(rang(&b) && !rang(&a), "but a little later");
    close(a.bell);
    close(b.bell);
    return done_testing();
}
