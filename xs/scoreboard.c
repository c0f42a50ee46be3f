/* scoreboard: the contents of Sirius::Scoreboard as Perl values, and the mark that an application sets. */
#include "scoreboard.h"

#include "sirius.h"
#include "turn.h"

static UV count(const _Atomic uint64_t *n)
{
    return (UV)atomic_load_explicit(n, memory_order_relaxed);
}

static NV seconds(uint64_t ns)
{
    return (NV)ns / 1e9;
}

/* --- the board of this process --- */

static SV *board; /* the object's referent; not counted, DESTROY clears it */
#ifdef MULTIPLICITY
static PerlInterpreter *owner; /* of board: threads of the application do not have the object */
#endif

SV *sirius_board_new(pTHX_ sr_scoreboard *s)
{
    SV *self = sv_setref_pv(newSV(0), "Sirius::Scoreboard", s);
    board = SvRV(self);
#ifdef MULTIPLICITY
    owner = aTHX;
#endif
    return self;
}

SV *sirius_board_seen(pTHX_ sr_scoreboard *s)
{
    return sv_setref_pv(newSV(0), "Sirius::Scoreboard", s);
}

SV *sirius_board_current(pTHX)
{
#ifdef MULTIPLICITY
    if (owner != aTHX)
        return newSV(0);
#endif
    return board ? newRV_inc(board) : newSV(0);
}

void sirius_board_free(pTHX_ SV *self, sr_scoreboard *s)
{
    PERL_UNUSED_CONTEXT;
    if (SvRV(self) == board)
        board = NULL;
    sr_scoreboard_free(s);
}

/* --- rows --- */

AV *sirius_board_request(pTHX_ const sr_row *r, UV number)
{
    sr_row_request request;
    char line[4 * SR_LINE_MAX];
    IV pid = atomic_load_explicit(&r->pid, memory_order_relaxed);
    if (pid <= 0 || !sr_row_read(r, &request) || !request.began)
        return NULL;
    AV *av = newAV();
    av_push(av, newSVuv(number));
    av_push(av, newSViv(pid));
    av_push(av, newSVnv(seconds(request.began)));
    av_push(av, newSVpvn(line, sr_row_text(&request, line, sizeof line)));
    return av;
}

/* "127.0.0.1:5555", "[::1]:5555", "unix" */
static SV *client(pTHX_ const sr_peer *peer)
{
    char text[SR_PEER_TEXT_MAX];
    if (!peer->family)
        return newSVpvs("unix");
    int len = (int)sr_peer_text(peer, text);
    return newSVpvf(peer->family == 6 ? "[%.*s]:%d" : "%.*s:%d", len, text, (int)peer->port);
}

HV *sirius_board_row(pTHX_ const sr_row *r)
{
    sr_row_request request;
    char line[4 * SR_LINE_MAX];
    bool whole = sr_row_read(r, &request), begun = whole && request.began;
    bool ended = whole && !begun && request.line_len; /* the last request is shown instead */
    char made[SR_REQUEST_ID_MADE];
    sr_bytes id = begun ? sr_row_id(&request, made) : sr_bytes_of("", 0);
    SV *mark = newSVpvn((const char *)request.mark, begun ? request.mark_len : 0);
    HV *hv = (HV *)sv_2mortal((SV *)newHV());
    sv_utf8_decode(mark);
    (void)hv_stores(hv, "state",
                    newSVpv(sr_worker_state_name(atomic_load_explicit(&r->state, memory_order_relaxed)), 0));
    (void)hv_stores(hv, "pid", newSViv(atomic_load_explicit(&r->pid, memory_order_relaxed)));
    (void)hv_stores(hv, "generation", newSVuv(atomic_load_explicit(&r->generation, memory_order_relaxed)));
    (void)hv_stores(hv, "requests", newSVuv(count(&r->counters.requests)));
    (void)hv_stores(hv, "since",
                    newSVnv(seconds((uint64_t)atomic_load_explicit(&r->since, memory_order_relaxed))));
    (void)hv_stores(hv, "began", newSVnv(begun ? seconds(request.began) : 0));
    (void)hv_stores(hv, "line", newSVpvn(line, begun ? sr_row_text(&request, line, sizeof line) : 0));
    (void)hv_stores(hv, "client", begun ? client(aTHX_ & request.peer) : newSVpvs(""));
    (void)hv_stores(hv, "id", newSVpvn(id.at, id.len));
    (void)hv_stores(hv, "mark", mark);
    (void)hv_stores(hv, "last_line", newSVpvn(line, ended ? sr_row_text(&request, line, sizeof line) : 0));
    (void)hv_stores(hv, "last_client", ended ? client(aTHX_ & request.peer) : newSVpvs(""));
    (void)hv_stores(hv, "last_status", newSVuv(ended ? request.status : 0));
    return hv;
}

