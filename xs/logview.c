/* logview: looks up the values of a log line. */
#include "sirius.h"

#include "env.h"
#include "envpool.h"
#include "logformat.h"

enum { KEYS_MAX = 3 };

/* Where a shape of the pool has the values, so that an untouched request needs no look-up in the hash. */
typedef struct places {
    UV seal;                             /* of the shape; 0: not filled in */
    const envpool_slot *slots[KEYS_MAX]; /* NULL: the shape has no such key */
} places;

/* The aux of an item. */
typedef struct source {
    SV *keys[KEYS_MAX]; /* keys of %env with their hash values: an item costs one look-up */
    SV *code;           /* the sub of a handler */
    SV *block;          /* its first argument */
    places places[ENVPOOL_SHAPES];
} source;

/* --- keys --- */

static SV *shared_key(pTHX_ const char *at, size_t len)
{
    return newSVpvn_share(at, (I32)len, 0);
}

/* User-Agent becomes HTTP_USER_AGENT. */
static SV *field_key(pTHX_ sr_bytes name)
{
    SV *key = newSVpvs("HTTP_");
    sv_catpvn(key, name.at, name.len);
    for (char *c = SvPVX(key); c < SvEND(key); c++)
        *c = *c == '-' ? '_' : (char)toUPPER(*c);
    bool bare = strEQ(SvPVX(key), "HTTP_CONTENT_LENGTH") || strEQ(SvPVX(key), "HTTP_CONTENT_TYPE");
    SV *shared = shared_key(aTHX_ SvPVX(key) + (bare ? 5 : 0), SvCUR(key) - (bare ? 5 : 0));
    SvREFCNT_dec(key);
    return shared;
}

static SV *handler(pTHX_ HV *handlers, char letter)
{
    SV **code = handlers ? hv_fetch(handlers, &letter, 1, 0) : NULL;
    return code ? newSVsv(*code) : newSV(0);
}

static const char *const standard_keys[][KEYS_MAX] = {
    [SR_LOG_REMOTE_ADDR] = {"REMOTE_ADDR"},
    [SR_LOG_USER] = {"REMOTE_USER"},
    [SR_LOG_REQUEST_LINE] = {"REQUEST_METHOD", "REQUEST_URI", "SERVER_PROTOCOL"},
    [SR_LOG_METHOD] = {"REQUEST_METHOD"},
    [SR_LOG_URI] = {"REQUEST_URI"},
    [SR_LOG_PROTOCOL] = {"SERVER_PROTOCOL"},
    [SR_LOG_PATH] = {"PATH_INFO"},
    [SR_LOG_QUERY] = {"QUERY_STRING"},
    [SR_LOG_SERVER_NAME] = {"SERVER_NAME"},
    [SR_LOG_HOST] = {"HTTP_HOST", "SERVER_NAME"},
    [SR_LOG_PORT] = {"SERVER_PORT"},
};

/* Values that are not in %env */
static bool is_of_server(const sr_logitem *item)
{
    return item->kind == SR_LOG_OUT || item->kind == SR_LOG_REQUEST_ID || item->kind == SR_LOG_TRACEPARENT ||
           item->kind == SR_LOG_REFUSED || item->kind == SR_LOG_REFUSED_BY;
}

void sirius_logformat_prepare(pTHX_ sr_logformat *f, HV *char_handlers, HV *block_handlers)
{
    size_t count;
    sr_logitem *items = sr_logformat_items(f, &count);
    for (size_t i = 0; i < count; i++) {
        sr_logitem *item = &items[i];
        source *s;
        if (item->kind >= SR_LOG_TEXT)
            continue;
        Newxz(s, 1, source);
        item->aux = s;
        if (item->kind == SR_LOG_IN) {
            s->keys[0] = field_key(aTHX_ item->name);
        } else if (item->kind == SR_LOG_ENV || item->kind == SR_LOG_TLS) {
            s->keys[0] = shared_key(aTHX_ item->name.at, item->name.len);
        } else if (item->kind == SR_LOG_CUSTOM) {
            s->code = handler(aTHX_ item->name.at ? block_handlers : char_handlers, item->letter);
            s->block = item->name.at ? newSVpvn(item->name.at, item->name.len) : NULL;
        } else if (!is_of_server(item)) {
            const char *const *keys = standard_keys[item->kind];
            for (size_t k = 0; k < KEYS_MAX && keys[k]; k++)
                s->keys[k] = shared_key(aTHX_ keys[k], strlen(keys[k]));
        }
    }
}

void sirius_logformat_release(pTHX_ sr_logformat *f)
{
    size_t count;
    sr_logitem *items = sr_logformat_items(f, &count);
    for (size_t i = 0; i < count; i++) {
        source *s = items[i].aux;
        if (!s)
            continue;
        for (size_t k = 0; k < KEYS_MAX; k++)
            SvREFCNT_dec(s->keys[k]);
        SvREFCNT_dec(s->code);
        SvREFCNT_dec(s->block);
        Safefree(s);
        items[i].aux = NULL;
    }
}

/* --- values --- */

static const sr_bytes none = {NULL, 0};

/*
 * The bytes of a value, whatever perl's UTF-8 flag says; characters above 0xff as UTF-8. Valid until the
 * piece is used again.
 */
