#include "keys.h"

#include "../h2/h2.h"
#include "../net/tempfile.h"
#include "../share/door.h"
#include "crew.h"
#include "report.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_MS = 10000 };

bool sr_keys_read(int file, uint32_t bytes, sr_buffer *to)
{
    if (!bytes || bytes > SR_KEYSET_MAX || !sr_buffer_reserve(to, bytes) ||
        sr_tempfile_read(file, to->data, bytes, 0) != (ssize_t)bytes)
        return false;
    to->end = bytes;
    return true;
}

static void unusable(sr_edge *ed, const char *why)
{
    char text[SR_KEYSET_WHY + 64];
    snprintf(text, sizeof text, "%d badkeys %s\n", (int)getpid(), why);
    sr_report(ed, text);
}

static bool load(sr_edge *ed, sr_bytes set)
{
    char why[SR_KEYSET_WHY];
    if (sr_tls_load(ed->engine->tls, set, why))
        return true;
    unusable(ed, why);
    return false;
}

/*
 * Takes what is there. 0: a set was loaded; EAGAIN: there is none; EBADMSG: it could not be loaded, which was
 * reported; or why not.
 */
static int take(sr_edge *ed)
{
    sr_message note;
    int fds[SR_MESSAGE_FDS], n = 0, err = sr_door_receive(ed->keys.fd, &note, fds, &n, false);
    if (err)
        return err;
    sr_buffer set = {0};
    bool came = note.kind == SR_MESSAGE_KEYS && n > 0 && sr_keys_read(fds[0], note.bytes, &set);
    if (!came)
        unusable(ed, "they could not be read, for lack of memory or descriptors");
    bool loaded = came && load(ed, sr_bytes_of(sr_buffer_at(&set), sr_buffer_len(&set)));
    sr_keyset_wipe(&set);
    while (n > 0)
        close(fds[--n]);
    return loaded ? 0 : EBADMSG;
}

void sr_keys_receive(sr_edge *ed)
{
    if (ed->keys.fd < 0)
        return;
    int err = take(ed);
    if (!err || err == EAGAIN || err == EBADMSG) /* what was loaded before stays */
        return;
    if (!sr_door_is_over(err)) {
        sr_crew_pause(ed, &ed->keys, &ed->keys_paused);
        return;
    }
    sr_loop_remove(&ed->engine->loop, &ed->keys); /* the keeper has ended */
    close(ed->keys.fd);
    ed->keys.fd = -1;
}

void sr_keys_line(sr_edge *ed, int line)
{
    sr_loop *loop = &ed->engine->loop;
    if (!ed->engine->tls) {
        close(line);
        return;
    }
    if (ed->keys.fd >= 0) {
        sr_loop_remove(loop, &ed->keys);
        close(ed->keys.fd);
    }
    ed->keys = (sr_source){.fd = line, .kind = SR_SOURCE_KEYS};
    ed->keys_paused = false;
    if (sr_loop_add(loop, &ed->keys, EPOLLIN)) {
        close(line);
        ed->keys.fd = -1;
    }
}

/* Without a keeper: files are read by this process, and its keys for tickets are its own. */
static int own_set(sr_edge *ed, const sr_setup *s)
{
    sr_ticket_key ticket;
    sr_buffer set = {0};
    char why[SR_KEYSET_WHY];
    bool loaded = sr_keyset_begin(&set) && sr_keyfiles_ticket(&ticket, time(NULL)) &&
                  sr_keyset_add(&set, SR_KEYSET_TICKET, sr_bytes_of((const char *)&ticket, sizeof ticket)) &&
                  sr_keyset_copy(&set, sr_bytes_of(sr_buffer_at(&s->keyset), sr_buffer_len(&s->keyset))) &&
                  sr_tls_load(ed->engine->tls, sr_bytes_of(sr_buffer_at(&set), sr_buffer_len(&set)), why);
    sr_keyset_wipe(&set);
    return loaded ? 0 : EPROTO;
}

int sr_keys_open(sr_edge *ed, const sr_setup *s)
{
    bool wanted = false;
    for (unsigned i = 0; i < s->n_listeners; i++)
        wanted = wanted || s->listeners[i].is_tls;
    if (!wanted)
        return 0;
    if (!(ed->engine->tls = sr_tls_new(s->http2 && sr_h2_built())))
        return sr_tls_built() ? ENOMEM : EPROTONOSUPPORT;
    if (s->keys < 0)
        return own_set(ed, s);
    struct pollfd p = {.fd = s->keys, .events = POLLIN};
    int n;
    do
        n = poll(&p, 1, FIRST_MS);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return ETIMEDOUT;
    ed->keys = (sr_source){.fd = s->keys, .kind = SR_SOURCE_KEYS};
    int err = take(ed);
    return err ? err : sr_loop_add(&ed->engine->loop, &ed->keys, EPOLLIN);
}