HV *sirius_board_edge(pTHX_ const sr_row *r)
{
    HV *hv = (HV *)sv_2mortal((SV *)newHV());
    uint64_t since = (uint64_t)atomic_load_explicit(&r->waiting_since, memory_order_relaxed);
    (void)hv_stores(hv, "state",
                    newSVpv(sr_worker_state_name(atomic_load_explicit(&r->state, memory_order_relaxed)), 0));
    (void)hv_stores(hv, "pid", newSViv(atomic_load_explicit(&r->pid, memory_order_relaxed)));
    (void)hv_stores(hv, "started",
                    newSVnv(seconds((uint64_t)atomic_load_explicit(&r->started, memory_order_relaxed))));
    (void)hv_stores(hv, "accepted", newSVuv(count(&r->counters.accepted)));
    (void)hv_stores(hv, "bytes", newSVuv(count(&r->counters.bytes)));
    (void)hv_stores(hv, "connections", newSVuv(count(&r->connections)));
    (void)hv_stores(hv, "idle", newSVuv(count(&r->idle)));
    (void)hv_stores(hv, "http2", newSVuv(count(&r->http2)));
    (void)hv_stores(hv, "streams", newSVuv(count(&r->streams)));
    static const char *const kinds[] = {"stream", "response", "websocket"};
    HV *held = newHV();
    for (unsigned i = 0; i < SR_HELD_KINDS; i++)
        (void)hv_store(held, kinds[i], (I32)strlen(kinds[i]), newSVuv(count(&r->held[i])), 0);
    (void)hv_stores(hv, "held", newRV_noinc((SV *)held));
    (void)hv_stores(hv, "spooled", newSVuv(count(&r->spooled)));
    (void)hv_stores(hv, "waiting", newSVuv(count(&r->waiting)));
    (void)hv_stores(hv, "waiting_since", newSVnv(seconds(since)));
    (void)hv_stores(hv, "hangs_since",
                    newSVnv(seconds((uint64_t)atomic_load_explicit(&r->hangs_since, memory_order_relaxed))));
    return hv;
}

/* --- totals --- */

static void store(pTHX_ HV *hv, const char *name, const _Atomic uint64_t *n)
{
    (void)hv_store(hv, name, (I32)strlen(name), newSVuv(count(n)), 0);
}

static SV *closed(pTHX_ const sr_counters *t)
{
    HV *hv = newHV();
    for (unsigned i = 0; i < SR_CLOSED_REASONS; i++)
        store(aTHX_ hv, sr_closed_name((sr_closed)i), &t->closed[i]);
    return newRV_noinc((SV *)hv);
}

/* Requests that the server has refused, by reason; or all of them. */
static SV *refused(pTHX_ const sr_counters *t, bool by_reason)
{
    HV *hv = by_reason ? newHV() : NULL;
    UV all = 0;
    for (unsigned i = SR_REFUSED_NOT + 1; i < SR_REFUSALS; i++) {
        UV n = count(&t->refused[i]);
        const char *name = sr_refusal_name((sr_refusal)i);
        all += n;
        if (hv)
            (void)hv_store(hv, name, (I32)strlen(name), newSVuv(n), 0);
    }
    return hv ? newRV_noinc((SV *)hv) : newSVuv(all);
}

static SV *failed(pTHX_ const sr_counters *t)
{
    HV *hv = newHV();
    for (unsigned i = 0; i < SR_FAILURES; i++)
        store(aTHX_ hv, sr_failure_name((sr_failure)i), &t->failed[i]);
    return newRV_noinc((SV *)hv);
}

static SV *floods(pTHX_ const sr_counters *t)
{
    HV *hv = newHV();
    for (unsigned i = 0; i < SR_FLOODS; i++)
        store(aTHX_ hv, sr_flood_name((sr_flood)i), &t->floods[i]);
    return newRV_noinc((SV *)hv);
}

