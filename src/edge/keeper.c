#include "keeper.h"

#include "../net/memfile.h"
#include "../net/self.h"
#include "../share/door.h"
#include "../transport/tls.h"
#include "keys.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { READERS_MAX = 128, LEGACY_MS = 2000 };

typedef struct keeper {
    sr_setup *setup;
    sr_ticket_key tickets[SR_TICKETS_MAX]; /* the one before, the present one, the next one */
    int readers[READERS_MAX];              /* ends of pairs, whose other ends edges have */
    int n_readers;
    pid_t parent;
} keeper;

static void say(const sr_setup *s, const char *line)
{
    int fd = s->check || s->report < 0 ? STDOUT_FILENO : s->report;
    ssize_t n;
    do
        n = write(fd, line, strlen(line));
    while (n < 0 && errno == EINTR);
}

void sr_keeper_tell(void *setup, sr_keyfiles_kind kind, const char *file, const char *name, int64_t expires)
{
    char line[8192], plain[256];
    snprintf(plain, sizeof plain, "%s", name);
    for (char *c = plain; *c; c++) /* it is one word */
        *c = *c <= ' ' || *c == 0x7f ? '_' : *c;
    snprintf(line, sizeof line, "%d %s %lld %s %s\n", (int)getpid(),
             kind == SR_KEYFILES_CRL ? "keyscrl" : "keys", (long long)expires, plain, file);
    say(setup, line);
}

bool sr_keeper_read(sr_setup *s)
{
    char why[SR_KEYSET_WHY], line[SR_KEYSET_WHY + 64];
    sr_tls *tls = sr_tls_new(false);
    bool fine = sr_keyset_begin(&s->keyset);
    snprintf(why, sizeof why, "no memory");
    sr_self_readable(false);
    /* a build without TLS says so here */
    fine = fine && sr_keyfiles_read(&s->keyfiles, &s->keyset, sr_keeper_tell, s, why) &&
           sr_tls_load(tls, sr_bytes_of(sr_buffer_at(&s->keyset), sr_buffer_len(&s->keyset)), why);
    sr_tls_free(tls);
    if (fine && s->check)
        snprintf(line, sizeof line, "%d keysready\n", (int)getpid());
    else if (!fine)
        snprintf(line, sizeof line, "%d keysfailed %s\n", (int)getpid(), why);
    if (!fine || s->check)
        say(s, line);
    if (!fine)
        sr_keyset_wipe(&s->keyset);
    return fine;
}

/* --- tickets --- */

static bool tickets_new(keeper *k, int64_t now)
{
    for (int i = 0; i < SR_TICKETS_MAX; i++)
        if (!sr_keyfiles_ticket(&k->tickets[i], now + (i - 1) * (int64_t)SR_TICKET_SECONDS))
            return false;
    return true;
}

/* Every edge has the next key before it is used, so that none meets a ticket that it cannot read. */
static bool tickets_turn(keeper *k, int64_t now)
{
    bool turned = false;
    while (k->tickets[2].since <= now) {
        memmove(k->tickets, k->tickets + 1, 2 * sizeof k->tickets[0]);
        if (!sr_keyfiles_ticket(&k->tickets[2], k->tickets[1].since + SR_TICKET_SECONDS))
            return turned;
        turned = true;
    }
    return turned;
}

/* Takes over the ticket keys of the previous keeper, which sends its key set as to an edge. */
static bool tickets_inherit(keeper *k, int line)
{
    sr_message note;
    int fds[SR_MESSAGE_FDS], n = 0, found = 0;
    struct pollfd p = {.fd = line, .events = POLLIN};
    sr_buffer set = {0};
    if (line < 0)
        return false;
    bool came = poll(&p, 1, LEGACY_MS) > 0 && sr_door_receive(line, &note, fds, &n, false) == 0 && n > 0 &&
                note.kind == SR_MESSAGE_KEYS && sr_keys_read(fds[0], note.bytes, &set);
    while (n > 0)
        close(fds[--n]);
    close(line);
    sr_bytes run = sr_bytes_of(sr_buffer_at(&set), sr_buffer_len(&set)), item;
    sr_keyset_kind kind;
    size_t at = 0;
    while (came && sr_keyset_next(run, &at, &kind, &item))
        if (kind == SR_KEYSET_TICKET && item.len == sizeof k->tickets[0] && found < SR_TICKETS_MAX)
            memcpy(&k->tickets[found++], item.at, item.len);
    sr_keyset_wipe(&set);
    return found == SR_TICKETS_MAX;
}

