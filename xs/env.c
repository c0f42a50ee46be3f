/*
 * env: the PSGI environment of one request.
 *
 * Constant keys are copied from a template, whose keys are shared strings with their hashes made: newHVhv then only
 * counts references. Keys of header fields are cached by the raw name, so that a field costs one comparison, not an
 * upper-casing, a hash and a look-up. Every value is a fresh scalar: an application may change all of them.
 */
#include "sirius.h"

#define KEYS(X)                                                                                              \
    X(REQUEST_METHOD) X(SCRIPT_NAME) X(PATH_INFO) X(REQUEST_URI) X(QUERY_STRING) X(SERVER_PROTOCOL)          \
    X(REMOTE_ADDR) X(REMOTE_PORT) X(CONTENT_TYPE) X(CONTENT_LENGTH)

#define X(name) KEY_##name,
enum { KEYS(X) KEY_INPUT, KEY_IO, KEY_VERSION, KEY_HANDLERS, KEY_INFORMATIONAL, KEY_COUNT };
#undef X

static SV *keys[KEY_COUNT];

enum { NAME_CACHE = 128, NAME_CACHED_MAX = 40 };
static struct cached_name {
    uint8_t len; /* 0: empty */
    char name[NAME_CACHED_MAX];
    SV *key; /* "HTTP_USER_AGENT", a shared string */
} name_cache[NAME_CACHE];

void sirius_env_boot(pTHX)
{
#define X(name) keys[KEY_##name] = newSVpvs_share(#name);
    KEYS(X)
#undef X
    keys[KEY_INPUT] = newSVpvs_share("psgi.input");
    keys[KEY_IO] = newSVpvs_share("psgix.io");
    keys[KEY_VERSION] = newSVpvs_share("psgi.version");
    keys[KEY_HANDLERS] = newSVpvs_share("psgix.cleanup.handlers");
    keys[KEY_INFORMATIONAL] = newSVpvs_share("psgix.informational");
}

static void put(pTHX_ HV *env, SV *key, SV *value)
{
    if (!hv_store_ent(env, key, value, SvSHARED_HASH(key)))
        SvREFCNT_dec(value);
}

static SV *text(pTHX_ sr_bytes s) { return newSVpvn(s.len ? s.at : "", s.len); }

HV *sirius_env_base(pTHX_ const char *server_name, const char *server_port, bool multiprocess)
{
    HV *env = newHV();
    hv_ksplit(env, 64); /* room for a browser's request without a split */
    (void)hv_stores(env, "SERVER_NAME", newSVpv(server_name, 0));
    (void)hv_stores(env, "SERVER_PORT", newSVpv(server_port, 0));
    (void)hv_stores(env, "SCRIPT_NAME", newSVpvs(""));
    (void)hv_stores(env, "psgi.url_scheme", newSVpvs("http"));
    (void)hv_stores(env, "psgi.errors", newRV_inc((SV *)PL_stderrgv));
    (void)hv_stores(env, "psgi.multithread", newSViv(0));
    (void)hv_stores(env, "psgi.multiprocess", newSViv(multiprocess));
    (void)hv_stores(env, "psgi.run_once", newSViv(0));
    (void)hv_stores(env, "psgi.nonblocking", newSViv(0));
    (void)hv_stores(env, "psgi.streaming", newSViv(1));
    (void)hv_stores(env, "psgix.input.buffered", newSViv(1));
    (void)hv_stores(env, "psgix.harakiri", newSViv(1));
    (void)hv_stores(env, "psgix.cleanup", newSViv(1));
    return env;
}

/* "user-agent" -> HTTP_USER_AGENT. The cache is small and direct-mapped: a flood of odd names only costs misses. */
static SV *field_key(pTHX_ sr_bytes name)
{
    const unsigned char *n = (const unsigned char *)name.at;
    unsigned slot = (unsigned)(name.len * 31 + n[0] + n[name.len - 1] * 7u + n[name.len / 2] * 13u) % NAME_CACHE;
    struct cached_name *cached = &name_cache[slot];
    if (cached->len == name.len && memcmp(cached->name, n, name.len) == 0)
        return cached->key;
    char key[5 + 1024] = "HTTP_"; /* the parser refuses longer names */
    STRLEN len = 5;
    for (size_t i = 0; i < name.len && len < sizeof key; i++)
        key[len++] = n[i] == '-' ? '_' : toUPPER_A(n[i]);
    SV *sv = newSVpvn_share(key, (I32)len, 0);
    if (name.len > NAME_CACHED_MAX)
        return sv_2mortal(sv);
    SvREFCNT_dec(cached->key);
    cached->len = (uint8_t)name.len;
    memcpy(cached->name, n, name.len);
    cached->key = sv;
    return sv;
}

/* A second field of one name is appended: ", " by RFC 9110 5.3; a Cookie by "; " as RFC 6265 5.4 writes it. */
static void put_field(pTHX_ HV *env, SV *key, sr_bytes value)
{
    HE *he = hv_fetch_ent(env, key, 1, SvSHARED_HASH(key));
    SV *sv = he ? HeVAL(he) : NULL;
    if (!sv)
        return;
    if (SvOK(sv)) {
        bool cookie = SvCUR(key) == 11 && memEQ(SvPVX(key), "HTTP_COOKIE", 11);
        sv_catpvn(sv, cookie ? "; " : ", ", 2);
        sv_catpvn(sv, value.at, value.len);
    } else {
        sv_setpvn(sv, value.len ? value.at : "", value.len);
    }
}