static SV *responses(pTHX_ const sr_counters *t)
{
    HV *hv = newHV();
    for (int i = 0; i < 5; i++) {
        char digit = (char)('1' + i);
        (void)hv_store(hv, &digit, 1, newSVuv(count(&t->responses[i])), 0);
    }
    return newRV_noinc((SV *)hv);
}

static SV *histogram(pTHX_ const sr_histogram *h)
{
    HV *hv = newHV();
    AV *buckets = newAV();
    UV sum = 0;
    for (unsigned i = 0; i + 1 < SR_HISTOGRAM_BUCKETS; i++) {
        AV *bucket = newAV();
        av_push(bucket, newSVnv(seconds(sr_histogram_from(i + 1))));
        av_push(bucket, newSVuv(sum += count(&h->buckets[i])));
        av_push(buckets, newRV_noinc((SV *)bucket));
    }
    (void)hv_stores(hv, "count", newSVuv((UV)sr_histogram_count(h)));
    (void)hv_stores(hv, "sum", newSVnv(seconds(count(&h->sum))));
    (void)hv_stores(hv, "buckets", newRV_noinc((SV *)buckets));
    (void)hv_stores(hv, "p50", newSVnv(sr_histogram_quantile(h, 0.5) / 1e9));
    (void)hv_stores(hv, "p90", newSVnv(sr_histogram_quantile(h, 0.9) / 1e9));
    (void)hv_stores(hv, "p99", newSVnv(sr_histogram_quantile(h, 0.99) / 1e9));
    (void)hv_stores(hv, "p999", newSVnv(sr_histogram_quantile(h, 0.999) / 1e9));
    return newRV_noinc((SV *)hv);
}

/* Time limits by name. Those that close a connection are counted as the reason of that close. */
static SV *limits(pTHX_ const sr_counters *t)
{
    HV *hv = newHV();
    (void)hv_stores(hv, "header", newSVuv(count(&t->closed[SR_CLOSED_HEAD])));
    (void)hv_stores(hv, "body", newSVuv(count(&t->closed[SR_CLOSED_BODY])));
    (void)hv_stores(hv, "keepalive", newSVuv(count(&t->closed[SR_CLOSED_IDLE])));
    for (unsigned i = 0; i < SR_LIMITS; i++)
        store(aTHX_ hv, sr_limit_name((sr_limit)i), &t->limited[i]);
    UV write = count(&t->closed[SR_CLOSED_WRITE]) + count(&t->limited[SR_LIMIT_WRITE]);
    (void)hv_stores(hv, "write", newSVuv(write));
    return newRV_noinc((SV *)hv);
}

static SV *exits(pTHX_ const sr_scoreboard *s)
{
    HV *hv = newHV();
    for (unsigned i = 0; i < SR_EXIT_CAUSES; i++)
        store(aTHX_ hv, sr_exit_name((sr_exit)i), &s->shared->exits[i]);
    return newRV_noinc((SV *)hv);
}

/* The causes by which an edge can end. */
static SV *edge_exits(pTHX_ const sr_scoreboard *s)
{
    static const sr_exit causes[] = {SR_EXIT_STOP, SR_EXIT_EXIT,   SR_EXIT_CRASH,
                                     SR_EXIT_OOM,  SR_EXIT_KILLED, SR_EXIT_LATE};
    HV *hv = newHV();
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
        store(aTHX_ hv, sr_exit_name(causes[i]), &s->shared->edge_exits[causes[i]]);
    return newRV_noinc((SV *)hv);
}

bool sirius_board_exited(sr_scoreboard *s, const char *name, bool edge)
{
    for (unsigned i = 0; i < SR_EXIT_CAUSES; i++)
        if (strcmp(name, sr_exit_name((sr_exit)i)) == 0) {
            if (edge)
                sr_scoreboard_edge_exited(s, (sr_exit)i);
            else
                sr_scoreboard_exited(s, (sr_exit)i);
            return true;
        }
    return false;
}

/* What the server allows, beside what there is; times in seconds, 0: there is no limit */
static SV *allowed(pTHX_ const sr_board *b)
{
    HV *hv = newHV();
    (void)hv_stores(hv, "max_connections", newSVuv(count(&b->max_connections)));
    (void)hv_stores(hv, "max_queue", newSVuv(count(&b->max_queue)));
    (void)hv_stores(hv, "queue_timeout", newSVnv(seconds(count(&b->queue_ns))));
    (void)hv_stores(hv, "request_timeout", newSVnv(seconds(count(&b->request_ns))));
    return newRV_noinc((SV *)hv);
}

