/*
 * moments: the table of moments (docs/DESIGN.md): each change of mind of the edge about an exchange, before,
 * between and behind each record of its reply, with the record read, unread in the ring, or written while the
 * edge decides. Whatever comes first, the client gets the whole response to its request, or what the table
 * says, and never a wrong one that looks complete; the log has one line, which says so too; and no slot,
 * descriptor or byte is missing afterwards.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../../fuzz/moments.h"

#include "net/lease.h"
#include "tap.h"

#include <signal.h>

/*
 * When the edge notices the change of mind, the records before the moment were read, and the next one is ...
 */
typedef enum mode {
    BETWEEN,  /* not written yet */
    CROSSING, /* in the ring, and was not read */
    INSIDE,   /* the same, and all that follows is written while the edge sends what that one brings */
    MODES
} mode;
static const char *const mode_names[] = {"between", "crossing", "inside"};

typedef struct cell {
    const moments_shape *shape;
    unsigned moment; /* so many records were read */
    mode mode;
    bool reads; /* the client does, all the time */

    /* what follows from these */
    bool begun;          /* the head was read */
    bool sent;           /* all of the body was, and its framing tells the client so */
    bool over;           /* all was */
    moments_record next; /* the record in the ring; R_OVER: none */
} cell;

/* What may come of it: the verdicts as bits, and the status, if it is one of the edge */
typedef struct fate {
    unsigned verdicts;
    int status;
    bool limited; /* it counts as such */
} fate;
#define BIT(verdict) (1u << (verdict))
#define CUT (BIT(V_PART) | BIT(V_NOTHING))

static moments_client client;
static cell now;

static void settle(void)
{
    for (int i = 0; i < 12; i++) {
        if (!moments_step())
            return;
        if (now.reads)
            moments_read(&client, 1 << 20);
    }
}

/* --- fates --- */

static fate natural(const cell *c)
{
    const moments_record *r = c->shape->record;
    if (r[0] == R_CUT)
        return (fate){BIT(V_REFUSED), 502, false};
    if (r[0] == R_UNREAD)
        return (fate){BIT(V_REFUSED), 503, false};
    if (moments_count(c->shape, R_CUT)) /* RST_STREAM overtakes what was not sent */
        return (fate){c->shape->minor == 2 ? CUT : BIT(V_PART), 0, false};
    return (fate){BIT(V_WHOLE), 0, false};
}

/* Given up at this moment: what was read of it is all that comes */
static fate given_up(const cell *c, int status)
{
    if (c->over)
        return natural(c);
    if (c->sent)
        return (fate){BIT(V_WHOLE), 0, false};
    return c->begun ? (fate){BIT(V_PART), 0, false} : (fate){BIT(V_REFUSED), status, false};
}

/* The record in the ring counts, as the edge reads it first. */
static cell with_next(const cell *c)
{
    cell then = *c;
    then.begun = c->begun || c->next == R_HEAD || c->next == R_WHOLE;
    then.over = c->over || c->next == R_WHOLE || c->next == R_END || c->next == R_CUT || c->next == R_UNREAD;
    unsigned left = 0;
    for (unsigned i = c->moment + 1; c->next && c->shape->record[c->moment] && c->shape->record[i]; i++)
        left +=
            c->shape->record[i] == R_DATA || c->shape->record[i] == R_FILE || c->shape->record[i] == R_CUT;
    then.sent =
        c->sent || then.over ||
        (then.begun && !left && c->shape->framing == F_LENGTH && (c->next == R_DATA || c->next == R_FILE)) ||
        (then.begun && *c->shape->method == 'H');
    return then;
}

static bool goes_on(const cell *c)
{
    return c->next == R_HEAD || c->next == R_WHOLE || c->next == R_DATA || c->next == R_FILE ||
           c->next == R_END || c->next == R_CUT || c->next == R_UNREAD;
}

static fate undisturbed(const cell *c)
{
    return natural(c);
}

