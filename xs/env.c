/*
 * env: makes the PSGI environment of one request, in a hash from envpool.
 *
 * Keys are shared strings that are made once. Keys of header fields are cached by the raw name, so that a
 * field costs one comparison instead of an upper-casing, a hash and a look-up. The cache knows nothing of the
 * other fields of a request: whether two fields have one key is decided by comparing the keys (see key_list).
 */
#include "env.h"

#include "envpool.h"
#include "input.h"
#include "lazy.h"
#include "sirius.h"

#include "base/decimal.h"
#include "http/target.h"
#include "http/token.h"
#include "share/facts.h"

#define KEYS(X)                                                                                              \
    X(REQUEST_METHOD, "REQUEST_METHOD")                                                                      \
    X(REQUEST_URI, "REQUEST_URI")                                                                            \
    X(PATH_INFO, "PATH_INFO")                                                                                \
    X(QUERY_STRING, "QUERY_STRING")                                                                          \
    X(SERVER_PROTOCOL, "SERVER_PROTOCOL")                                                                    \
    X(REMOTE_ADDR, "REMOTE_ADDR")                                                                            \
    X(REMOTE_HOST, "REMOTE_HOST")                                                                            \
    X(REMOTE_PORT, "REMOTE_PORT")                                                                            \
    X(REQUEST_START, "psgix.request_start")                                                                  \
    X(QUEUE_TIME, "psgix.queue_time")                                                                        \
    X(SERVER_NAME, "SERVER_NAME")                                                                            \
    X(SERVER_PORT, "SERVER_PORT")                                                                            \
    X(INPUT, "psgi.input")                                                                                   \
    X(INFORMATIONAL, "psgix.informational")                                                                  \
    X(REQUEST_ID, "psgix.request_id")                                                                        \
    X(X_REQUEST_ID, "HTTP_X_REQUEST_ID")                                                                     \
    X(VERSION, "psgi.version")                                                                               \
    X(HANDLERS, "psgix.cleanup.handlers")                                                                    \
    X(SCRIPT_NAME, "SCRIPT_NAME")                                                                            \
    X(URL_SCHEME, "psgi.url_scheme")                                                                         \
    X(ERRORS, "psgi.errors")                                                                                 \
    X(MULTITHREAD, "psgi.multithread")                                                                       \
    X(MULTIPROCESS, "psgi.multiprocess")                                                                     \
    X(RUN_ONCE, "psgi.run_once")                                                                             \
    X(NONBLOCKING, "psgi.nonblocking")                                                                       \
    X(STREAMING, "psgi.streaming")                                                                           \
    X(BUFFERED, "psgix.input.buffered")                                                                      \
    X(HARAKIRI, "psgix.harakiri")                                                                            \
    X(CLEANUP, "psgix.cleanup")                                                                              \
    X(IO, "psgix.io")                                                                                        \
    X(CONTENT_TYPE, "CONTENT_TYPE")                                                                          \
    X(CONTENT_LENGTH, "CONTENT_LENGTH")                                                                      \
    X(COMMIT, "psgix.harakiri.commit")

/*
 * The first FIXED keys are in every environment, but for psgix.io, the last; their numbers are those of their
 * slots.
 */
#define X(name, text) KEY_##name,
enum { KEYS(X) KEY_COUNT, FIXED = KEY_CONTENT_TYPE };
#undef X

static SV *keys[KEY_COUNT];
static SV *key_https, *fact_keys[SR_FACTS]; /* of an encrypted connection */
static SV *masters[FIXED];                  /* constants that are the same for all listeners */

enum { NAME_CACHE = 128, NAME_CACHED_MAX = 40 };
static struct cached_name {
    uint8_t len; /* 0: the place is empty */
    char name[NAME_CACHED_MAX];
    SV *key; /* "HTTP_USER_AGENT", a shared string */
} name_cache[NAME_CACHE];

/*
 * The keys of one request, each once. Perl keeps one copy of a shared string, so equal keys have one address,
 * whatever the spelling ("x-foo", "X-Foo") and whatever the cache has dropped in between. `seen` has a bit
 * for each hash value: the list is searched only if another key had the same bit.
 */
typedef struct key_list {
    SV *of[ENVPOOL_FIELDS];
    unsigned n;
    uint64_t seen;
} key_list;

