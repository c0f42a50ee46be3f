#include "scoreboard.h"

#include "../net/descriptors.h"
#include "memory.h"
#include "sequence.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void *map(int fd, size_t size, int rights)
{
    void *at = mmap(NULL, size, rights, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

static size_t bytes_of(uint32_t slots, uint32_t edges)
{
    _Static_assert((int)SR_EDGE_ROWS_MAX <= (int)SR_PATHS_TABLES_MAX, "a table for each edge");
    return sizeof(sr_board) + ((size_t)slots + edges) * sizeof(sr_row) + edges * sizeof(sr_paths) +
           slots * sizeof(sr_exceptions);
}

/* NULL: out of memory; the mapping is then gone as well. */
static sr_scoreboard *handle(sr_board *shared, uint32_t slots, uint32_t edges, int memfd)
{
    size_t size = bytes_of(slots, edges);
    sr_scoreboard *s = malloc(sizeof *s);
    sr_paths *paths = (void *)&shared->rows[(size_t)slots + edges];
    if (s)
        *s = (sr_scoreboard){.shared = shared,
                             .rows = shared->rows,
                             .paths = paths,
                             .exceptions = (void *)&paths[edges],
                             .slots = slots,
                             .edges = edges,
                             .size = size,
                             .memfd = memfd};
    else
        munmap(shared, size);
    return s;
}

sr_scoreboard *sr_scoreboard_new(uint32_t slots, uint32_t edges)
{
    if (slots < 1 || slots > SR_SLOTS_MAX || edges > SR_EDGE_ROWS_MAX) {
        errno = EINVAL;
        return NULL;
    }
    size_t size = bytes_of(slots, edges);
    int fd;
    sr_board *shared = sr_memory_new("sirius scoreboard", size, &fd);
    sr_scoreboard *s = shared ? handle(shared, slots, edges, fd) : NULL;
    if (!s) {
        if (shared)
            sr_descriptors_failed(fd);
        return NULL;
    }
    sr_memory_seal(fd, false);
    sr_scoreboard_mend(s);
    return s;
}

void sr_scoreboard_mend(sr_scoreboard *s)
{
    s->shared->layout = SR_SCOREBOARD_LAYOUT;
    s->shared->size = s->size;
    s->shared->memfd = s->memfd;
    s->shared->edges = s->edges;
    s->shared->slots = s->slots;
}

/*
 * NULL with errno: not a scoreboard, or one of another layout. `ours`: to write as well, by the descriptor of
 * all of its processes.
 */
static sr_scoreboard *known(int memfd, bool ours)
{
    struct stat st;
    if (fstat(memfd, &st) != 0)
        return NULL;
    size_t size = (size_t)st.st_size;
    sr_board *shared =
        size >= sizeof *shared ? map(memfd, size, ours ? PROT_READ | PROT_WRITE : PROT_READ) : NULL;
    if (!shared && size >= sizeof *shared)
        return NULL;
    uint32_t slots = 0, edges = 0;
    if (shared) { /* read once: workers can change them at any time */
        slots = *(volatile uint32_t *)&shared->slots;
        edges = *(volatile uint32_t *)&shared->edges;
    }
    if (!shared || shared->layout != SR_SCOREBOARD_LAYOUT || shared->size != size ||
        (ours && shared->memfd != memfd) || slots > SR_SLOTS_MAX || edges > SR_EDGE_ROWS_MAX ||
        size != bytes_of(slots, edges)) {
        if (shared)
            munmap(shared, size);
        errno = EINVAL;
        return NULL;
    }
    fcntl(memfd, F_SETFD, FD_CLOEXEC);
    return handle(shared, slots, edges, memfd);
}

sr_scoreboard *sr_scoreboard_adopt(int memfd)
{
    return known(memfd, true);
}

sr_scoreboard *sr_scoreboard_look(int memfd)
{
    return known(memfd, false);
}

sr_scoreboard *sr_scoreboard_map(int memfd, uint32_t edge, sr_row **row)
{
    sr_scoreboard *s = known(memfd, true);
    if (s && edge >= s->edges) {
        munmap(s->shared, s->size);
        free(s);
        s = NULL;
        errno = EINVAL;
    }
    if (s)
        *row = &s->rows[s->slots + edge];
    return s;
}

void sr_scoreboard_free(sr_scoreboard *s)
{
    if (!s)
        return;
    close(s->memfd);
    munmap(s->shared, s->size);
    free(s);
}

/*
 * Whether the generation may have one more process: besides those configured, as many again (at least 8) may
 * be ending.
 */
static bool room(const sr_scoreboard *s, uint32_t generation)
{
    uint32_t workers = atomic_load_explicit(&s->shared->workers, memory_order_relaxed), taken = 0, vacant = 0;
    for (uint32_t i = 0; i < s->slots; i++)
        if (atomic_load_explicit(&s->rows[i].pid, memory_order_relaxed) == 0)
            vacant++;
        else
            taken += atomic_load_explicit(&s->rows[i].generation, memory_order_relaxed) == generation;
    return vacant && (!workers || taken < workers + (workers > 8 ? workers : 8));
}

uint64_t sr_scoreboard_waiting(const sr_scoreboard *s)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->edges; i++)
        sum += atomic_load_explicit(&s->rows[s->slots + i].waiting, memory_order_relaxed);
    return sum;
}