static fate of_stream(const cell *c)
{
    if (c->over || !c->begun || goes_on(c))
        return natural(c);
    fate f = given_up(c, 0);
    f.limited = true;
    return f;
}

static fate of_call(const cell *c)
{
    if (c->begun || c->over)
        return of_stream(c);
    if (goes_on(c))
        return natural(c);
    return (fate){BIT(V_REFUSED), 504, true};
}

static fate of_worker(const cell *c)
{
    cell then = with_next(c);
    return given_up(&then, 502);
}

/* The client does not read, so it depends on the socket. */
static fate whole_or_cut(const cell *c)
{
    fate f = natural(c);
    f.verdicts |= CUT;
    return f;
}

static fate of_stop(const cell *c)
{
    if (c->shape->record[0] == R_TAKE && !c->over && (c->moment || c->next))
        return (fate){CUT | BIT(V_WHOLE), 0, false}; /* the application may go on */
    if (c->over || c->next == R_WHOLE || c->next == R_END || c->next == R_CUT || c->next == R_UNREAD)
        return natural(c);
    if (c->sent)
        return (fate){BIT(V_WHOLE), 0, false};
    return c->begun ? (fate){CUT, 0, false} : (fate){BIT(V_REFUSED), 503, false};
}

static fate of_descriptors(const cell *c)
{
    if (ON_LINUX && c->next == R_FILE) /* else there is no lease, and its bytes came in its place */
        return (fate){BIT(V_PART), 0, false};
    return natural(c);
}

static fate of_client(const cell *c)
{
    (void)c;
    return (fate){CUT, 0, false};
}

/* psgix.io: what the application has written there is its own, and no response follows it. */
static fate of_taken(const cell *c, bool limited, bool ends, bool no_socket)
{
    bool lent = c->moment >= 1 || c->next == R_TAKE, spoken = c->moment >= 2 || c->next == R_SPEAK;
    fate f = natural(c);
    if (c->over || c->next == R_TAKEN)
        return f;
    if (limited && !lent)
        f = (fate){BIT(V_REFUSED), 504, true};
    if (ends)
        f = (fate){spoken ? CUT : CUT | BIT(V_REFUSED), 502, false}; /* of a unix socket it can't tell */
    if (no_socket && !spoken)
        f = (fate){CUT | BIT(V_REFUSED), 502, false};
    return f;
}

/*
 * A stream of HTTP/2: RST_STREAM overtakes what was not sent, and what the worker writes meanwhile may have
 * come before the change.
 */
static fate of_h2(const cell *c, fate f, bool ends)
{
    if (f.verdicts & BIT(V_PART))
        f.verdicts |= BIT(V_NOTHING);
    if (c->mode == INSIDE)
        f.verdicts |= natural(c).verdicts | (ends ? CUT : 0);
    return f;
}

/* --- changes of mind --- */

static void nothing(void) {}

static void call_limit(void)
{
    moments_wait(21 * SR_SECOND);
}

static void stream_limit(void)
{
    moments_wait(11 * SR_SECOND);
}

static void write_limit(void)
{
    moments_wait(6 * SR_SECOND);
}

static void client_leaves(void)
{
    close(client.fd);
    client.fd = -1;
}

static void worker_dies(void)
{
    moments_die(0);
    moments_died(0);
}

static void worker_breaks(void)
{
    sr_worker *w = &moments_workers[0].w;
    uint64_t number = w->number;
    uint32_t slot = w->index;
    sr_record *r = sr_ring_reserve(w->open[0]->queue.ring, 0);
    *r = (sr_record){.kind = 99, .number = number, .slot = slot};
    sr_ring_commit(w->open[0]->queue.ring, r, 0);
    sr_deliver(moments_edge, &moments_edge->workers[0]);
}

static void stop(void)
{
    sr_stop_begin(moments_edge, false);
}

static void stop_now(void)
{
    sr_stop_begin(moments_edge, true);
}