static SV *array_master(pTHX_ int n) /* makes [1, 1] or [] */
{
    AV *av = newAV();
    for (int i = 0; i < n; i++)
        av_push(av, newSViv(1));
    return (SV *)av;
}

void sirius_env_boot(pTHX)
{
#define X(name, text) keys[KEY_##name] = newSVpvs_share(text);
    KEYS(X)
#undef X
    masters[KEY_VERSION] = array_master(aTHX_ 2);
    masters[KEY_HANDLERS] = array_master(aTHX_ 0);
    masters[KEY_SCRIPT_NAME] = newSVpvs("");
    key_https = newSVpvs_share("HTTPS");
    for (int i = 0; i < SR_FACTS; i++) {
        const char *name = sr_fact_name((sr_fact)i);
        fact_keys[i] = newSVpvn_share(name, (I32)strlen(name), 0);
    }
    masters[KEY_ERRORS] = newRV_inc((SV *)PL_stderrgv);
    for (int i = KEY_MULTITHREAD; i < KEY_IO; i++)
        masters[i] = newSViv(i >= KEY_STREAMING);
}

/* --- shapes --- */

/*
 * "user-agent" -> HTTP_USER_AGENT. The cache is small and direct-mapped: a flood of odd names costs cache
 * misses.
 */
static SV *field_key(pTHX_ sr_bytes name)
{
    const unsigned char *n = (const unsigned char *)name.at;
    unsigned slot =
        (unsigned)(name.len * 31 + n[0] + n[name.len - 1] * 7U + n[name.len / 2] * 13U) % NAME_CACHE;
    struct cached_name *cached = &name_cache[slot];
    if (cached->len != name.len || memcmp(cached->name, n, name.len) != 0) {
        char key[5 + 1024] = "HTTP_"; /* the parser refuses longer names */
        STRLEN len = 5;
        for (size_t i = 0; i < name.len && len < sizeof key; i++)
            key[len++] = n[i] == '-' ? '_' : (char)toUPPER(n[i]);
        SV *sv = newSVpvn_share(key, (I32)len, 0);
        if (name.len > NAME_CACHED_MAX)
            return sv_2mortal(sv);
        sv_2mortal(cached->key); /* freed later: the list of this very request may hold it */
        cached->len = (uint8_t)name.len;
        memcpy(cached->name, n, name.len);
        cached->key = sv;
    }
    return cached->key;
}

/*
 * X-Request-Id, also with underscores. HTTP_X_REQUEST_ID is never what a client has sent: applications log
 * it, and would give it to their own requests, as an id that can be found in the logs of the server.
 */
static bool is_request_id(sr_bytes name)
{
    return name.len == 12 && sr_token_is(name.at, "x", 1) && (name.at[1] == '-' || name.at[1] == '_') &&
           sr_token_is(name.at + 2, "request", 7) && (name.at[9] == '-' || name.at[9] == '_') &&
           sr_token_is(name.at + 10, "id", 2);
}

/* The slot is the edge's again when the response is complete, but not all of the application is over then. */
static void name_keep(sirius *s, const sr_worker_request *r, const sr_field *f)
{
    sr_bytes name = sr_span_in(r->base, f->name), value = sr_span_in(r->base, f->value);
    if (!r->slot->trusted || name.len != 12 || !sr_token_is(name.at, "x-request-id", 12))
        return;
    bool again = s->named.serial == s->turn.serial;
    s->named.serial = s->turn.serial;
    s->named.len = again || value.len > SR_REQUEST_ID_MAX ? 0 : value.len;
    if (s->named.len)
        memcpy(s->named.text, value.at, value.len);
    sr_row_named(s->row.of, sr_bytes_of(s->named.text, s->named.len));
}

/*
 * The key of a field. NULL for X-Request-Id, and for Content-Length and Transfer-Encoding: the body was
 * decoded.
 */
static SV *key_of(pTHX_ const sr_worker_request *r, const sr_field *f)
{
    sr_bytes name = sr_span_in(r->base, f->name);
    if (name.len == 12 && sr_token_is(name.at, "content-type", 12))
        return keys[KEY_CONTENT_TYPE];
    if (is_request_id(name))
        return NULL;
    if (name.len == 14 && sr_token_is(name.at, "content-length", 14))
        return NULL;
    if (name.len == 17 && sr_token_is(name.at, "transfer-encoding", 17))
        return NULL;
    return field_key(aTHX_ name);
}

