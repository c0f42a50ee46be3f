/*
 * lanes: who gets a place in a lane, and when it is free again. The edges are in this process, which turns
 * their loops; there is a worker only where one is needed, so what is let in waits in the queue.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "edge/lanes.h"
#include "edge/deliver.h"
#include "edge/others.h"

#include "worker/worker.h"

#include "edge_site.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { ROWS = 4, EDGES = 2 };

static sr_common *common;
static int common_fd, bells[EDGES], ports[EDGES];
static struct sockaddr_in addresses[EDGES];

static sr_edge *open_edge(const char *lane, uint32_t number)
{
    static sr_setup settings[EDGES]; /* which outlive the edge */
    sr_setup *s = &settings[number];
    sr_edge *ed;
    *s = site_settings();
    if (lane && sr_lanerules_add(&s->lanes, lane))
        exit(7);
    s->edge = number;
    s->listeners[0].fd = ports[number];
    s->common = common_fd;
    s->n_bells = EDGES;
    memcpy(s->bells, bells, sizeof bells);
    if (sr_edge_new(&ed, s))
        exit(9);
    sr_sleepers_arrive(ed->sleepers, ed->number, ed->name);
    return ed;
}

static void close_edge(sr_edge *ed)
{
    sr_sleepers_part(ed->sleepers, ed->number);
    sr_edge_free(ed);
}

static void turn(sr_edge *ed, int ms)
{
    for (int i = 0; i < ms; i++) {
        sr_edge_step(ed, false);
        usleep(1000);
    }
}

static uint64_t in_queue(sr_edge *ed)
{
    return sr_queue_waiting(&ed->queue);
}

static uint64_t held(const sr_edge *ed)
{
    return atomic_load(&common->row[ed->number].lanes[0].waiting);
}

static uint64_t running(const sr_edge *ed)
{
    return atomic_load(&common->row[ed->number].lanes[0].running);
}

static int ask(sr_edge *ed, const char *target)
{
    char text[200];
    uint64_t before = in_queue(ed) + (ed->lanes ? held(ed) : 0);
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", target);
    address = addresses[ed->number];
    int fd = client_of(text);
    for (int i = 0;
         i < PATIENCE_MS && in_queue(ed) + (ed->lanes ? held(ed) : 0) == before && !readable(fd, 0); i++)
        turn(ed, 1);
    return fd;
}

static int status_of(int fd)
{
    char answer[512] = "";
    return readable(fd, 0) && read(fd, answer, sizeof answer - 1) > 12 ? atoi(answer + 9) : 0;
}

/* The targets of those that wait in the queue, in their order: "a b " */
static const char *order(sr_edge *ed)
{
    static char text[500];
    size_t n = 0;
    text[0] = '\0';
    for (uint64_t number = ed->queue.first; number < ed->queue.put; number++) {
        uint32_t slot = ed->queue.requests->ring[number & ed->queue.requests->mask];
        if (ed->entries[slot].number != number)
            continue;
        const sr_slot *s = sr_queue_at(&ed->queue, slot);
        const sr_request *r = (const void *)s->data;
        sr_bytes query = sr_span_in(s->data + s->parse, r->query);
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s ", (int)query.len, query.at);
    }
    return text;
}

static void is_order(sr_edge *ed, const char *want, const char *name)
{
    const char *got = order(ed);
    if (!ok(strcmp(got, want) == 0, "%s", name))
        printf("# got %s, want %s\n", got, want);
}