/* The time for that is over, too. */
static void stop_over(void)
{
    sr_stop_begin(moments_edge, true);
    moments_wait(2 * SR_SECOND);
}

static int pair[2] = {-1, -1}; /* to the heir */

static void heir(void)
{
    MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    sr_heir_greet(pair[1], 0);
    sr_heir_begin(moments_edge, pair[0]);
}

static size_t besides; /* bytes that seem to wait for other clients */

static void full(void)
{
    besides = SR_OUTPUT_TOTAL + 1;
    moments_edge->engine->pending += besides;
}

static void full_disk(void)
{
    full();
    moments_edge->engine->config.tmpdir = "/proc/nonexistent";
}

static struct rlimit descriptors;

static void no_descriptor(void)
{
    int next = dup(0);
    MUST(next >= 0 && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &descriptors) == 0);
    MUST(setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)next, descriptors.rlim_max}) == 0);
}

static const struct row {
    const char *name;
    void (*change)(void);
    fate (*expect)(const cell *c);
    int slow; /* the client reads nothing before the change */
    int dead; /* nothing comes from the worker afterwards */
} rows[] = {
    {"nothing", nothing, undisturbed, 0, 0},
    {"nothing, and the client reads late", nothing, undisturbed, 1, 0},
    {"--request-timeout", call_limit, of_call, 0, 0},
    {"--stream-timeout", stream_limit, of_stream, 0, 0},
    {"--write-timeout", write_limit, whole_or_cut, 1, 0},
    {"the client leaves", client_leaves, of_client, 0, 0},
    {"the client, who is slow, leaves", client_leaves, of_client, 1, 0},
    {"the worker is killed", worker_dies, of_worker, 0, 1},
    {"the worker is killed, the client is slow", worker_dies, of_worker, 1, 1},
    {"the worker breaks the rules", worker_breaks, of_worker, 0, 1},
    {"a stop", stop, undisturbed, 0, 0},
    {"a fast stop", stop_now, undisturbed, 0, 0},
    {"the end of a stop", stop_over, of_stop, 0, 0},
    {"an heir", heir, undisturbed, 0, 0},
    {"memory for responses is full, the client slow", full, undisturbed, 1, 0},
    {"memory and disk are full, the client slow", full_disk, whole_or_cut, 1, 0},
    {"no descriptor", no_descriptor, of_descriptors, 0, 0},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* --- cells --- */

static void rest(void)
{
    while (moments_write(0))
        ;
}

static char why[400];
#define HOLDS(condition, ...)                                                                                \
    do {                                                                                                     \
        if (!(condition) && !*why)                                                                           \
            snprintf(why, sizeof why, __VA_ARGS__);                                                          \
    } while (0)

static void judge(const struct row *row, const fate *want, unsigned id, bool ended)
{
    int status = 0;
    moments_verdict got = V_NOTHING;
    bool either = now.shape->minor == 2 && now.mode == INSIDE; /* see of_h2 */
    if (client.fd >= 0) {
        moments_read(&client, 1 << 20);
        got = moments_judge(&client, &status);
        HOLDS(want->verdicts & BIT(got), "verdict %d, want one of %#x, status %d, %zu bytes%s", got,
              want->verdicts, status, client.len, client.ended ? ", then the end" : "");
        HOLDS(got != V_REFUSED || status == want->status || either, "status %d, want %d", status,
              want->status);
        HOLDS(!(BIT(got) & CUT) || moments_over(&client), "a part, and no end");
    }
    if (ended) /* the log is closed */
        return;
    const sr_counters *n = &moments_edge->engine->row->counters;
    bool left = client.fd < 0, aborted = atomic_load(&n->aborted);
    HOLDS(left || aborted == !!(BIT(got) & CUT), "counted as aborted: %d, but verdict %d", aborted, got);
    HOLDS(n->limited[SR_LIMIT_REQUEST] + n->limited[SR_LIMIT_STREAM] == want->limited || left || either,
          "limits: %d and %d", (int)n->limited[SR_LIMIT_REQUEST], (int)n->limited[SR_LIMIT_STREAM]);
    char path[32];
    snprintf(path, sizeof path, "/%u.%d ", id, (int)(now.shape - moments_shapes));
    const char *lines = moments_lines(), *line = strstr(lines, path);
    HOLDS(line && !strstr(line + 1, path), "lines in the log: \"%s\"", lines);
    if (!line || left)
        return;
    int logged = atoi(line + strlen(path));
    bool cut = strchr(line, 'X') != NULL;
    if (now.shape->record[0] == R_TAKE && got != V_REFUSED) /* the edge does not know its status */
        logged = 200;
    HOLDS(cut == aborted && (got == V_NOTHING || logged == (got == V_REFUSED ? status : 200)),
          "line in the log: %s", line);
    HOLDS(!moments_workers[0].w.timed_out || want->limited || now.mode == INSIDE,
          "the worker takes no other request");
    const char *told = moments_told();
    HOLDS(!strstr(told, " broken ") || row->change == worker_breaks, "told: %s", told);
}

static void try(const struct row *row, const moments_shape *shape, unsigned moment, mode mode)
{
    static unsigned id = 1000;
    unsigned n = 0;
    while (shape->record[n])
        n++;
    now = (cell){.shape = shape, .moment = moment, .mode = mode, .reads = !row->slow};
    if (mode != BETWEEN)
        now.next = shape->record[moment];
    unsigned data = 0;
    for (unsigned i = 0; i < moment; i++) {
        now.begun = now.begun || shape->record[i] == R_HEAD || shape->record[i] == R_WHOLE;
        data += shape->record[i] == R_DATA || shape->record[i] == R_FILE;
    }
    now.over = moment == n;
    now.sent =
        now.over || (now.begun && (*shape->method == 'H' ||
                                   (shape->framing == F_LENGTH && !moments_count(shape, R_CUT) &&
                                    data == moments_count(shape, R_DATA) + moments_count(shape, R_FILE))));
    if (shape->record[0] == R_CUT || shape->record[0] == R_UNREAD)
        now.begun = false;
    fate want = row->expect(&now);
    if (shape->record[0] == R_TAKE && row->expect != of_client && row->change != stop_over)
        want =
            of_taken(&now, row->change == call_limit, row->expect == of_worker, row->change == no_descriptor);
    if (shape->minor == 2)
        want = of_h2(&now, want, row->change == stop_over);
    id++;
    moments_begin();
    moments_hello(0);
    MUST(moments_there(&moments_workers[0]));
    moments_connect(&client);
    moments_ask(&client, id, shape);
    settle();
    MUST(moments_take(0));
    settle();
    for (unsigned i = 0; i < moment; i++) {
        MUST(moments_write(0));
        if (moments_workers[0].shape)
            sr_worker_flush(&moments_workers[0].w);
        settle();
    }
    if (mode != BETWEEN)
        MUST(moments_write(0));
    if (mode == INSIDE)
        moments_inside = rest;
    row->change();
    settle();
    moments_inside = NULL;
    if (!row->dead && moments_workers[0].shape) {
        while (moments_write(0)) {
            if (moments_workers[0].shape)
                sr_worker_flush(&moments_workers[0].w);
            settle();
        }
    }
    if (descriptors.rlim_max)
        MUST(setrlimit(RLIMIT_NOFILE, &descriptors) == 0);
    descriptors.rlim_max = 0;
    now.reads = true;
    bool goes = true;
    for (int i = 0; goes && i < 30; i++) {
        goes = moments_step();
        moments_read(&client, 1 << 20);
    }
    moments_edge->engine->pending -= besides;
    besides = 0;
    if (!goes && row->change == stop_over) {
        sr_stop_end(moments_edge);
        moments_read(&client, 1 << 20);
    }
    bool free_all = moments_edge->queue.n_free == moments_edge->slots;
    HOLDS(free_all || !goes, "a slot is missing");
    bool log_ends = !goes;
    if (log_ends) { /* connections that are passed or closed with it */
        if (pair[1] >= 0) {
            close(pair[1]);
            pair[1] = -1;
        }
    } else {
        judge(row, &want, id, false);
        int fd = client.fd;
        client.fd = -1;
        if (fd >= 0)
            close(fd);
        for (int i = 0; i < 4; i++) {
            moments_wait(3 * SR_SECOND);
            moments_step();
        }
        HOLDS(moments_edge->engine->n_conns == 0, "%d connections are left",
              (int)moments_edge->engine->n_conns);
        HOLDS(moments_edge->engine->pending == 0, "%zu bytes are left", moments_edge->engine->pending);
        HOLDS(sr_link_alone(&moments_edge->abandoned), "a request is watched on");
    }
    moments_die(0);
    moments_end();
    if (log_ends) {
        moments_now = 1;
        judge(row, &want, id, true);
        moments_now = 0;
    }
    if (pair[1] >= 0)
        close(pair[1]);
    pair[1] = -1;
    moments_leave(&client);
    if (ftruncate(moments_log, 0) != 0)
        MUST(false);
    moments_told();
}

static void pair_of(const struct row *row, const moments_shape *shape)
{
    int cells = 0, before = fuzz_descriptors();
    bool passed = true;
    unsigned n = 0;
    while (shape->record[n])
        n++;
    for (unsigned moment = 0; moment <= n; moment++) {
        for (mode m = 0; m < MODES; m++) {
            if ((moment == n && m != BETWEEN) || (row->dead && m == INSIDE))
                continue;
            *why = '\0';
            try(row, shape, moment, m);
            HOLDS(fuzz_descriptors_again(before) == before, "%d descriptors, before %d", fuzz_descriptors(),
                  before);
            cells++;
            if (!*why)
                continue;
            passed = false;
            printf("# %s, %s, %s record %u: %s\n", row->name, shape->name, mode_names[m], moment, why);
        }
    }
    ok(passed, "%s: %s, %d moments", row->name, shape->name, cells);
}

/* --- before a worker has begun --- */

static unsigned early_id = 500000;

/* A request that nobody has taken */
static void ask(const moments_shape *shape)
{
    *why = '\0';
    now = (cell){.shape = shape, .reads = true};
    moments_begin();
    moments_hello(0);
    moments_hello(1);
    moments_connect(&client);
    moments_ask(&client, ++early_id, shape);
    settle();
}

/* A worker has it by its claim, and has not begun. */
static void claim(void)
{
    sr_worker *w = &moments_workers[0].w;
    w->from = w->open[0];
    w->request.slot = sr_consumer_take(&w->from->queue, &w->index);
    MUST(w->request.slot);
    w->number = w->from->queue.number;
}

static void begin(void)
{
    sr_worker *w = &moments_workers[0].w;
    const sr_slot *s = w->request.slot;
    MUST(sr_consumer_begin(&w->from->queue, w->index, w->number) == SR_CLAIM_MINE);
    moments_begun(0, &(sr_worker_request){.request = (const void *)s->data, .base = s->data + s->parse});
}

static void serve(uint32_t row)
{
    settle();
    if (!moments_workers[row].shape)
        moments_take(row);
    while (moments_write(row))
        settle();
    settle();
}

static void early(const char *name, fate want)
{
    for (int i = 0; i < 20; i++) { /* a claim that nobody stands by is doubted for a while */
        moments_wait(25 * SR_MILLISECOND);
        settle();
    }
    HOLDS(moments_edge->queue.n_free == moments_edge->slots, "a slot is missing");
    judge(&rows[0], &want, early_id, false);
    moments_leave(&client);
    moments_die(0);
    moments_die(1);
    moments_end();
    MUST(ftruncate(moments_log, 0) == 0);
    ok(!*why, "before it has begun: %s, %s", name, now.shape->name);
    if (*why)
        printf("# %s\n", why);
}

static void before_it_has_begun(const moments_shape *shape)
{
    fate whole = natural(&(cell){.shape = shape});
    ask(shape);
    moments_wait(5 * SR_SECOND);
    settle();
    serve(0);
    early("--queue-timeout", (fate){BIT(V_REFUSED), 503, false});

    ask(shape);
    claim();
    moments_wait(5 * SR_SECOND);
    settle();
    begin();
    serve(0);
    early("--queue-timeout, a worker has taken it just now", whole);

    ask(shape);
    moments_wait(5 * SR_SECOND);
    claim();
    begin();
    serve(0);
    early("--queue-timeout, a worker has begun just now", whole);

    ask(shape);
    claim();
    moments_die(0);
    moments_died(0);
    serve(1);
    early("the worker that has taken it is killed, another is not", whole);

    ask(shape);
    claim();
    sr_worker *w = &moments_workers[0].w; /* what it asks as for a request that is in a file */
    sr_message note = {.kind = SR_MESSAGE_ASK, .row = 0, .number = w->number, .slot = w->index};
    MUST(sr_door_send(w->from->line, &note, NULL, 0, false) == 0);
    moments_die(0);
    settle(); /* the answer finds nobody */
    HOLDS(!*moments_told(), "the worker is called broken");
    moments_died(0);
    serve(1);
    early("the worker is killed as it asks for the files", whole);

    ask(shape);
    close(client.fd);
    client.fd = -1;
    settle();
    early("the client leaves", (fate){CUT, 0, false});

    ask(shape);
    claim();
    close(client.fd);
    client.fd = -1;
    settle();
    begin();
    serve(0);
    early("the client leaves, a worker has taken it just now", (fate){CUT, 0, false});

    ask(shape);
    heir();
    serve(0);
    MUST(!moments_edge->engine->n_conns || client.fd >= 0);
    moments_read(&client, 1 << 20);
    int status;
    moments_verdict got = moments_judge(&client, &status);
    ok(whole.verdicts & BIT(got), "before it has begun: an heir, %s", shape->name);
    moments_leave(&client);
    moments_die(0);
    moments_die(1);
    close(pair[1]);
    pair[1] = -1;
    moments_end();
    moments_told();
    MUST(ftruncate(moments_log, 0) == 0);
}

/* --- a request of HTTP/1.0 behind one of HTTP/1.1 --- */

static const moments_shape *shape_of(const char *name)
{
    for (int s = 0; s < MOMENTS_SHAPES; s++)
        if (strcmp(moments_shapes[s].name, name) == 0)
            return &moments_shapes[s];
    MUST(false);
    return NULL;
}

static moments_verdict verdict_of_next(void)
{
    int status;
    moments_read(&client, 1 << 20);
    return moments_judge(&client, &status);
}

/*
 * On a connection of its own; the second is sent with the first or after it. Returns what comes of the
 * second.
 */
static moments_verdict second_of_two(bool together, bool dies)
{
    const moments_shape *new = shape_of("whole"), *old = shape_of("old");
    now = (cell){.shape = old, .reads = true};
    moments_hello(0);
    moments_connect(&client);
    moments_ask(&client, ++early_id, new);
    if (together)
        moments_ask(&client, ++early_id, old);
    serve(0);
    HOLDS(verdict_of_next() == V_WHOLE, "the first has no response");
    if (!together)
        moments_ask(&client, ++early_id, old);
    settle();
    if (!moments_workers[0].shape)
        moments_take(0);
    for (int i = 0; i < 2 && moments_workers[0].shape; i++) {
        moments_write(0);
        sr_worker_flush(&moments_workers[0].w);
        settle();
    }
    if (dies)
        worker_dies();
    else
        serve(0);
    settle();
    if (!dies && client.n &&
        !client.ended) { /* the connection was kept for it: HTTP/1.0 ends with the close */
        moments_wait(3 * SR_SECOND);
        settle();
    }
    moments_verdict v = verdict_of_next();
    HOLDS(client.ended, "the connection goes on");
    HOLDS(v != V_PART || client.reset, "the end of a part is no reset");
    moments_leave(&client);
    moments_die(0);
    moments_died(0);
    settle();
    HOLDS(moments_edge->queue.n_free == moments_edge->slots && moments_edge->engine->n_conns == 0,
          "a slot or a connection is left");
    return v;
}

static void old_behind_new(void)
{
    for (int together = 0; together < 2; together++) {
        *why = '\0';
        moments_begin();
        moments_verdict first = second_of_two(together, true);
        HOLDS(first == (together ? V_PART : V_NOTHING), "cut: %d", first);
        HOLDS(second_of_two(together, false) == V_WHOLE, "it is not whole");
        HOLDS(second_of_two(together, true) == V_PART, "cut, the next");
        moments_end();
        moments_told();
        MUST(ftruncate(moments_log, 0) == 0);
        ok(!*why, "HTTP/1.0 behind HTTP/1.1, sent %s it", together ? "with" : "after");
        if (*why)
            printf("# %s\n", why);
    }
}

/* --- a file without its record --- */

/*
 * The worker dies between the two: with `noticed` the edge has read the file by then, with `gone` its client
 * has left.
 */
static void file_without_record(bool noticed, bool gone)
{
    char path[] = "/tmp/sirius-moments-XXXXXX";
    *why = '\0';
    close(mkstemp(path));
    int before = fuzz_descriptors();
    ask(shape_of("file"));
    moments_take(0);
    moments_write(0);
    settle();
    sr_worker *w = &moments_workers[0].w;
    sr_message note = {.kind = SR_MESSAGE_FILE, .row = 0, .number = w->number, .slot = w->index};
    int in = open(path, O_RDONLY | O_CLOEXEC), lease = sr_lease_take(in, getpid(), SR_DOOR_LEASE);
    MUST(lease >= 0 && sr_door_send(w->from->line, &note, &lease, 1, false) == 0);
    close(in);
    close(lease);
    if (gone)
        client_leaves();
    if (noticed || gone)
        settle();
    HOLDS(open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC) < 0 && errno == EWOULDBLOCK, "there is no lease");
    worker_dies();
    settle();
    int out = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    HOLDS(out >= 0, "a lease is left");
    close(out);
    if (!gone)
        HOLDS(verdict_of_next() == V_PART, "the response is not cut");
    moments_leave(&client);
    moments_die(1);
    moments_died(1);
    settle();
    moments_end();
    moments_told();
    MUST(ftruncate(moments_log, 0) == 0 && unlink(path) == 0);
    HOLDS(fuzz_descriptors_again(before) == before, "%d descriptors, before %d", fuzz_descriptors(), before);
    ok(!*why, "a worker dies when it has passed a file: %s, %s", noticed ? "read" : "not read",
       gone ? "without its client" : "with its client");
    if (*why)
        printf("# %s\n", why);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    moments_setup();
    for (int r = 0; r < ROWS; r++)
        for (int s = 0; s < MOMENTS_SHAPES; s++)
            if (argc < 2 || strcmp(argv[1], rows[r].name) == 0)
                pair_of(&rows[r], &moments_shapes[s]);
    for (int s = 0; s < MOMENTS_SHAPES && argc < 2; s++)
        before_it_has_begun(&moments_shapes[s]);
    if (argc < 2)
        old_behind_new();
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SR_DOOR_LEASE);
    sigprocmask(SIG_BLOCK, &set, NULL);
    bool leases = argc < 2 && on_linux("a worker dies when it has passed a file", "leases");
    for (int i = 0; i < 4 && leases; i++)
        file_without_record(i & 1, i & 2);
    return done_testing();
}