/* False: the key is in the list already. */
static bool key_add(key_list *list, SV *key)
{
    uint64_t bit = (uint64_t)1 << (SvSHARED_HASH(key) & 63);
    for (unsigned i = 0; (list->seen & bit) && i < list->n; i++)
        if (SvPVX_const(list->of[i]) == SvPVX_const(key))
            return false;
    list->seen |= bit;
    list->of[list->n++] = key;
    return true;
}

/* --- values --- */

typedef struct text {
    const char *at;
    STRLEN len;
} text;

/* The texts of a request in the order of their keys, and memory for those that have to be made. */
typedef struct texts {
    text of[KEY_REMOTE_PORT + 1];
    char port[8];
} texts;

static text decimal(char *end, uint64_t n)
{
    sr_bytes digits = sr_decimal(end, n);
    return (text){digits.at, digits.len};
}

static text path_info(pTHX_ sr_bytes path)
{
    if (!path.len || path.at[0] != '/')
        return (text){"/", 1}; /* for "http://host" and "*", which REQUEST_URI tells apart */
    if (!memchr(path.at, '%', path.len))
        return (text){path.at, path.len};
    SV *sv = sv_2mortal(newSV(path.len + 1));
    return (text){SvPVX(sv), sr_path_decode(SvPVX(sv), path)};
}

/* Path and query without scheme and host, as PSGI requires of REQUEST_URI. */
static text request_uri(pTHX_ const sr_worker_request *r)
{
    const sr_request *q = r->request;
    sr_bytes target = sr_span_in(r->base, q->target), path = sr_span_in(r->base, q->path);
    if (target.len && (target.at[0] == '/' || target.at[0] == '*'))
        return (text){target.at, target.len};
    if (!path.len && !q->has_query && sr_bytes_equal(sr_span_in(r->base, q->method), SR_BYTES("OPTIONS")))
        return (text){"*", 1}; /* OPTIONS http://host means OPTIONS * (RFC 9112 3.2.4) */
    SV *sv = sv_2mortal(path.len ? newSVpvn(path.at, path.len) : newSVpvs("/"));
    if (q->has_query) {
        sv_catpvs(sv, "?");
        sv_catpvn(sv, r->base + q->query.at, q->query.len);
    }
    return (text){SvPVX(sv), SvCUR(sv)};
}

/* Keeps the last text, as most requests have the address of the one before; behind a proxy all do. */
static text address(const sr_peer *peer)
{
    static sr_peer last;
    static char at[SR_PEER_TEXT_MAX];
    static STRLEN len;
    if (!len || peer->family != last.family || peer->scope != last.scope ||
        memcmp(peer->addr, last.addr, sizeof last.addr) != 0) {
        last = *peer;
        len = sr_peer_text(peer, at);
    }
    return (text){at, len};
}

static void texts_make(pTHX_ texts *x, const sr_worker_request *r)
{
    const sr_request *q = r->request;
    sr_bytes method = sr_span_in(r->base, q->method), query = sr_span_in(r->base, q->query);
    sr_bytes version = sr_version_text((sr_version)q->version);
    x->of[KEY_REQUEST_METHOD] = (text){method.at, method.len};
    x->of[KEY_REQUEST_URI] = request_uri(aTHX_ r);
    x->of[KEY_PATH_INFO] = path_info(aTHX_ sr_span_in(r->base, q->path));
    x->of[KEY_QUERY_STRING] = (text){query.at, query.len};
    x->of[KEY_SERVER_PROTOCOL] = (text){version.at, version.len};
    x->of[KEY_REMOTE_ADDR] = address(&r->slot->client);
    /*
     * no name is looked up (RFC 3875 4.1.9). Without this key CGI::Emulate::PSGI says localhost of everybody
     */
    x->of[KEY_REMOTE_HOST] = x->of[KEY_REMOTE_ADDR];
    x->of[KEY_REMOTE_PORT] = decimal(x->port + sizeof x->port, r->slot->client.port);
}