static void limit(void)
{
    sr_edge *ed = open_edge("2,3,0,/r", 0);
    int fd[8];
    char target[20];
    printf("# a limit\n");
    for (int i = 0; i < 5; i++) {
        snprintf(target, sizeof target, "/r?%d", i);
        fd[i] = ask(ed, target);
    }
    is_int((int)in_queue(ed), 2, "two have a place");
    is_int((int)held(ed), 3, "the others wait for one");
    int other = ask(ed, "/shop?shop");
    is_order(ed, "0 1 shop ", "and hold up nobody");
    fd[5] = ask(ed, "/r?5");
    is_int(status_of(fd[5]), 503, "there is no room for a sixth");
    is_int((int)ed->engine->row->counters.refused[SR_REFUSED_LANE], 1, "it is counted");
    is_int((int)ed->engine->row->counters.trouble[SR_TROUBLE_LANE], 1, "and reported");
    close(fd[3]);
    for (int i = 0; i < 5000 && held(ed) > 2; i++)
        turn(ed, 1);
    is_int((int)held(ed), 2, "who leaves while it waits for a place gives up its own");
    is_int((int)running(ed), 2, "and no other");
    close(fd[0]);
    for (int i = 0; i < 5000 && held(ed) > 1; i++)
        turn(ed, 1);
    is_order(ed, "1 shop 2 ", "who leaves the queue makes room for the first that waits");
    close(fd[1]);
    close(fd[2]);
    for (int i = 0; i < 5000 && held(ed) > 0; i++)
        turn(ed, 1);
    is_order(ed, "shop 4 ", "in the order in which they came");
    is_int((int)running(ed), 1, "one place is free");
    close(fd[4]);
    close(fd[5]);
    for (int i = 0; i < 5000 && running(ed) > 0; i++)
        turn(ed, 1);
    is_int((int)(running(ed) + held(ed)), 0, "then both");
    close(other);
    turn(ed, 20);
    is_int((int)(ed->slots - ed->queue.n_free), 0, "no slot is lost");
    close_edge(ed);
}

static void time_limit(void)
{
    sr_edge *ed = open_edge("1,9,0.1,/r", 0);
    printf("# a time limit\n");
    int first = ask(ed, "/r?0"), second = ask(ed, "/r?1"), third = ask(ed, "/r?2");
    for (int i = 0; i < PATIENCE_MS && !readable(third, 0); i++)
        turn(ed, 1);
    is_int(status_of(second), 503, "who waits for too long is told");
    is_int(status_of(third), 503, "so is the next");
    is_int(status_of(first), 0, "the first waits for a worker, for which the limit does not hold");
    is_int((int)ed->engine->row->counters.refused[SR_REFUSED_LANE_TIMEOUT], 2, "both are counted");
    is_int((int)(held(ed) * 10 + running(ed)), 1, "and gone");
    close(first), close(second), close(third);
    close_edge(ed);
}

/* A client that has shut down its side, while the server does not serve such. */
static void half_closed(void)
{
    sr_edge *ed = open_edge("1,9,0,/r", 0);
    printf("# half-closed\n");
    int first = ask(ed, "/r?0"), second = ask(ed, "/r?1");
    turn(ed, 30);
    shutdown(second, SHUT_WR);
    for (int i = 0; i < PATIENCE_MS && !readable(second, 0); i++)
        turn(ed, 1);
    is_int(status_of(second), 503, "it is told, as others that wait");
    is_int((int)ed->engine->row->counters.refused[SR_REFUSED_HALF_CLOSED], 1, "why");
    is_int((int)(held(ed) * 10 + running(ed)), 1, "and gone");
    close(first), close(second);
    close_edge(ed);
}

/* Pipelined: the second is looked at when the first is over. A body in a file, a head that spills. */
static void spilled(void)
{
    static char text[30000];
    sr_edge *ed = open_edge("1,9,0,/r", 0);
    printf("# what does not fit into a slot\n");
    int first = ask(ed, "/r?0");
    int n = snprintf(text, sizeof text, "POST /r?1 HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n");
    memset(text + n, 'x', 20000);
    int second = client_of(text);
    for (int i = 0; i < PATIENCE_MS && held(ed) < 1; i++)
        turn(ed, 1);
    ok(held(ed) == 1 && in_queue(ed) == 1, "it waits");
    close(first);
    for (int i = 0; i < PATIENCE_MS && held(ed) > 0; i++)
        turn(ed, 1);
    ok(held(ed) == 0 && in_queue(ed) == 1, "it has the place");
    int third = client_of(text);
    for (int i = 0; i < PATIENCE_MS && held(ed) < 1; i++)
        turn(ed, 1);
    close(third);
    for (int i = 0; i < PATIENCE_MS && held(ed) > 0; i++)
        turn(ed, 1);
    int files = 0;
    for (uint32_t i = 0; i < ed->slots; i++)
        files += ed->entries[i].request_fd >= 0;
    is_int(files, 1, "the file of one that leaves is closed");
    close(second);
    close_edge(ed);
}