HV *sirius_board_totals(pTHX_ const sr_scoreboard *s)
{
    sr_counters t;
    HV *hv = (HV *)sv_2mortal((SV *)newHV());
    sr_scoreboard_totals(s, &t);
    (void)hv_stores(hv, "requests", newSVuv(count(&t.requests)));
    (void)hv_stores(hv, "responses", responses(aTHX_ & t));
    (void)hv_stores(hv, "bytes", newSVuv(count(&t.bytes)));
    (void)hv_stores(hv, "aborted", newSVuv(count(&t.aborted)));
    (void)hv_stores(hv, "refused", refused(aTHX_ & t, false));
    (void)hv_stores(hv, "refusals", refused(aTHX_ & t, true));
    (void)hv_stores(hv, "files", newSVuv(count(&t.files)));
    (void)hv_stores(hv, "files_bytes", newSVuv(count(&t.files_bytes)));
    (void)hv_stores(hv, "files_unchanged", newSVuv(count(&t.files_unchanged)));
    (void)hv_stores(hv, "files_missing", newSVuv(count(&t.files_missing)));
    (void)hv_stores(hv, "accepted", newSVuv(count(&t.accepted)));
    (void)hv_stores(hv, "paused", newSVuv(count(&t.paused)));
    (void)hv_stores(hv, "http2", newSVuv(count(&t.http2)));
    (void)hv_stores(hv, "goaways", newSVuv(count(&t.goaways)));
    (void)hv_stores(hv, "streams", newSVuv(count(&t.streams)));
    (void)hv_stores(hv, "streams_cancelled", newSVuv(count(&t.streams_cancelled)));
    (void)hv_stores(hv, "streams_reset", newSVuv(count(&t.streams_reset)));
    (void)hv_stores(hv, "published", newSVuv(count(&t.published)));
    (void)hv_stores(hv, "unpublished", newSVuv(count(&t.unpublished)));
    (void)hv_stores(hv, "delivered", newSVuv(count(&t.delivered)));
    (void)hv_stores(hv, "hold_slow", newSVuv(count(&t.hold_slow)));
    (void)hv_stores(hv, "hold_gaps", newSVuv(count(&t.hold_gaps)));
    (void)hv_stores(hv, "handshakes", newSVuv(count(&t.handshakes)));
    (void)hv_stores(hv, "handshakes_failed", failed(aTHX_ & t));
    (void)hv_stores(hv, "closed", closed(aTHX_ & t));
    (void)hv_stores(hv, "floods", floods(aTHX_ & t));
    (void)hv_stores(hv, "given", newSVuv(count(&t.given)));
    (void)hv_stores(hv, "taken", newSVuv(count(&t.taken)));
    (void)hv_stores(hv, "lost", newSVuv(count(&t.lost)));
    (void)hv_stores(hv, "log_lost", newSVuv(count(&t.log_lost)));
    (void)hv_stores(hv, "slow", newSVuv(count(&t.slow)));
    (void)hv_stores(hv, "limits", limits(aTHX_ & t));
    (void)hv_stores(hv, "allowed", allowed(aTHX_ s->shared));
    (void)hv_stores(hv, "exits", exits(aTHX_ s));
    if (s->edges)
        (void)hv_stores(hv, "edge_exits", edge_exits(aTHX_ s));
    (void)hv_stores(hv, "latency", histogram(aTHX_ & t.latency));
    (void)hv_stores(hv, "queue", histogram(aTHX_ & t.queue));
    return hv;
}

/* --- lanes --- */

typedef struct lane_text {
    uint64_t words[(SR_LANE_TEXT_MAX + 1) / sizeof(uint64_t)];
} lane_text;

static lane_text text_of(const sr_lane_row *lane)
{
    lane_text t;
    for (size_t i = 0; i < sizeof t.words / sizeof t.words[0]; i++)
        t.words[i] = atomic_load_explicit(&lane->text[i], memory_order_relaxed);
    ((char *)t.words)[SR_LANE_TEXT_MAX] = '\0'; /* workers can write here too */
    return t;
}