/*
 * Appends a second field of the same name after ", " (RFC 9110 5.3), a second Cookie after "; " (RFC 6265
 * 5.4).
 */
static void put_repeatable(pTHX_ HV *env, SV *key, sr_bytes value)
{
    HE *he = hv_fetch_ent(env, key, 1, SvSHARED_HASH(key));
    SV *sv = HeVAL(he);
    if (SvOK(sv)) {
        bool cookie = SvCUR(key) == 11 && memEQ(SvPVX(key), "HTTP_COOKIE", 11);
        sv_catpvn(sv, cookie ? "; " : ", ", 2);
        sv_catpvn(sv, value.len ? value.at : "", value.len);
    } else {
        sv_setpvn(sv, value.len ? value.at : "", value.len);
    }
}

/* --- making --- */

/*
 * HTTPS is "on" exactly if psgi.url_scheme is "https": frameworks that know CGI only, such as Mojolicious,
 * read it instead. What a trusted proxy says of its client counts, not how the proxy has connected.
 */
static bool is_https(const sr_worker_request *r)
{
    return r->slot->scheme ? r->slot->scheme == SR_SCHEME_HTTPS : r->facts.len > 0;
}

static uint8_t slot_kind(int key)
{
    if (key <= KEY_REMOTE_PORT || key >= FIXED)
        return ENVPOOL_TEXT;
    if (key == KEY_REQUEST_START || key == KEY_QUEUE_TIME)
        return ENVPOOL_NUMBER;
    if (key == KEY_VERSION || key == KEY_HANDLERS)
        return ENVPOOL_ARRAY;
    if (key == KEY_INPUT)
        return ENVPOOL_INPUT;
    bool lazy = key == KEY_IO || (key >= KEY_INFORMATIONAL && key <= KEY_X_REQUEST_ID);
    return lazy ? ENVPOOL_LAZY : ENVPOOL_CONST;
}

static void slot_fill(pTHX_ envpool_env *env, SV *key, uint8_t kind, SV *master, sirius_lazy lazy)
{
    envpool_slot *slot = &env->slots[env->n_slots++];
    *slot = (envpool_slot){.master = master, .kind = kind, .lazy_kind = (uint8_t)lazy};
    envpool_put(aTHX_ env, slot, key);
}

/*
 * Events of a WebSocket that the edge holds have no socket, nor has a stream of HTTP/2, unless it is a
 * tunnel.
 */
static inline int n_fixed(const sr_worker_request *r)
{
    return r->request->shared ? KEY_IO : FIXED;
}

static void fixed_fill(pTHX_ envpool_env *env, const sirius_site *site, int n)
{
    for (int i = 0; i < n; i++) {
        sirius_lazy lazy = i == KEY_IO              ? SIRIUS_LAZY_IO
                           : i == KEY_INFORMATIONAL ? SIRIUS_LAZY_INFORMATIONAL
                                                    : SIRIUS_LAZY_ID;
        SV *master = i == KEY_SERVER_NAME    ? site->name
                     : i == KEY_SERVER_PORT  ? site->port
                     : i == KEY_MULTIPROCESS ? site->multiprocess
                     : i == KEY_URL_SCHEME   ? site->scheme
                                             : masters[i];
        slot_fill(aTHX_ env, keys[i], slot_kind(i), master, lazy);
    }
}

static void env_begin(pTHX_ envpool_env *env, const sirius_site *site, int n)
{
    env->n_slots = 0;
    env->hv = newHV();
    env->serial = newSViv(0);
    /* room for a browser's request and what middleware adds, so that perl need not enlarge the hash */
    hv_ksplit(env->hv, 64);
    fixed_fill(aTHX_ env, site, n);
}

/* ns, as %{queue}D in the access log. It may have become complete after the worker has read the clock. */
static int64_t waited(const sirius *s, const sr_worker_request *r)
{
    int64_t ns = s->worker.began - atomic_load_explicit(&r->slot->ready_at, memory_order_relaxed);
    return (ns > 0 ? ns : 0) + r->slot->before_ns;
}