static void stopped(void)
{
    sr_edge *ed = open_edge("1,9,0,/r", 0);
    printf("# a stop\n");
    int first = ask(ed, "/r?0"), second = ask(ed, "/r?1");
    sr_engine_tick(ed->engine);
    ed->stop.begun = ed->stop.fast = ed->engine->draining = true;
    ed->stop.end_at = ed->engine->now + SR_SECOND;
    turn(ed, 20);
    is_int(status_of(second), 503, "a fast stop refuses who waits for a place");
    is_int(status_of(first), 503, "and who waits for a worker");
    is_int((int)(held(ed) * 10 + running(ed)), 0, "nothing is left");
    close(first), close(second);
    close_edge(ed);
}

/* The places are those of the server. */
static void two_edges(void)
{
    sr_edge *a = open_edge("2,9,0,/r", 0), *b = open_edge("2,9,0,/r", 1);
    int fd[6];
    printf("# two edges\n");
    fd[0] = ask(a, "/r?a0");
    fd[1] = ask(b, "/r?b1");
    fd[2] = ask(b, "/r?b2");
    fd[3] = ask(a, "/r?a3");
    fd[4] = ask(b, "/r?b4");
    is_int((int)(in_queue(a) * 10 + in_queue(b)), 11, "each has one of the two places");
    close(fd[0]); /* the oldest that waits is in the other edge */
    for (int i = 0; i < 100 && running(a); i++)
        turn(a, 1);
    is_int((int)(running(a) * 10 + held(a)), 1,
           "the edge in which a place becomes free leaves it to the older one");
    turn(b, 3);
    is_order(b, "b1 b2 ", "which the other has, and is told by its bell");
    close(fd[1]);
    for (int i = 0; i < 100 && running(b) == 2; i++)
        turn(b, 1);
    turn(a, 3);
    is_order(a, "a3 ", "and back");
    is_int((int)(running(a) + running(b)), 2, "never more than two");
    close(fd[2]);
    for (int i = 0; i < 100 && held(b); i++)
        turn(b, 1);
    is_order(b, "b4 ", "then the last one");
    fd[5] = ask(a, "/r?a5");
    is_int((int)held(a), 1, "one waits");
    sr_common_clear(common, 1); /* as the supervisor does for an edge that was killed */
    for (int i = 0; i < PATIENCE_MS && held(a); i++)
        turn(a, 1);
    is_order(a, "a3 a5 ", "the places of an edge that was killed are free");
    for (int i = 3; i < 6; i++)
        close(fd[i]);
    close_edge(a);
    close_edge(b);
}

/* One that runs in `ed` ends while another waits, several times: how often the place was free for a while. */
static int kept_free(sr_edge *ed, int *fd)
{
    int n = 0;
    for (int i = 0; i < 5; i++) {
        bool was = false;
        int next = ask(ed, "/r?next");
        close(*fd);
        for (int ms = 0; ms < PATIENCE_MS && held(ed); ms++) {
            turn(ed, 1);
            was = was || !running(ed);
        }
        n += was;
        *fd = next;
    }
    return n;
}

/* An edge that stands still does not keep the place for ever. */
static void still(void)
{
    sr_edge *a = open_edge("1,9,0,/r", 0), *b = open_edge("1,9,0,/r", 1);
    printf("# an edge that stands still\n");
    int first = ask(a, "/r?a0"), older = ask(b, "/r?b1"), second = ask(a, "/r?a2");
    close(first);
    for (int i = 0; i < PATIENCE_MS && held(a); i++)
        turn(a, 1);
    is_order(a, "a2 ", "it loses its turn after a while");
    is_int((int)(running(a) * 10 + held(b)), 11, "and keeps its place in the line");
    ok(kept_free(a, &second) <= 1, "which is not waited for again at each place");
    int other = ask(b, "/r?b3"), next = ask(a, "/r?a4");
    close(older);
    for (int i = 0; i < PATIENCE_MS && held(b) > 1; i++)
        turn(b, 1);
    close(second);
    for (int i = 0; i < PATIENCE_MS && running(a); i++)
        turn(a, 1);
    turn(b, 1);
    is_order(b, "b3 ", "when another request is its first, it gets a turn");
    close(next), close(other);
    close_edge(a);
    close_edge(b);
}

