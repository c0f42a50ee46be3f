#include "format.h"

#include "../base/fnv.h"
#include "program.h"
#include "text.h"
#include "time.h"

sr_logitem *sr_logformat_items(const sr_logformat *f, size_t *count)
{
    *count = f->count;
    return f->items;
}

bool sr_logformat_has(const sr_logformat *f, sr_logkind kind)
{
    return f->kinds >> kind & 1;
}

uint64_t sr_logformat_id(const sr_logformat *f)
{
    uint64_t sum = SR_FNV_START;
    for (size_t i = 0; i < f->count; i++) {
        const char kind = (char)f->items[i].kind;
        sum = sr_fnv(sr_fnv(sum, &kind, 1), f->items[i].name.at, f->items[i].name.len);
    }
    return sum;
}

static bool add(sr_buffer *out, sr_bytes s)
{
    return sr_buffer_add(out, s.at, s.len);
}

static inline bool add_text(const sr_logitem *item, sr_buffer *out)
{
    if (item->name.len > SR_LOG_PAD)
        return add(out, item->name);
    if (!sr_buffer_reserve(out, SR_LOG_PAD))
        return false;
    memcpy(out->data + out->end, item->name.at, SR_LOG_PAD);
    out->end += item->name.len;
    return true;
}

/* An empty value is written as "-", so that the column stays, except for items that may be empty. */
static bool may_be_empty(sr_logkind kind)
{
    return kind == SR_LOG_METHOD || kind == SR_LOG_URI || kind == SR_LOG_PROTOCOL || kind == SR_LOG_PATH ||
           kind == SR_LOG_QUERY || kind == SR_LOG_REQUEST_LINE || kind == SR_LOG_PORT;
}

static bool add_value(const sr_logformat *f, const sr_logitem *item, sr_bytes value, sr_buffer *out)
{
    if (f->json)
        return sr_logtext_json(out, value);
    if (item->kind == SR_LOG_QUERY)
        return !value.len || (sr_buffer_add(out, "?", 1) && sr_logtext_add(out, value));
    if (!value.at || (!value.len && !may_be_empty(item->kind)))
        return sr_buffer_add(out, "-", 1);
    return sr_logtext_add(out, value);
}

static bool add_time(const sr_logformat *f, const sr_logitem *item, int64_t wall, sr_buffer *out)
{
    sr_bytes text = sr_logtime_text(item->time, wall);
    if (f->json)
        return sr_logtext_json(out, text);
    if (!text.at)
        return sr_buffer_add(out, "-", 1);
    return sr_buffer_add(out, "[", 1) && add(out, text) && sr_buffer_add(out, "]", 1);
}

static bool add_early(const sr_logformat *f, const sr_logitem *item, const sr_logsource *source,
                      sr_buffer *out)
{
    switch (item->kind) {
    case SR_LOG_TEXT:
        return add_text(item, out);
    case SR_LOG_TIME:
        return add_time(f, item, source->wall, out);
    case SR_LOG_PID:
        return sr_logtext_number(out, (uint64_t)source->pid);
    default:
        return add_value(f, item, source->get(source->ctx, item), out);
    }
}

static bool add_unknown(const sr_logformat *f, sr_buffer *out)
{
    return f->json ? sr_buffer_add(out, "null", 4) : sr_buffer_add(out, "-", 1);
}

static bool add_word(const sr_logformat *f, const char *word, sr_buffer *out)
{
    size_t len = strlen(word);
    return f->json ? sr_logtext_json(out, sr_bytes_of(word, len)) : sr_buffer_add(out, word, len);
}

static bool add_duration(const sr_logformat *f, int64_t ns, int64_t unit, sr_buffer *out)
{
    return ns < 0 ? add_unknown(f, out) : sr_logtext_number(out, (uint64_t)(ns / unit));
}

static bool add_count(const sr_logformat *f, uint64_t n, uint64_t unknown, sr_buffer *out)
{
    return n == unknown ? add_unknown(f, out) : sr_logtext_number(out, n);
}