static void sum_up(sr_lane_row *sum, const sr_lane_row *lane)
{
    int64_t first = atomic_load_explicit(&lane->first, memory_order_relaxed);
    int64_t seen = atomic_load_explicit(&sum->first, memory_order_relaxed);
    if (first && (!seen || first < seen))
        atomic_store_explicit(&sum->first, first, memory_order_relaxed);
    sr_counters_add(&sum->running, count(&lane->running));
    sr_counters_add(&sum->waiting, count(&lane->waiting));
    sr_counters_add(&sum->requests, count(&lane->requests));
    sr_counters_add(&sum->waited_ns, count(&lane->waited_ns));
    sr_counters_add(&sum->full, count(&lane->full));
    sr_counters_add(&sum->late, count(&lane->late));
}

static HV *lane_hash(pTHX_ const sr_lane_row *lane, const sr_lane_row *sum)
{
    HV *hv = newHV();
    lane_text t = text_of(lane);
    (void)hv_stores(hv, "name", newSVpv((const char *)t.words, 0));
    (void)hv_stores(hv, "limit", newSVuv(count(&lane->limit)));
    (void)hv_stores(hv, "queue_limit", newSVuv(count(&lane->queue_limit)));
    (void)hv_stores(hv, "timeout", newSVnv(seconds(count(&lane->timeout_ns))));
    (void)hv_stores(hv, "running", newSVuv(count(&sum->running)));
    (void)hv_stores(hv, "waiting", newSVuv(count(&sum->waiting)));
    (void)hv_stores(hv, "waiting_since",
                    newSVnv(seconds((uint64_t)atomic_load_explicit(&sum->first, memory_order_relaxed))));
    (void)hv_stores(hv, "requests", newSVuv(count(&sum->requests)));
    (void)hv_stores(hv, "waited", newSVnv(seconds(count(&sum->waited_ns))));
    (void)hv_stores(hv, "refused", newSVuv(count(&sum->full)));
    (void)hv_stores(hv, "timed_out", newSVuv(count(&sum->late)));
    return hv;
}

/* When the edge of this row was started; 0: it does not run. */
static int64_t started(const sr_scoreboard *s, uint32_t i)
{
    const sr_row *edge = &s->rows[s->slots + i / SR_LANES_MAX];
    return atomic_load_explicit(&edge->pid, memory_order_relaxed) > 0
               ? atomic_load_explicit(&edge->started, memory_order_relaxed)
               : 0;
}

/* Lanes of edges that run, with the limits of the edge that was started last. */
AV *sirius_board_lanes(pTHX_ const sr_scoreboard *s)
{
    AV *all = (AV *)sv_2mortal((SV *)newAV());
    uint32_t n = s->edges * SR_LANES_MAX;
    const sr_lane_row *rows = &s->shared->lanes[0][0];
    for (uint32_t i = 0; i < n; i++) {
        lane_text t = text_of(&rows[i]);
        sr_lane_row sum = {0};
        uint32_t newest = i;
        bool first = *(char *)t.words && started(s, i);
        for (uint32_t j = 0; first && j < n; j++) {
            lane_text other = text_of(&rows[j]);
            if (memcmp(&t, &other, sizeof t) != 0)
                continue;
            first = j >= i || !started(s, j); /* otherwise it is in the list */
            newest = started(s, j) > started(s, newest) ? j : newest;
            sum_up(&sum, &rows[j]);
        }
        if (first)
            av_push(all, newRV_noinc((SV *)lane_hash(aTHX_ & rows[newest], &sum)));
    }
    return all;
}

HV *sirius_board_troubles(pTHX_ const sr_scoreboard *s)
{
    sr_counters t;
    HV *hv = (HV *)sv_2mortal((SV *)newHV());
    sr_scoreboard_totals(s, &t);
    for (unsigned i = 0; i < SR_TROUBLES; i++) {
        const char *name = sr_trouble_name((sr_trouble)i);
        AV *entry = newAV();
        av_push(entry, newSVuv(count(&t.trouble[i])));
        av_push(entry, newSViv(atomic_load_explicit(&s->shared->trouble_errno[i], memory_order_relaxed)));
        (void)hv_store(hv, name, (I32)strlen(name), newRV_noinc((SV *)entry), 0);
    }
    return hv;
}

/* --- the mark --- */

void sirius_mark(pTHX_ SV *text)
{
    sirius *s = sirius_own(aTHX);
    STRLEN len = 0;
    const char *at = "";
    if (!s || sirius_forked(s))
        return;
    SV *copy = sv_2mortal(newSVsv(text));
    if (SvOK(copy))
        at = SvPVutf8(copy, len);
    if (sirius_own(aTHX) == s && !sirius_forked(s)) /* an overload is code of the application */
        sr_row_mark(s->row.of, at, len);
}