/* The loop of the other edge has not turned for a while. */
static void hangs(void)
{
    sr_edge *a = open_edge("1,9,0,/r", 0), *b = open_edge("1,9,0,/r", 1);
    printf("# an edge that hangs\n");
    int first = ask(a, "/r?a0"), older = ask(b, "/r?b1");
    atomic_store(&common->row[1].turned, a->engine->now - 2 * SR_SECOND);
    is_int(kept_free(a, &first), 0, "no place is left to it");
    turn(b, 1);
    sr_others_ring(a, 1);
    int next = ask(a, "/r?a2");
    close(first);
    for (int i = 0; i < PATIENCE_MS && running(a); i++)
        turn(a, 1);
    turn(b, 1);
    is_order(b, "b1 ", "until it goes on");
    close(older), close(next);
    close_edge(a);
    close_edge(b);
}

/* During a reload with another --lane. */
static void changed(void)
{
    sr_edge *a = open_edge("1,9,0,/r", 0), *b = open_edge("2,9,0,/r", 1);
    printf("# another limit\n");
    int first = ask(a, "/r?a0"), second = ask(b, "/r?b1"), third = ask(b, "/r?b2");
    is_int((int)(running(b) * 10 + held(b)), 11, "the new edge counts what runs in the old one");
    close(first), close(second), close(third);
    close_edge(a);
    close_edge(b);
    a = open_edge("1,9,0,/r", 0);
    b = open_edge(NULL, 1);
    first = ask(a, "/r?a0"), second = ask(b, "/r?b1");
    is_int((int)in_queue(b), 1, "without lanes it holds nobody");
    close(first), close(second);
    close_edge(a);
    close_edge(b);
}

static int took[2];
static int of_client = -1; /* which a worker must not keep open */

/* Has a request, and goes on. */
static _Noreturn void run_worker(void)
{
    static sr_worker w;
    char byte = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(of_client);
    worker_open(&w, 0);
    while (sr_worker_next(&w) != SR_WORKER_REQUEST)
        ;
    if (write(took[1], &byte, 1) != 1)
        _exit(9);
    for (;;)
        pause();
}

static pid_t start_worker(void)
{
    pid_t pid = fork();
    if (!pid)
        run_worker();
    address = addresses[0];
    return pid;
}

/* Turns until nobody waits in a lane. */
static void kill_worker(sr_edge *ed, pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (int i = 0; i < PATIENCE_MS && held(ed); i++)
        turn(ed, 1);
}

static void broken(void)
{
    sr_edge *ed = open_edge("1,9,0,/r", 0);
    printf("# a worker that breaks the rules\n");
    pid_t pid = start_worker();
    int first = client_of("GET /r?0 HTTP/1.1\r\nHost: a\r\n\r\n");
    ok(turn_until(ed, took[0]), "it has the request");
    int second = ask(ed, "/r?1");
    for (uint32_t row = 0; row < ROWS; row++)
        if (ed->workers[row].line.fd >= 0)
            sr_deliver_broken(ed, &ed->workers[row], "breaks the rules");
    turn(ed, 3);
    is_int(status_of(first), 502, "its client is told");
    turn(ed, 50);
    is_int((int)(running(ed) * 10 + held(ed)), 11, "as long as it may run on, it keeps the place");
    kill_worker(ed, pid);
    is_order(ed, "1 ", "then it is the next one's");
    is_int((int)running(ed), 1, "and one again");
    close(first), close(second);
    close_edge(ed);
}