static sr_bytes bytes_of(pTHX_ sirius_logview *v, SV *sv)
{
    if (v->plain && (SvGMAGICAL(sv) || SvROK(sv)))
        return none;
    SvGETMAGIC(sv);
    if (!SvOK(sv))
        return none;
    STRLEN len;
    const char *at = SvPV_nomg_const(sv, len);
    if (!SvUTF8(sv))
        return sr_bytes_of(at, len);
    bool utf8 = true;
    U8 *plain = bytes_from_utf8((const U8 *)at, &len, &utf8);
    if (utf8)
        return sr_bytes_of(at, len);
    sr_buffer *piece = &v->scratch->piece;
    sr_buffer_reset(piece);
    bool added = sr_buffer_add(piece, plain, len);
    if ((const char *)plain != at)
        Safefree(plain);
    return added ? sr_buffer_bytes(piece) : none;
}

static void find_places(source *s, places *p, const envpool_env *pooled)
{
    p->seal = pooled->seal;
    for (unsigned k = 0; k < KEYS_MAX; k++)
        p->slots[k] = s->keys[k] ? envpool_slot_of(pooled, s->keys[k]) : NULL;
}

/* A look-up in the hash costs 120 instructions, one in the pool 20, and the combined format has seven. */
static inline sr_bytes look_up(pTHX_ sirius_logview *v, source *s, unsigned k)
{
    if (v->pooled) {
        places *p = &s->places[v->shape];
        if (p->seal != v->pooled->seal)
            find_places(s, p, v->pooled);
        if (!p->slots[k])
            return none;
        const SV *sv = p->slots[k]->value;
        return SvPOK(sv) && !SvUTF8(sv) ? sr_bytes_of(SvPVX_const(sv), SvCUR(sv))
                                        : bytes_of(aTHX_ v, p->slots[k]->value);
    }
    SV *key = s->keys[k];
    HE *he = !v->env    ? NULL
             : v->plain ? sirius_env_fetch_ent(aTHX_ v->env, key)
                        : hv_fetch_ent(v->env, key, FALSE, SvSHARED_HASH(key));
    return he ? bytes_of(aTHX_ v, HeVAL(he)) : none;
}

static sr_bytes request_line(pTHX_ sirius_logview *v, source *s)
{
    sr_buffer *line = &v->scratch->line;
    bool any = false;
    sr_buffer_reset(line);
    for (unsigned k = 0; k < KEYS_MAX; k++) {
        sr_bytes part = look_up(aTHX_ v, s, k);
        any = any || part.at;
        if (!sr_buffer_add_bytes(line, part) || !sr_buffer_add(line, " ", 1))
            return none;
    }
    line->end--;
    return any ? sr_buffer_bytes(line) : none;
}

static sr_bytes response_field(pTHX_ sirius_logview *v, sr_bytes name)
{
    if (!v->headers)
        return sr_response_value(v->head, name);
    SSize_t count = av_len(v->headers) + 1;
    for (SSize_t i = 0; i + 1 < count; i += 2) {
        SV **key = av_fetch(v->headers, i, 0);
        if (!key)
            continue;
        SvGETMAGIC(*key);
        if (!SvOK(*key))
            continue;
        STRLEN len;
        const char *at = SvPV_nomg_const(*key, len);
        if (len == name.len && sr_bytes_equal_nocase(sr_bytes_of(at, len), name)) {
            SV **value = av_fetch(v->headers, i + 1, 0);
            return value ? bytes_of(aTHX_ v, *value) : none;
        }
    }
    return none;
}

/* Calls a handler as Perl code would: in list context, and the first value counts. */
static sr_bytes call_handler(pTHX_ sirius_logview *v, const source *s)
{
    dSP;
    ENTER;
    SAVETMPS;
    PUSHMARK(SP);
    EXTEND(SP, 5);
    if (s->block)
        PUSHs(sv_mortalcopy(s->block));
    for (size_t i = 0; i < 4; i++)
        PUSHs(v->args[i] ? v->args[i] : &PL_sv_undef);
    PUTBACK;
    int n = call_sv(s->code, G_ARRAY);
    SPAGAIN;
    sr_bytes value = none;
    sr_buffer *line = &v->scratch->line; /* FREETMPS frees the value */
    sr_buffer_reset(line);
    if (n > 0)
        value = bytes_of(aTHX_ v, SP[1 - n]);
    if (value.at)
        value = sr_buffer_add_bytes(line, value) ? sr_buffer_bytes(line) : none;
    SP -= n;
    PUTBACK;
    FREETMPS;
    LEAVE;
    return value;
}

sr_bytes sirius_logview_get(void *view, const sr_logitem *item)
{
    sirius_logview *v = view;
    source *s = item->aux;
#ifdef MULTIPLICITY
    dTHXa(v->my_perl);
#endif
    switch (item->kind) {
    case SR_LOG_REQUEST_LINE:
        return request_line(aTHX_ v, s);
    case SR_LOG_HOST: {
        sr_bytes host = look_up(aTHX_ v, s, 0);
        return host.len ? host : look_up(aTHX_ v, s, 1);
    }
    case SR_LOG_OUT:
        return response_field(aTHX_ v, item->name);
    case SR_LOG_CUSTOM:
        return call_handler(aTHX_ v, s);
    case SR_LOG_REQUEST_ID:
    case SR_LOG_TRACEPARENT:
    case SR_LOG_REFUSED:
    case SR_LOG_REFUSED_BY:
        return none; /* only the server knows what to believe */
    default:
        return look_up(aTHX_ v, s, 0);
    }
}