static void fixed_set(pTHX_ sirius *s, envpool_env *env, const sr_worker_request *r)
{
    texts x;
    texts_make(aTHX_ & x, r);
    for (int i = 0; i <= KEY_REMOTE_PORT; i++)
        envpool_set(aTHX_ & env->slots[i], x.of[i].at, x.of[i].len);
    SvNV_set(env->slots[KEY_REQUEST_START].value, (NV)r->slot->ready_wall / 1e9);
    SvNV_set(env->slots[KEY_QUEUE_TIME].value, (NV)waited(s, r) / 1e9);
    if (r->body_fd >= 0)
        sv_setsv(env->slots[KEY_INPUT].value, sv_2mortal(sirius_input_file(aTHX_ r->body_fd)));
    else if (r->body.len)
        sirius_input_fill(aTHX_ & env->input, r->body);
    SvIV_set(env->serial, (IV)s->turn.serial);
}

/*
 * For a request that fits no shape: ENVPOOL_FIELDS or more fields, repeated or very long names, or a host
 * from the target without a Host field.
 */
static SV *env_alone(pTHX_ sirius *s, const sr_worker_request *r)
{
    envpool_env env = {0};
    char length[24];
    env_begin(aTHX_ & env, s->turn.site, n_fixed(r));
    s->named.serial = 0;
    fixed_set(aTHX_ s, &env, r);
    for (uint32_t i = 0; i < r->request->n_fields; i++) {
        const sr_field *f = &r->request->fields[i];
        SV *key = key_of(aTHX_ r, f);
        if (key)
            put_repeatable(aTHX_ env.hv, key, sr_span_in(r->base, f->value));
        else
            name_keep(s, r, f);
    }
    if (r->request->host_added)
        put_repeatable(aTHX_ env.hv, sv_2mortal(newSVpvs_share("HTTP_HOST")),
                       sr_span_in(r->base, r->request->host));
    if (r->request->framing != SR_BODY_NONE) {
        text n = decimal(length + sizeof length, r->slot->body_length);
        put_repeatable(aTHX_ env.hv, keys[KEY_CONTENT_LENGTH], sr_bytes_of(n.at, n.len));
    }
    if (is_https(r))
        put_repeatable(aTHX_ env.hv, key_https, SR_BYTES("on"));
    if (r->facts.len) {
        sr_bytes all[SR_FACTS];
        sr_facts_all(r->facts, all);
        for (int i = 0; i < SR_FACTS; i++)
            if (all[i].at)
                put_repeatable(aTHX_ env.hv, fact_keys[i], all[i]);
    }
    sirius_input_forget(aTHX_ & env.input); /* the layer keeps the bytes */
    SvREFCNT_dec(env.serial);               /* and the lazy values this */
    s->turn.env.pooled = NULL;
    /* not held by the reference, which is $_[0] of the application and may be changed */
    s->turn.env.hv = s->turn.env.alone = env.hv;
    return sv_2mortal(newRV_inc((SV *)env.hv));
}

/*
 * No field of a client has one of these keys: its own begin with HTTP_. A connection that a proxy has
 * encrypted keeps its facts when the client came without TLS.
 */
static void facts_list(sr_bytes facts, key_list *list, sr_bytes *values)
{
    sr_bytes all[SR_FACTS];
    sr_facts_all(facts, all);
    for (int i = 0; i < SR_FACTS; i++) {
        if (!all[i].at)
            continue;
        values[list->n] = all[i];
        key_add(list, fact_keys[i]);
    }
}

/* Collects the keys and values of the fields. False: they fit no shape. */
static bool fields_list(pTHX_ sirius *s, const sr_worker_request *r, key_list *list, sr_bytes *values)
{
    const sr_request *q = r->request;
    unsigned others = 2 + (r->facts.len ? SR_FACTS : 0); /* CONTENT_LENGTH, HTTPS, ... */
    if (q->n_fields + others > ENVPOOL_FIELDS || q->host_added)
        return false;
    for (uint32_t i = 0; i < q->n_fields; i++) {
        if (q->fields[i].name.len > NAME_CACHED_MAX)
            return false;
        SV *key = key_of(aTHX_ r, &q->fields[i]);
        if (!key) {
            name_keep(s, r, &q->fields[i]);
            continue;
        }
        values[list->n] = sr_span_in(r->base, q->fields[i].value);
        if (!key_add(list, key))
            return false;
    }
    if (is_https(r)) {
        values[list->n] = SR_BYTES("on");
        key_add(list, key_https);
    }
    if (r->facts.len)
        facts_list(r->facts, list, values);
    return true;
}