/* Its client is gone, but the worker runs on. */
static void abandoned(void)
{
    sr_edge *ed = open_edge("1,9,0,/r", 0);
    printf("# a request without a client\n");
    pid_t pid = start_worker();
    int first = client_of("GET /r?0 HTTP/1.1\r\nHost: a\r\n\r\n");
    ok(turn_until(ed, took[0]), "a worker has the request");
    int second = ask(ed, "/r?1");
    is_int((int)(running(ed) * 10 + held(ed)), 11, "the next waits");
    setsockopt(first, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    close(first); /* by a reset, as an end alone would be that of its side */
    for (int i = 0; i < PATIENCE_MS && ed->engine->n_conns > 1; i++)
        turn(ed, 1);
    turn(ed, 50);
    is_int((int)(running(ed) * 10 + held(ed)), 11, "it has its place until the worker is done");
    kill_worker(ed, pid);
    is_order(ed, "1 ", "or has ended");
    close(second);
    close_edge(ed);
}

/* Its client is gone, and it takes too long: what is said of its time. */
static void too_late(void)
{
    sr_edge *ed = open_edge("1,9,0,/r", 0);
    char said[4096] = "";
    printf("# a request without a client that takes too long\n");
    ed->engine->config.request_ns = SR_SECOND;
    fcntl(report[0], F_SETFL, O_NONBLOCK);
    int first = ask(ed, "/r?0"), second = ask(ed, "/r?1");
    turn(ed, 2000);
    close(first);
    for (int i = 0; i < PATIENCE_MS && held(ed); i++)
        turn(ed, 1);
    of_client = second;
    pid_t pid = start_worker();
    of_client = -1;
    ok(turn_until(ed, took[0]), "a worker has the request, which has waited for 2 s");
    setsockopt(second, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    close(second);
    const char *at = NULL;
    for (int i = 0; i < PATIENCE_MS && !at; i++) {
        turn(ed, 1);
        size_t len = strlen(said);
        ssize_t n = read(report[0], said + len, sizeof said - 1 - len);
        said[len + (size_t)(n > 0 ? n : 0)] = '\0';
        at = strstr(said, " timeout GET /r?1 ran for ");
    }
    ok(at && atof(at + 26) < 1.9 && strstr(at, "the client was gone"), "the time that it ran, without that");
    printf("# %s", at ? at : "nothing\n");
    kill_worker(ed, pid);
    close_edge(ed);
}

/*
 * Nor does the supervisor read that it takes too long: it is told again each second, and the request counts
 * once.
 */
static void unheard(void)
{
    sr_edge *ed = open_edge(NULL, 0);
    printf("# a request without a client, and a supervisor that does not read\n");
    const _Atomic uint64_t *late = &ed->engine->row->counters.limited[SR_LIMIT_REQUEST];
    uint64_t before = atomic_load(late);
    ed->engine->config.request_ns = 200 * SR_MILLISECOND;
    char all[4096] = "";
    fcntl(report[0], F_SETFL, O_NONBLOCK);
    fcntl(report[1], F_SETFL, O_NONBLOCK);
    while (write(report[1], all, sizeof all) > 0 || write(report[1], all, 1) > 0)
        ;
    pid_t pid = start_worker();
    int first = client_of("GET /?0 HTTP/1.1\r\nHost: a\r\n\r\n");
    ok(turn_until(ed, took[0]), "a worker has the request");
    setsockopt(first, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    close(first);
    for (int i = 0; i < PATIENCE_MS && atomic_load(late) == before; i++)
        turn(ed, 1);
    is_int((int)(atomic_load(late) - before), 1, "it takes too long");
    turn(ed, 2200);
    is_int((int)(atomic_load(late) - before), 1, "which is counted once, and tried to be told twice more");
    while (read(report[0], all, sizeof all) > 0)
        ;
    ssize_t n = -1;
    for (int i = 0; i < PATIENCE_MS && (n = read(report[0], all, sizeof all - 1)) <= 0; i++)
        turn(ed, 1);
    all[n > 0 ? n : 0] = '\0';
    ok(strstr(all, " timeout GET /?0 ran for "), "told at last");
    is_int((int)(atomic_load(late) - before), 1, "and not counted again");
    kill_worker(ed, pid);
    close_edge(ed);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    if (!site_open(ROWS) || pipe(took))
        return 1;
    common = sr_memory_new("common", sizeof *common, &common_fd);
    for (int i = 0; i < EDGES; i++) {
        socklen_t len = sizeof address;
        bells[i] = eventfd(0, EFD_NONBLOCK);
        addresses[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        ports[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (bind(ports[i], (struct sockaddr *)&addresses[i], len) || listen(ports[i], 100) ||
            getsockname(ports[i], (struct sockaddr *)&addresses[i], &len))
            return 1;
    }
    limit();
    time_limit();
    half_closed();
    spilled();
    stopped();
    two_edges();
    still();
    hangs();
    changed();
    abandoned();
    too_late();
    unheard();
    broken();
    return done_testing();
}