static bool add_late(const sr_logformat *f, const sr_logitem *item, const sr_logoutcome *outcome,
                     sr_buffer *out)
{
    switch (item->kind) {
    case SR_LOG_STATUS:
        return outcome->status > 0 ? sr_logtext_number(out, (uint64_t)outcome->status) : add_unknown(f, out);
    case SR_LOG_SIZE:
        return add_count(f, outcome->body_bytes, SR_LOG_BYTES_UNKNOWN, out);
    case SR_LOG_BODY_BYTES:
        return sr_logtext_number(out, outcome->body_bytes == SR_LOG_BYTES_UNKNOWN ? 0 : outcome->body_bytes);
    case SR_LOG_BYTES:
        return add_count(f, outcome->bytes, SR_LOG_BYTES_UNKNOWN, out);
    case SR_LOG_DURATION:
        return add_duration(f, outcome->total_ns, item->unit, out);
    case SR_LOG_QUEUE:
        return add_duration(f, outcome->queue_ns, item->unit, out);
    case SR_LOG_APP:
        return add_duration(f, outcome->app_ns, item->unit, out);
    case SR_LOG_HELD:
        return add_duration(f, outcome->held_ns, item->unit, out);
    case SR_LOG_MESSAGES:
        return outcome->held_ns < 0 ? add_unknown(f, out) : sr_logtext_number(out, outcome->messages);
    case SR_LOG_CONNECTION:
        return add_word(f, outcome->aborted ? "X" : outcome->kept ? "+" : "-", out);
    case SR_LOG_CUT_BY:
        if (!outcome->aborted)
            return add_unknown(f, out);
        return add_word(f, outcome->broken ? "server" : "client", out);
    case SR_LOG_STREAM:
        return outcome->stream ? sr_logtext_number(out, outcome->stream) : add_unknown(f, out);
    case SR_LOG_NTH:
        return outcome->nth == SR_LOG_NTH_UNKNOWN ? add_unknown(f, out)
                                                  : sr_logtext_number(out, outcome->nth);
    default:
        return true;
    }
}

static bool is_late(const sr_logitem *item)
{
    return item->kind >= SR_LOG_STATUS;
}

/* Removes everything that was added if something could not be added. */
static bool settle(sr_buffer *out, size_t len, bool done)
{
    if (!done)
        out->end = out->from + len;
    return done;
}

/*
 * The early items of a line: one piece for each run of them, each after its length. Late items go between the
 * pieces; only the program knows where.
 */
typedef uint32_t piece_len;

/* Adds the items from *i up to the next late one as one piece. */
static bool add_piece(const sr_logformat *f, const sr_logsource *source, size_t *i, sr_buffer *pieces)
{
    piece_len len = 0;
    size_t at = sr_buffer_len(pieces);
    if (!sr_buffer_add(pieces, &len, sizeof len))
        return false;
    for (; *i < f->count && !is_late(&f->items[*i]); ++*i)
        if (!add_early(f, &f->items[*i], source, pieces))
            return false;
    size_t all = sr_buffer_len(pieces) - at - sizeof len;
    if (all > UINT32_MAX)
        return false;
    len = (piece_len)all;
    memcpy(sr_buffer_at(pieces) + at, &len, sizeof len);
    return true;
}

bool sr_logformat_early(sr_logformat *f, const sr_logsource *source, sr_buffer *pieces)
{
    size_t before = sr_buffer_len(pieces), i = 0;
    bool done = true;
    while (done && i < f->count) {
        if (is_late(&f->items[i]))
            i++;
        else
            done = add_piece(f, source, &i, pieces);
    }
    return settle(pieces, before, done);
}

/* Takes the next piece. If it is malformed, returns no bytes. */
static sr_bytes take_piece(sr_bytes *pieces)
{
    piece_len len = 0;
    if (pieces->len >= sizeof len)
        memcpy(&len, pieces->at, sizeof len);
    if (pieces->len < sizeof len || pieces->len - sizeof len < len)
        return *pieces = sr_bytes_of(NULL, 0);
    sr_bytes piece = sr_bytes_of(pieces->at + sizeof len, len);
    *pieces = sr_bytes_of(piece.at + len, pieces->len - sizeof len - len);
    return piece;
}

bool sr_logformat_late(const sr_logformat *f, sr_bytes pieces, const sr_logoutcome *outcome, sr_buffer *out)
{
    size_t before = sr_buffer_len(out);
    bool done = true, fresh = true; /* fresh: the piece of this run of early items was not written yet */
    for (size_t i = 0; done && i < f->count; i++) {
        bool late = is_late(&f->items[i]);
        if (late)
            done = add_late(f, &f->items[i], outcome, out);
        else if (fresh)
            done = add(out, take_piece(&pieces));
        fresh = late;
    }
    return settle(out, before, done && sr_buffer_add(out, "\n", 1));
}

bool sr_logformat_line(sr_logformat *f, const sr_logsource *source, const sr_logoutcome *outcome,
                       sr_buffer *out)
{
    size_t before = sr_buffer_len(out);
    bool done = true;
    for (size_t i = 0; done && i < f->count; i++) {
        const sr_logitem *item = &f->items[i];
        if (item->kind == SR_LOG_TEXT)
            done = add_text(item, out);
        else
            done = is_late(item) ? add_late(f, item, outcome, out) : add_early(f, item, source, out);
    }
    return settle(out, before, done && sr_buffer_add(out, "\n", 1));
}