/* Makes a hash of this shape. NULL: no place is free, or the hash has not become what it should be. */
static envpool_env *pool_add(pTHX_ sirius *s, uint8_t site, const key_list *list, int n)
{
    envpool_env *env = envpool_claim(aTHX_ & s->pool);
    if (!env)
        return NULL;
    env_begin(aTHX_ env, s->turn.site, n);
    for (unsigned i = 0; i < list->n; i++)
        slot_fill(aTHX_ env, list->of[i], ENVPOOL_TEXT, NULL, SIRIUS_LAZY_IO);
    if (envpool_seal(aTHX_ env, site, list->of, list->n))
        return env;
    envpool_forget(aTHX_ env);
    return NULL;
}

SV *sirius_env_make(pTHX_ sirius *s, const sr_worker_request *r)
{
    sr_bytes values[ENVPOOL_FIELDS];
    char length[24];
    key_list list;
    list.n = 0;
    list.seen = 0;
    if (!SIRIUS_ENV_POOL || !fields_list(aTHX_ s, r, &list, values))
        return env_alone(aTHX_ s, r);
    if (r->request->framing != SR_BODY_NONE) {
        text len = decimal(length + sizeof length, r->slot->body_length);
        values[list.n] = sr_bytes_of(len.at, len.len);
        if (!key_add(&list, keys[KEY_CONTENT_LENGTH]))
            return env_alone(aTHX_ s, r);
    }
    int n = n_fixed(r);
    uint8_t site = (uint8_t)(r->slot->listener << 1 | (n < FIXED)); /* hashes of HTTP/2 have other keys */
    envpool_env *env = envpool_find(&s->pool, site, list.of, list.n);
    if (!env && !(env = pool_add(aTHX_ s, site, &list, n)))
        return env_alone(aTHX_ s, r);
    env->in_use = true;
    fixed_set(aTHX_ s, env, r);
    for (unsigned i = 0; i < list.n; i++)
        envpool_set(aTHX_ & env->slots[n + (int)i], values[i].at, values[i].len);
    s->turn.env.pooled = env;
    s->turn.env.hv = env->hv;
    return envpool_ref(aTHX_ env);
}

/* A restricted hash dies if it is asked for a key that it does not allow. */
static bool may_look(pTHX_ HV *env, SV *key)
{
    return !SvRMAGICAL(env) && (!SvREADONLY(env) || hv_exists_ent(env, key, 0));
}

HE *sirius_env_fetch_ent(pTHX_ HV *env, SV *key)
{
    return may_look(aTHX_ env, key) ? hv_fetch_ent(env, key, 0, SvSHARED_HASH(key)) : NULL;
}

SV **sirius_env_fetch(pTHX_ HV *env, const char *key)
{
    return may_look(aTHX_ env, sv_2mortal(newSVpv(key, 0))) ? hv_fetch(env, key, (I32)strlen(key), 0) : NULL;
}

/*
 * True if neither cleanup handlers nor harakiri are set, for certain. Magic values, and references to
 * anything but a plain empty array, are left to Sirius::PSGI::Cleanup.
 */
bool sirius_env_nothing_left(pTHX_ HV *env)
{
    if (SvRMAGICAL(env) || SvREADONLY(env))
        return false;
    HE *he = hv_fetch_ent(env, keys[KEY_COMMIT], 0, SvSHARED_HASH(keys[KEY_COMMIT]));
    if (he && (SvMAGICAL(HeVAL(he)) || SvROK(HeVAL(he)) || SvTRUE_nomg(HeVAL(he))))
        return false;
    he = hv_fetch_ent(env, keys[KEY_HANDLERS], 0, SvSHARED_HASH(keys[KEY_HANDLERS]));
    if (!he)
        return true;
    const SV *list = HeVAL(he);
    if (SvMAGICAL(list))
        return false;
    if (!SvROK(list))
        return true;
    list = SvRV(list);
    return SvTYPE(list) == SVt_PVAV && !SvOBJECT(list) && !SvMAGICAL(list) && AvFILLp((const AV *)list) < 0;
}
