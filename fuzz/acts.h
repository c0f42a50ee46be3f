#ifndef FUZZ_ACTS_H
#define FUZZ_ACTS_H
/*
 * acts: what an input has workers, the clock, the machine and the supervisor do; of the targets that use
 * moments.h.
 */
#include "moments.h"

typedef struct moments_input {
    const uint8_t *at, *end;
} moments_input;

static bool moments_honest;   /* no worker has broken the rules */
static bool moments_calm;     /* nothing has happened that a response may suffer from */
static bool moments_lives;    /* the edge has not ended */
static int64_t moments_since; /* clock at the beginning */
static int moments_heir;      /* other end of the pair to an heir; -1: there is none */
static uint32_t moments_inside_row, moments_inside_count;
static int moments_before; /* descriptors */

static uint8_t moments_take_byte(moments_input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static void moments_steps(int n)
{
    while (moments_lives && n-- > 0)
        moments_lives = moments_step();
}

/* --- workers --- */

static void moments_writes(uint32_t row, unsigned n, bool tells)
{
    while (n-- > 0 && moments_write(row))
        ;
    if (tells && moments_workers[row].shape)
        sr_worker_flush(&moments_workers[row].w);
}

static void moments_inside_writes(void)
{
    moments_writes(moments_inside_row, moments_inside_count, false);
}

static void moments_worker_acts(moments_input *in, uint8_t op)
{
    uint32_t row = op % MOMENTS_ROWS;
    moments_worker *m = &moments_workers[row];
    uint8_t how = moments_take_byte(in);
    if (!moments_there(m)) {
        moments_died(row);
        moments_lives = moments_hello(row);
        return;
    }
    switch (op / MOMENTS_ROWS % 6) {
    case 0:
        moments_take(row);
        return;
    case 1:
    case 2:
        moments_writes(row, 1 + how % 8, how & 8);
        return;
    case 3: /* while the edge sends, the next time */
        moments_inside_row = row;
        moments_inside_count = 1 + how % 8;
        moments_inside = moments_inside_writes;
        return;
    case 4:
        if (how % 4)
            return;
        moments_calm = false;
        moments_die(row);
        if (how & 4)
            moments_died(row);
        return;
    case 5:
        if (how % 8 || !m->shape)
            return;
        moments_calm = moments_honest = false;
        moments_say(&m->w, how & 8 ? 99 : how & 16 ? SR_REPLY_FILE : SR_REPLY_INTERIM, "", 0);
        sr_worker_flush(&m->w);
        return;
    }
}

/* --- the rest --- */

static void moments_time_goes(uint8_t how)
{
    static const int64_t times[] = {
        0,         SR_MILLISECOND, 11 * SR_MILLISECOND, 25 * SR_MILLISECOND, 120 * SR_MILLISECOND,
        SR_SECOND, 4 * SR_SECOND,  5 * SR_SECOND,       10 * SR_SECOND,      20 * SR_SECOND};
    moments_wait(times[how % 10] + (how & 16 ? -1 : 1));
    if (moments_now - moments_since >= 3 * SR_SECOND)
        moments_calm = false;
}

/* Steps while something is short. */
static void moments_short(uint8_t how)
{
    sr_engine *e = moments_edge->engine;
    struct rlimit limit;
    const char *tmpdir = e->config.tmpdir;
    int next = dup(0);
    MUST(next >= 0 && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
    size_t more = how & 1 ? SR_OUTPUT_TOTAL + 1 : 0;
    e->pending += more;
    if (how & 2) {
        e->config.tmpdir = "/proc/nonexistent";
        moments_calm = false;
    }
    if (how & 4) {
        MUST(setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)next, limit.rlim_max}) == 0);
        moments_calm = false;
    }
    moments_steps(1 + how / 8 % 3);
    e->pending -= more;
    e->config.tmpdir = tmpdir;
    MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* What the edge has passed to its heir, which closes it */
static void moments_heir_reads(void)
{
    char note[65536], control[256];
    struct iovec iov = {note, sizeof note};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    while (moments_heir >= 0 && recvmsg(moments_heir, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) > 0) {
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
            size_t n = c->cmsg_type == SCM_RIGHTS ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
            for (size_t i = 0; i < n; i++) {
                int fd;
                memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
                close(fd);
            }
        }
        msg.msg_controllen = sizeof control;
    }
}

static void moments_ends(uint8_t how)
{
    int pair[2];
    if (how > 250) {
        sr_stop_begin(moments_edge, how & 1);
    } else if (how > 245 && moments_heir < 0 && !moments_edge->stop.begun &&
               !moments_edge->engine->retiring) {
        MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
        moments_heir = pair[1];
        sr_heir_greet(pair[1], UINT32_MAX);
        sr_heir_begin(moments_edge, pair[0]);
    } else {
        return;
    }
    moments_calm = false;
}

/* --- the beginning and the end of an input --- */

static void moments_play(void)
{
    if (moments_lobby < 0)
        moments_setup();
    moments_before = fuzz_descriptors();
    moments_begin();
    moments_since = moments_now;
    moments_calm = moments_honest = moments_lives = true;
    moments_heir = -1;
    for (uint32_t row = 0; row < MOMENTS_ROWS; row++)
        MUST(moments_hello(row));
}

/* All workers go on, and those that were killed are replaced. */
static void moments_workers_go_on(void)
{
    for (uint32_t row = 0; moments_lives && row < MOMENTS_ROWS; row++) {
        if (moments_edge->workers[row].broken) /* the supervisor kills it */
            moments_die(row);
        if (!moments_there(&moments_workers[row]))
            moments_died(row);
        if (!moments_there(&moments_workers[row]) && !moments_edge->stop.begun &&
            !moments_edge->engine->retiring)
            moments_lives = moments_hello(row);
        moments_take(row);
        moments_writes(row, 2, true);
    }
}

/* The clients have left: nothing is missing. */
static void moments_is_over(void)
{
    for (int i = 0; i < 8 && moments_lives; i++) {
        moments_wait(3 * SR_SECOND);
        moments_steps(1);
    }
    if (moments_lives) {
        MUST(moments_edge->engine->n_conns == 0 && moments_edge->engine->pending == 0);
        MUST(moments_edge->queue.n_free == moments_edge->slots && sr_link_alone(&moments_edge->abandoned));
    }
    for (uint32_t row = 0; row < MOMENTS_ROWS; row++)
        moments_die(row);
    moments_heir_reads();
    if (moments_heir >= 0)
        close(moments_heir);
    moments_end();
    MUST(ftruncate(moments_log, 0) == 0);
    const char *told = moments_told();
    if (strstr(told, " broken ") && moments_honest)
        fprintf(stderr, "%s", told);
    MUST(!strstr(told, " broken ") || !moments_honest);
    MUST(fuzz_descriptors_again(moments_before) == moments_before);
}

#endif