int32_t sr_scoreboard_claim(sr_scoreboard *s, uint32_t generation)
{
    if (!room(s, generation))
        return -1;
    for (uint32_t i = 0; i < s->slots; i++) {
        int32_t free_row = 0;
        if (!atomic_compare_exchange_strong(&s->rows[i].pid, &free_row, -getpid()))
            continue;
        atomic_store_explicit(&s->rows[i].generation, generation, memory_order_relaxed);
        /* the last request of the previous worker */
        atomic_store_explicit(&s->rows[i].line_len, 0, memory_order_relaxed);
        atomic_store_explicit(&s->rows[i].state, SR_WORKER_STARTING, memory_order_relaxed);
        return (int32_t)i;
    }
    return -1;
}

bool sr_scoreboard_occupy(sr_scoreboard *s, uint32_t slot, int32_t claimer)
{
    int32_t claimed = -claimer;
    return slot < s->slots && atomic_compare_exchange_strong(&s->rows[slot].pid, &claimed, getpid());
}

void sr_scoreboard_release(sr_scoreboard *s, uint32_t slot)
{
    sr_row *r = &s->rows[slot];
    uint64_t left = atomic_load_explicit(&r->connections, memory_order_relaxed);
    if (left) /* the process was killed */
        sr_counters_add(&r->counters.closed[SR_CLOSED_ERROR], left);
    bool unanswered = atomic_load_explicit(&r->began, memory_order_relaxed) &&
                      !atomic_load_explicit(&r->status, memory_order_relaxed);
    uint64_t waiting = atomic_load_explicit(&r->waiting, memory_order_relaxed);
    for (unsigned i = 0; slot >= s->slots && i < SR_LANES_MAX; i++)
        waiting += atomic_load_explicit(&s->shared->lanes[slot - s->slots][i].waiting, memory_order_relaxed);
    sr_counters_add(&r->counters.lost, unanswered + waiting);
    atomic_store_explicit(&r->state, SR_WORKER_FREE, memory_order_relaxed);
    atomic_store_explicit(&r->connections, 0, memory_order_relaxed);
    atomic_store_explicit(&r->idle, 0, memory_order_relaxed);
    atomic_store_explicit(&r->http2, 0, memory_order_relaxed);
    atomic_store_explicit(&r->streams, 0, memory_order_relaxed);
    for (unsigned i = 0; i < SR_HELD_KINDS; i++)
        atomic_store_explicit(&r->held[i], 0, memory_order_relaxed);
    atomic_store_explicit(&r->spooled, 0, memory_order_relaxed);
    atomic_store_explicit(&r->waiting, 0, memory_order_relaxed);
    atomic_store_explicit(&r->waiting_since, 0, memory_order_relaxed);
    atomic_store_explicit(&r->hangs_since, 0, memory_order_relaxed);
    atomic_store_explicit(&r->place_len, 0, memory_order_relaxed);
    sr_row_end(r);
    for (unsigned i = 0; slot >= s->slots && i < SR_LANES_MAX; i++) {
        sr_lane_row *lane = &s->shared->lanes[slot - s->slots][i];
        atomic_store_explicit(&lane->running, 0, memory_order_relaxed);
        atomic_store_explicit(&lane->waiting, 0, memory_order_relaxed);
        atomic_store_explicit(&lane->first, 0, memory_order_relaxed);
    }
    /* last of all: after this another worker may claim the row */
    atomic_store_explicit(&r->pid, 0, memory_order_release);
}