static void put_fields(pTHX_ HV *env, const sr_task *t)
{
    static const sr_bytes content_type = {"content-type", 12}, content_length = {"content-length", 14},
                          transfer_encoding = {"transfer-encoding", 17};
    for (uint32_t i = 0; i < t->request->n_fields; i++) {
        const sr_field *f = &t->request->fields[i];
        sr_bytes name = sr_span_in(t->base, f->name), value = sr_span_in(t->base, f->value);
        if (name.len == 12 && sr_bytes_equal_nocase(name, content_type))
            put(aTHX_ env, keys[KEY_CONTENT_TYPE], text(aTHX_ value));
        else if ((name.len == 14 && sr_bytes_equal_nocase(name, content_length)) ||
                 (name.len == 17 && sr_bytes_equal_nocase(name, transfer_encoding)))
            continue; /* the body is decoded: CONTENT_LENGTH tells its real length */
        else
            put_field(aTHX_ env, field_key(aTHX_ name), value);
    }
}

static SV *path_info(pTHX_ sr_bytes path)
{
    if (!path.len || path.at[0] != '/')
        return newSVpvs("/"); /* "http://host" and "*"; REQUEST_URI tells them apart */
    if (!memchr(path.at, '%', path.len))
        return newSVpvn(path.at, path.len);
    SV *sv = newSV(path.len + 1);
    SvPOK_only(sv);
    SvCUR_set(sv, sr_path_decode(SvPVX(sv), path));
    *SvEND(sv) = '\0';
    return sv;
}

/* Path and query without scheme and host, as PSGI wants REQUEST_URI. */
static SV *request_uri(pTHX_ const sr_task *t)
{
    const sr_request *r = t->request;
    sr_bytes target = sr_span_in(t->base, r->target);
    if (target.len && (target.at[0] == '/' || target.at[0] == '*'))
        return text(aTHX_ target);
    SV *sv = r->path.len ? text(aTHX_ sr_span_in(t->base, r->path)) : newSVpvs("/");
    if (r->has_query) {
        sr_bytes query = sr_span_in(t->base, r->query);
        sv_catpvs(sv, "?");
        sv_catpvn(sv, query.len ? query.at : "", query.len);
    }
    return sv;
}

static void put_peer(pTHX_ HV *env, const sr_peer *peer)
{
    char addr[SR_PEER_TEXT_MAX];
    put(aTHX_ env, keys[KEY_REMOTE_ADDR], newSVpvn(addr, sr_peer_text(peer, addr)));
    put(aTHX_ env, keys[KEY_REMOTE_PORT], newSVuv(peer->port));
}

static SV *psgi_version(pTHX)
{
    AV *version = newAV();
    av_extend(version, 1);
    av_push(version, newSViv(1));
    av_push(version, newSViv(1));
    return newRV_noinc((SV *)version);
}

HV *sirius_env(pTHX_ sirius *s, const sr_task *t)
{
    const sr_request *r = t->request;
    HV *env = newHVhv(s->env_base[t->conn->listener]);
    put(aTHX_ env, keys[KEY_REQUEST_METHOD], text(aTHX_ sr_span_in(t->base, r->method)));
    put(aTHX_ env, keys[KEY_REQUEST_URI], request_uri(aTHX_ t));
    put(aTHX_ env, keys[KEY_PATH_INFO], path_info(aTHX_ sr_span_in(t->base, r->path)));
    put(aTHX_ env, keys[KEY_QUERY_STRING], text(aTHX_ sr_span_in(t->base, r->query)));
    put(aTHX_ env, keys[KEY_SERVER_PROTOCOL], r->minor ? newSVpvs("HTTP/1.1") : newSVpvs("HTTP/1.0"));
    put_peer(aTHX_ env, &t->conn->peer);
    if (r->framing != SR_BODY_NONE)
        put(aTHX_ env, keys[KEY_CONTENT_LENGTH], newSVpvf("%" UVuf, (UV)t->body_length));
    put_fields(aTHX_ env, t);
    put(aTHX_ env, keys[KEY_VERSION], psgi_version(aTHX));
    put(aTHX_ env, keys[KEY_HANDLERS], newRV_noinc((SV *)newAV()));
    put(aTHX_ env, keys[KEY_INPUT], sirius_lazy_input(aTHX_ t->body, t->body_fd));
    put(aTHX_ env, keys[KEY_IO], sirius_lazy_turn(aTHX_ s, SIRIUS_LAZY_IO));
    put(aTHX_ env, keys[KEY_INFORMATIONAL], sirius_lazy_turn(aTHX_ s, SIRIUS_LAZY_INFORMATIONAL));
    return env;
}

SV **sirius_env_fetch(pTHX_ HV *env, const char *key) { return hv_fetch(env, key, (I32)strlen(key), 0); }