/* --- giving --- */

/* A file with the set, which nobody can change. -1 with errno */
static int file_of(const keeper *k, uint32_t *bytes)
{
    sr_buffer set = {0};
    const sr_buffer *pairs = &k->setup->keyset;
    bool made = sr_keyset_begin(&set);
    for (int i = 0; made && i < SR_TICKETS_MAX; i++)
        made = sr_keyset_add(&set, SR_KEYSET_TICKET,
                             sr_bytes_of((const char *)&k->tickets[i], sizeof k->tickets[i]));
    made = made && sr_keyset_copy(&set, sr_bytes_of(sr_buffer_at(pairs), sr_buffer_len(pairs)));
    *bytes = (uint32_t)sr_buffer_len(&set);
    struct iovec iov = {sr_buffer_at(&set), *bytes};
    int fd = made ? sr_memfile("sirius-keys", &iov, 1, true) : -1;
    sr_keyset_wipe(&set);
    return fd;
}

/* False: the reader is gone, or does not read. */
static bool give(keeper *k, int reader)
{
    sr_message note = {.kind = SR_MESSAGE_KEYS};
    int fd = file_of(k, &note.bytes);
    bool given = fd >= 0 && sr_door_send(reader, &note, &fd, 1, false) == 0;
    if (fd >= 0)
        close(fd);
    return given;
}

static void drop(keeper *k, int i)
{
    close(k->readers[i]);
    k->readers[i] = k->readers[--k->n_readers];
}

static void give_all(keeper *k)
{
    for (int i = k->n_readers; i-- > 0;)
        if (!give(k, k->readers[i]))
            drop(k, i);
}

static void add(keeper *k, int reader)
{
    if (k->n_readers == READERS_MAX || !give(k, reader))
        close(reader);
    else
        k->readers[k->n_readers++] = reader;
}

/* --- the loop --- */

/* False: the supervisor is gone. */
static bool hear(keeper *k, int line)
{
    sr_message note;
    int fds[SR_MESSAGE_FDS], n = 0, err = sr_door_receive(line, &note, fds, &n, false);
    if (err == EAGAIN)
        return true;
    if (!err && note.kind == SR_MESSAGE_KEYS && note.pid == k->parent && n > 0)
        add(k, fds[--n]);
    while (n > 0)
        close(fds[--n]);
    return err != EPIPE && err != ECONNRESET;
}

static int patience(const keeper *k)
{
    int64_t left = k->tickets[2].since - time(NULL); /* by the clock of the wall, as tickets are */
    return left <= 0 ? 0 : left > 3600 ? 3600 * 1000 : (int)left * 1000;
}

void sr_keeper_run(sr_setup *s)
{
    static keeper k;
    struct pollfd polled[READERS_MAX + 2];
    char line[64];
    k.setup = s;
    k.parent = getppid();
    if (!tickets_inherit(&k, s->legacy_keys) && !tickets_new(&k, time(NULL)))
        return;
    snprintf(line, sizeof line, "%d keysready\n", (int)getpid());
    say(s, line);
    for (;;) {
        int n = 0;
        polled[n++] = (struct pollfd){.fd = s->keys, .events = POLLIN};
        polled[n++] =
            (struct pollfd){.fd = s->lifeline, .events = POLLIN}; /* its end: that of the supervisor */
        for (int i = 0; i < k.n_readers; i++)
            polled[n++] = (struct pollfd){.fd = k.readers[i], .events = POLLIN};
        if (poll(polled, (nfds_t)n, patience(&k)) < 0 && errno != EINTR)
            return;
        for (int i = k.n_readers; i-- > 0;) /* nobody sends there: it is the end of an edge */
            if (polled[i + 2].revents)
                drop(&k, i);
        if (polled[1].revents || (polled[0].revents && !hear(&k, s->keys)))
            return;
        if (tickets_turn(&k, time(NULL)))
            give_all(&k);
    }
}