void sr_scoreboard_waited(sr_scoreboard *s, int64_t ns)
{
    uint64_t seen = atomic_load_explicit(&s->shared->longest_wait, memory_order_relaxed);
    while ((uint64_t)ns > seen &&
           !atomic_compare_exchange_weak_explicit(&s->shared->longest_wait, &seen, (uint64_t)ns,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

void sr_scoreboard_totals(const sr_scoreboard *s, sr_counters *sum)
{
    memset(sum, 0, sizeof *sum);
    for (uint32_t i = 0; i < s->slots + s->edges; i++)
        sr_counters_sum(sum, &s->rows[i].counters);
}

void sr_scoreboard_exited(sr_scoreboard *s, sr_exit why)
{
    atomic_fetch_add_explicit(&s->shared->exits[why], 1, memory_order_relaxed);
}

void sr_scoreboard_edge_exited(sr_scoreboard *s, sr_exit why)
{
    atomic_fetch_add_explicit(&s->shared->edge_exits[why], 1, memory_order_relaxed);
}

/* --- exceptions --- */

void sr_scoreboard_failed(sr_scoreboard *s, uint32_t slot, sr_bytes what, sr_bytes path, int64_t now)
{
    sr_exceptions_add(&s->exceptions[slot], what, path, now);
    atomic_store_explicit(&s->rows[slot].has_failed, 1, memory_order_relaxed);
}

void sr_scoreboard_exceptions(const sr_scoreboard *s, sr_exception_sums *sums)
{
    for (uint32_t i = 0; i < s->slots; i++)
        if (atomic_load_explicit(&s->rows[i].has_failed, memory_order_relaxed))
            sr_exceptions_sum(sums, &s->exceptions[i]);
}

/* --- notes --- */

bool sr_scoreboard_tell(sr_scoreboard *s, sr_note_of of, const char *text, size_t len)
{
    uint64_t words[SR_NOTE_MAX / sizeof(uint64_t)];
    sr_note *note = &s->shared->notes[of];
    if (len > sizeof words)
        return false;
    memcpy(words, text, len);
    memset((char *)words + len, 0, -len % sizeof *words);
    uint32_t sequence = sr_sequence_begin(&note->sequence);
    atomic_store_explicit(&note->len, (uint32_t)len, memory_order_relaxed);
    sr_sequence_write(note->bytes, words, len);
    sr_sequence_end(&note->sequence, sequence);
    return true;
}

size_t sr_scoreboard_told(const sr_scoreboard *s, sr_note_of of, char *out)
{
    uint64_t words[SR_NOTE_MAX / sizeof(uint64_t)];
    const sr_note *note = &s->shared->notes[of];
    for (int i = 0; i < SR_SEQUENCE_TRIES; i++) {
        uint32_t sequence = sr_sequence_look(&note->sequence);
        uint32_t len = atomic_load_explicit(&note->len, memory_order_relaxed);
        if (len > sizeof words)
            continue;
        sr_sequence_read(words, note->bytes, len);
        if (sr_sequence_holds(&note->sequence, sequence)) {
            memcpy(out, words, len);
            return len;
        }
    }
    return 0;
}

/* --- the request --- */

/* The first len bytes of method, space and target. */
static __attribute__((noinline)) const char *joined(uint64_t line[SR_LINE_MAX / sizeof(uint64_t)],
                                                    sr_bytes method, sr_bytes target, size_t len)
{
    char *to = (char *)line;
    size_t n = method.len < len ? method.len : len;
    line[(len - 1) / sizeof *line] = 0; /* the word that the line may leave incomplete */
    memcpy(to, method.at, n);
    if (n < len)
        to[n++] = ' ';
    memcpy(to + n, target.at, len - n);
    return to;
}

void sr_row_begin(sr_row *row, sr_bytes method, sr_bytes target, const sr_peer *peer, int64_t began)
{
    _Static_assert(sizeof(sr_peer) == 3 * sizeof(uint64_t), "whole words");
    uint64_t line[SR_LINE_MAX / sizeof(uint64_t)], from[3];
    const char *at = method.at;
    size_t len = method.len + 1 + target.len;
    if (len > SR_LINE_MAX)
        len = SR_LINE_MAX;
    if (target.at != at + method.len + 1)
        at = joined(line, method, target, len);
    memcpy(from, peer, sizeof from);
    uint32_t sequence = sr_sequence_begin(&row->sequence);
    atomic_store_explicit(&row->began, (uint64_t)began, memory_order_relaxed);
    atomic_store_explicit(&row->line_len, (uint32_t)len, memory_order_relaxed);
    atomic_store_explicit(&row->mark_len, 0, memory_order_relaxed);
    atomic_store_explicit(&row->status, 0, memory_order_relaxed);
    atomic_store_explicit(&row->peer[0], from[0], memory_order_relaxed);
    atomic_store_explicit(&row->peer[1], from[1], memory_order_relaxed);
    atomic_store_explicit(&row->peer[2], from[2], memory_order_relaxed);
    sr_sequence_write(row->line, at, len);
    sr_sequence_end(&row->sequence, sequence);
}

/* A single field needs no sequence lock. */
void sr_row_end(sr_row *row)
{
    atomic_store_explicit(&row->began, 0, memory_order_relaxed);
}

void sr_row_named(sr_row *row, sr_bytes id)
{
    char text[SR_REQUEST_ID_MAX] = {0};
    bool is = sr_traced_is_id(id);
    size_t len = is ? id.len : 0;
    if (is)
        memcpy(text, id.at, len);
    uint32_t sequence = sr_sequence_begin(&row->sequence);
    atomic_store_explicit(&row->named_number,
                          is ? atomic_load_explicit(&row->number, memory_order_relaxed) : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&row->named_len, (uint32_t)len, memory_order_relaxed);
    sr_sequence_write(row->named, text, len);
    sr_sequence_end(&row->sequence, sequence);
}

sr_bytes sr_row_id(const sr_row_request *request, char made[SR_REQUEST_ID_MADE])
{
    sr_bytes named = sr_bytes_of((const char *)request->named, request->named_len);
    if (sr_traced_is_id(named)) /* workers can write this memory */
        return named;
    return request->number ? sr_traced_make(made, request->nonce, request->number) : sr_bytes_of("", 0);
}

void sr_row_mark(sr_row *row, const char *at, size_t len)
{
    char text[SR_MARK_MAX + 1] = {0};
    bool cut = len > SR_MARK_MAX;
    if (cut)
        len = SR_MARK_MAX;
    while (cut && len && ((unsigned char)at[len] & 0xc0) == 0x80) /* the other bytes of the character */
        len--;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)at[i];
        bool order = c < 0x20 || c == 0x7f;
        if (c == 0xc2 && i + 1 < len && (unsigned char)at[i + 1] < 0xa0) { /* U+0080 to U+009F */
            text[i++] = ' ';
            order = true;
        }
        text[i] = order ? ' ' : (char)c;
    }
    uint32_t sequence = sr_sequence_begin(&row->sequence);
    atomic_store_explicit(&row->mark_len, (uint32_t)len, memory_order_relaxed);
    sr_sequence_write(row->mark, text, len);
    sr_sequence_end(&row->sequence, sequence);
}

/* --- the place --- */

void sr_row_place_ask(sr_row *row)
{
    atomic_store_explicit(&row->place_len, 0, memory_order_relaxed);
}

void sr_row_place_tell(sr_row *row, const char *file, uint32_t line)
{
    uint64_t words[SR_PLACE_MAX / sizeof(uint64_t)] = {0};
    size_t len = strlen(file), kept = len < SR_PLACE_MAX ? len : SR_PLACE_MAX;
    memcpy(words, file + len - kept, kept);
    atomic_store_explicit(&row->place_line, line, memory_order_relaxed);
    sr_sequence_write(row->place, words, kept);
    atomic_store_explicit(&row->place_len, (uint32_t)kept, memory_order_release);
}

size_t sr_row_place(const sr_row *row, char *file, uint32_t *line)
{
    uint64_t words[SR_PLACE_MAX / sizeof(uint64_t)];
    uint32_t len = atomic_load_explicit(&row->place_len, memory_order_acquire);
    if (len > SR_PLACE_MAX) /* workers can write this memory */
        return 0;
    sr_sequence_read(words, row->place, len);
    memcpy(file, words, len);
    *line = atomic_load_explicit(&row->place_line, memory_order_relaxed);
    return len;
}

/* False: the row was being written. */
static bool read_once(const sr_row *row, sr_row_request *out)
{
    uint32_t sequence = sr_sequence_look(&row->sequence);
    out->nonce = atomic_load_explicit(&row->nonce, memory_order_acquire);
    out->number = atomic_load_explicit(&row->number, memory_order_acquire);
    out->began = atomic_load_explicit(&row->began, memory_order_relaxed);
    out->line_len = atomic_load_explicit(&row->line_len, memory_order_relaxed);
    out->status = atomic_load_explicit(&row->status, memory_order_relaxed);
    out->mark_len = out->began ? atomic_load_explicit(&row->mark_len, memory_order_relaxed) : 0;
    out->named_len = out->number == atomic_load_explicit(&row->named_number, memory_order_relaxed)
                         ? atomic_load_explicit(&row->named_len, memory_order_relaxed)
                         : 0;
    if (out->line_len > SR_LINE_MAX || out->mark_len > SR_MARK_MAX || out->named_len > SR_REQUEST_ID_MAX)
        return false;
    sr_sequence_read(&out->peer, row->peer, sizeof out->peer);
    sr_sequence_read(out->line, row->line, out->line_len);
    sr_sequence_read(out->mark, row->mark, out->mark_len);
    sr_sequence_read(out->named, row->named, out->named_len);
    return sr_sequence_holds(&row->sequence, sequence);
}

bool sr_row_read(const sr_row *row, sr_row_request *out)
{
    for (int i = 0; i < SR_SEQUENCE_TRIES; i++)
        if (read_once(row, out))
            return true;
    return false;
}

size_t sr_row_text(const sr_row_request *request, char *out, size_t cap)
{
    const unsigned char *line = (const unsigned char *)request->line;
    size_t used = 0;
    for (size_t i = 0; i < request->line_len; i++) {
        unsigned char c = line[i];
        bool plain = c >= 0x20 && c <= 0x7e;
        if (cap - used < (plain ? 1 : 4))
            break;
        if (plain) {
            out[used++] = (char)c;
            continue;
        }
        const char escape[4] = {'\\', 'x', "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};
        memcpy(out + used, escape, sizeof escape);
        used += sizeof escape;
    }
    return used;
}

const char *sr_worker_state_name(uint32_t state)
{
    static const char *const names[] = {"free", "starting", "idle", "busy", "draining"};
    return state < sizeof names / sizeof *names ? names[state] : "unknown";
}

const char *sr_exit_name(sr_exit why)
{
    static const char *const names[SR_EXIT_CAUSES] = {
        [SR_EXIT_STOP] = "stop",
        [SR_EXIT_FEWER] = "fewer-workers",
        [SR_EXIT_REQUESTS] = "max-requests",
        [SR_EXIT_RSS] = "max-rss",
        [SR_EXIT_LIFETIME] = "max-lifetime",
        [SR_EXIT_HARAKIRI] = "harakiri",
        [SR_EXIT_TIMEOUT] = "request-timeout",
        [SR_EXIT_LOAD] = "load-timeout",
        [SR_EXIT_EXIT] = "exit",
        [SR_EXIT_CRASH] = "crash",
        [SR_EXIT_OOM] = "out-of-memory",
        [SR_EXIT_KILLED] = "killed",
        [SR_EXIT_LATE] = "graceful-timeout",
    };
    return names[why];
}
