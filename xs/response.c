/*
 * response: sends what an application has returned.
 *
 * Plain values (no magic, no overload) are read in place. Anything else is first copied to plain values by
 * Sirius::PSGI::Response::plain, which is Perl and may die: so no code of the application runs while a head is half
 * made.
 */
#include "wire.h"

#include "base/decimal.h"

#include <fcntl.h>
#include <unistd.h>

typedef struct parts { /* borrowed from the value that was returned */
    int status;
    AV *headers;
    SV *body; /* NULL: streaming */
} parts;

static bool plain_scalar(SV *sv)
{
    return !sv || (!SvGMAGICAL(sv) && !SvROK(sv));
}

static AV *plain_array(SV *sv)
{
    if (!sv || SvGMAGICAL(sv) || !SvROK(sv) || SvOBJECT(SvRV(sv)) || SvTYPE(SvRV(sv)) != SVt_PVAV ||
        SvRMAGICAL(SvRV(sv)))
        return NULL;
    return (AV *)SvRV(sv);
}

static SV *element(pTHX_ AV *av, SSize_t i)
{
    SV **svp = AvARRAY(av) + i;
    return i <= AvFILLp(av) && *svp ? *svp : &PL_sv_undef;
}

/* inert is cleared when one of them could run code as it is freed: that takes magic or a blessing, and so this type. */
static inline __attribute__((always_inline)) bool all_plain(AV *av, bool *inert)
{
    for (SSize_t i = 0; i <= AvFILLp(av); i++) {
        SV *sv = AvARRAY(av)[i];
        if (!plain_scalar(sv))
            return false;
        *inert &= !sv || SvTYPE(sv) < SVt_PVMG;
    }
    *inert &= !SvMAGIC((SV *)av);
    return true;
}

/* The body, when it is a handle that has a class. NULL: it is not, or only Perl can tell. */
static SV *blessed_handle(pTHX_ SV *res)
{
    AV *av = plain_array(res);
    SV *body = av && AvFILLp(av) == 2 ? element(aTHX_ av, 2) : NULL;
    if (!body || SvGMAGICAL(body) || !SvROK(body) || !SvOBJECT(SvRV(body)))
        return NULL;
    return isGV_with_GP(SvRV(body)) || SvTYPE(SvRV(body)) == SVt_PVIO ? SvRV(body) : NULL;
}

/* 1: all can be read in place; 0: Perl must look at it first. A handle of another class than `asked` is such a case, too. */
static inline __attribute__((always_inline)) bool readable(pTHX_ SV *res, const HV *asked, bool *inert)
{
    bool plain = true;
    AV *av = plain_array(res);
    if (!av || AvFILLp(av) < 1 || AvFILLp(av) > 2 || !plain_scalar(element(aTHX_ av, 0)))
        return false;
    AV *headers = plain_array(element(aTHX_ av, 1));
    if (!headers || !all_plain(headers, &plain))
        return false;
    if (AvFILLp(av) == 1)
        return true;
    SV *body = element(aTHX_ av, 2);
    AV *elements = plain_array(body);
    if (!elements)
        return SvROK(body) && !SvGMAGICAL(body) && isGV_with_GP(SvRV(body)) &&
               (!SvOBJECT(SvRV(body)) || SvSTASH(SvRV(body)) == asked);
    if (!all_plain(elements, &plain))
        return false;
    *inert = plain && SvTYPE(res) < SVt_PVMG && SvTYPE(element(aTHX_ av, 0)) < SVt_PVMG &&
             SvTYPE(element(aTHX_ av, 1)) < SVt_PVMG && SvTYPE(body) < SVt_PVMG && !SvMAGIC((SV *)av);
    return true;
}

static const char *split(pTHX_ SV *res, parts *p)
{
    AV *av = plain_array(res);
    if (!av || AvFILLp(av) < 1 || AvFILLp(av) > 2)
        return "the response is not an array of status, headers and body";
    SV *status = element(aTHX_ av, 0);
    IV number = SvIOK_notUV(status) || (SvOK(status) && looks_like_number(status)) ? SvIV(status) : 0;
    if (number < 200 || number > 999)
        return "the status is not a number from 200 to 999";
    p->status = (int)number;
    p->headers = plain_array(element(aTHX_ av, 1));
    if (!p->headers || AvFILLp(p->headers) % 2 == 0)
        return "the headers are not an array of pairs";
    p->body = AvFILLp(av) == 2 ? element(aTHX_ av, 2) : NULL;
    if (p->body && !SvROK(p->body))
        return "the body is neither an array nor a handle";
    return NULL;
}

bool sirius_bytes(pTHX_ SV *sv, sr_bytes *out)
{
    STRLEN len = 0;
    if (!SvOK(sv)) {
        *out = sr_bytes_of("", 0);
        return true;
    }
    const char *at = SvPV_nomg_const(sv, len);
    if (SvUTF8(sv)) {
        bool utf8 = true;
        U8 *bytes = bytes_from_utf8((const U8 *)at, &len, &utf8);
        if (utf8)
            return false;
        at = (const char *)bytes;
        if (at != SvPVX_const(sv))
            SAVEFREEPV(bytes);
    }
    *out = sr_bytes_of(at, len);
    return true;
}

/* --- heads --- */

/* A value that is a number and nothing else, as a Content-Length mostly is: without making perl a string of it. */
static bool value_bytes(pTHX_ SV *sv, char digits[SR_DECIMAL_MAX], sr_bytes *out)
{
    if ((SvFLAGS(sv) & (SVf_IOK | SVf_POK | SVf_NOK | SVf_ROK | SVp_POK | SVs_GMG)) != SVf_IOK ||
        (!SvIsUV(sv) && SvIVX(sv) < 0))
        return sirius_bytes(aTHX_ sv, out);
    *out = sr_decimal(digits + SR_DECIMAL_MAX, SvUVX(sv));
    return true;
}

enum { TRIMMED_MAX = 32 }; /* names that a worker remembers to have logged */

/*
 * 'X-Error' => $@ is common, and other servers send it. A newline at the end can't begin a field of a client's making;
 * one within can, and stays an error.
 */
bool sirius_trim(pTHX_ sirius *s, sr_bytes name, sr_bytes *value)
{
    if (!value->len || !memchr("\r\n", value->at[value->len - 1], 2))
        return false;
    while (value->len && memchr("\r\n\t ", value->at[value->len - 1], 4))
        value->len--;
    if (!s->turn.trimmed)
        s->turn.trimmed = newSVpvn(name.at, name.len);
    return true;
}

void sirius_trim_log(pTHX_ sirius *s)
{
    static HV *logged;
    SV *name = sv_2mortal(s->turn.trimmed);
    s->turn.trimmed = NULL;
    if (!logged)
        logged = newHV();
    if (hv_exists_ent(logged, name, 0) || HvUSEDKEYS(logged) >= TRIMMED_MAX)
        return;
    (void)hv_store_ent(logged, name, newSV(0), 0);
    SV *what =
        sv_2mortal(newSVpvf("the value of the response header %" SVf " ended with a newline, which was "
                            "removed (logged once for each header in each worker)",
                            SVfARG(name)));
    sirius_warn(aTHX_ s, SvPV_nolen(what));
}

static sr_response_error head_field(pTHX_ sirius *s, sr_bytes name, sr_bytes value)
{
    sr_response_error err = sr_response_field(&s->turn.response, &s->head, name, value);
    if (err == SR_RESPONSE_BAD_VALUE && sirius_trim(aTHX_ s, name, &value))
        err = sr_response_field(&s->turn.response, &s->head, name, value);
    return err;
}

static const char *head_begin(pTHX_ sirius *s, const parts *p)
{
    sirius_turn *t = &s->turn;
    sr_buffer_reset(&s->head);
    sr_response_error err = wire_head_begin(s, p->status);
    for (SSize_t i = 0; !err && i < AvFILLp(p->headers); i += 2) {
        sr_bytes name, value;
        char digits[SR_DECIMAL_MAX];
        if (!sirius_bytes(aTHX_ element(aTHX_ p->headers, i), &name) ||
            !value_bytes(aTHX_ element(aTHX_ p->headers, i + 1), digits, &value))
            return "a header contains characters above 0xff: encode it";
        err = head_field(aTHX_ s, name, value);
    }
    unchunk_begin(&s->unchunk, t->response.app_chunked);
    return err ? sr_response_error_text(err) : NULL;
}

/* --- arrays: one reply, whatever their size --- */

static bool iov_room(sirius *s, size_t n)
{
    if (n <= s->iov_cap)
        return true;
    struct iovec *iov = realloc(s->iov, n * 2 * sizeof *iov);
    if (!iov)
        return false;
    s->iov = iov;
    s->iov_cap = n * 2;
    return true;
}

static const char *respond_array(pTHX_ sirius *s, AV *body)
{
    sirius_turn *t = &s->turn;
    uint64_t known = 0;
    int n = 0;
    if (!iov_room(s, (size_t)AvFILLp(body) + 1))
        return "out of memory";
    for (SSize_t i = 0; i <= AvFILLp(body); i++) {
        sr_bytes bytes;
        if (!sirius_bytes(aTHX_ element(aTHX_ body, i), &bytes))
            return "the body contains characters above 0xff: encode it";
        if (bytes.len)
            s->iov[n++] = (struct iovec){(char *)bytes.at, bytes.len};
        known += bytes.len;
    }
    const char *why = wire_head_end(s, known);
    if (why)
        return why;
    if (t->response.framing != SR_FRAMING_LENGTH)
        n = 0;
    for (int i = 0; i < n; i++) { /* a body longer than the application's Content-Length is cut there */
        if (s->iov[i].iov_len > t->left)
            s->iov[i].iov_len = (size_t)t->left;
        t->left -= s->iov[i].iov_len;
    }
    wire_whole(s, s->iov, n);
    t->phase = SIRIUS_ANSWERED;
    return NULL;
}

/* The application says that its bytes are chunked already. */
static const char *respond_framed(pTHX_ sirius *s, AV *body)
{
    sr_bytes bytes;
    for (SSize_t i = 0; i <= AvFILLp(body); i++)
        if (!sirius_bytes(aTHX_ element(aTHX_ body, i), &bytes))
            return "the body contains characters above 0xff: encode it";
    const char *why = wire_head_end(s, SR_LENGTH_UNKNOWN);
    if (why)
        return why;
    wire_head(s, false);
    s->turn.phase = SIRIUS_STREAMING;
    sv_2mortal(SvREFCNT_inc_simple_NN((SV *)body)); /* a handler of a signal may change what was returned */
    for (SSize_t i = 0; i <= AvFILLp(body); i++) {
        SV *one = element(aTHX_ body, i);
        if (plain_scalar(one) && sirius_bytes(aTHX_ one, &bytes))
            sirius_stream_send(aTHX_ s, one, bytes, false);
        else
            s->turn.phase = SIRIUS_BROKEN;
    }
    sirius_stream_end(aTHX_ s);
    return NULL;
}

/* --- files: sendfile --- */

static const char *respond_file(pTHX_ sirius *s, int fd, off_t offset, uint64_t length)
{
    sirius_turn *t = &s->turn;
    const char *why = wire_head_end(s, length);
    if (why)
        return why;
    uint64_t send = t->response.framing != SR_FRAMING_LENGTH ? 0 : t->left < length ? t->left : length;
    /* the application's handle is closed before the last byte, and 0 to 2 are its own */
    int copy = send ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (send && copy < 0)
        return "no free descriptor for the file of the body";
    if (send)
        wire_file(s, copy, offset, send);
    else
        wire_whole(s, NULL, 0);
    t->left -= send;
    t->phase = SIRIUS_ANSWERED;
    return NULL;
}

/* --- objects: getline --- */

/* Sirius::PSGI::Response::send_body calls getline and puts what it gets into the writer. */
static const char *respond_object(pTHX_ sirius *s, SV *body)
{
    sirius_turn *t = &s->turn;
    const char *why = wire_head_end(s, SR_LENGTH_UNKNOWN);
    if (why)
        return why;
    wire_head(s, false);
    t->phase = SIRIUS_STREAMING;
    SV *writer = t->response.framing == SR_FRAMING_NONE ? &PL_sv_undef : sirius_writer(aTHX_ s);
    SV *sent =
        sirius_call(aTHX_ s, sv_2mortal(newRV_inc((SV *)get_cv("Sirius::PSGI::Response::send_body", GV_ADD))),
                    body, writer);
    if (!sent) {
        if (t->phase == SIRIUS_STREAMING)
            t->phase = SIRIUS_BROKEN;
        sirius_log(aTHX_ s, "the body died", ERRSV);
    } else if (t->phase == SIRIUS_STREAMING) {
        sirius_stream_end(aTHX_ s);
    }
    return NULL;
}

/* --- all of them --- */

static const char *respond_body(pTHX_ sirius *s, const parts *p, const HV *class, SV **writer)
{
    int fd;
    off_t offset;
    uint64_t length;
    if (!p->body) {
        const char *why = wire_head_end(s, SR_LENGTH_UNKNOWN);
        if (why)
            return why;
        s->turn.phase = SIRIUS_STREAMING;
        wire_head(s, true);
        *writer = sirius_writer(aTHX_ s);
        return NULL;
    }
    AV *elements = plain_array(p->body);
    if (elements)
        return s->turn.response.app_chunked ? respond_framed(aTHX_ s, elements)
                                            : respond_array(aTHX_ s, elements);
    if (!s->turn.response.app_chunked && sirius_file(aTHX_ p->body, class, &fd, &offset, &length))
        return respond_file(aTHX_ s, fd, offset, length);
    return respond_object(aTHX_ s, p->body);
}

/* All that takes code of the application, before a head is begun. NULL: it has failed, and that is said. */
static __attribute__((noinline)) SV *make_readable(pTHX_ sirius *s, SV *res, HV **class)
{
    bool inert, asked = false;
    HV *of = NULL;
    SV *handle = blessed_handle(aTHX_ res);
    if (handle) {
        of = SvSTASH(handle);
        res = sv_mortalcopy(res); /* whose owner may drop it meanwhile */
        asked = sirius_file_class(aTHX_ s, handle, class);
    }
    if (handle && !asked)
        res = NULL;
    else if (!readable(aTHX_ res, of, &inert))
        res = sirius_call(
            aTHX_ s, sv_2mortal(newRV_inc((SV *)get_cv("Sirius::PSGI::Response::plain", GV_ADD))), res, NULL);
    if (!res) {
        sirius_fail(aTHX_ s, "the response is invalid", ERRSV);
        return NULL;
    }
    if (s->turn.phase != SIRIUS_UNANSWERED) { /* by an overload of this very response */
        sirius_fail(aTHX_ s, "the responder was called while a response was read", NULL);
        return NULL;
    }
    return res;
}

void sirius_respond(pTHX_ sirius *s, SV *res, bool may_stream, SV **writer)
{
    bool inert = false;
    HV *class = NULL;
    if (!readable(aTHX_ res, NULL, &inert) && !(res = make_readable(aTHX_ s, res, &class)))
        return;
    /* What a responder gets is not what the application returns: that is a sub, which holds whatever it has closed over */
    s->turn.inert = inert && !may_stream && s->plain_app;
    parts p;
    const char *why = split(aTHX_ res, &p);
    if (!why && !p.body && !may_stream)
        why = "a response without a body is for a streaming responder only";
    ENTER;
    if (!why)
        why = head_begin(aTHX_ s, &p);
    if (!why)
        why = respond_body(aTHX_ s, &p, class, writer);
    LEAVE;
    if (s->turn.trimmed)
        sirius_trim_log(aTHX_ s);
    if (why)
        sirius_fail(aTHX_ s, why, NULL);
}

void sirius_fail(pTHX_ sirius *s, const char *what, SV *error)
{
    static char text[] = "Internal Server Error\n";
    sirius_turn *t = &s->turn;
    sirius_log(aTHX_ s, what, error);
    if (t->phase != SIRIUS_UNANSWERED) {
        if (t->phase == SIRIUS_STREAMING)
            t->phase = SIRIUS_BROKEN;
        return;
    }
    sr_buffer_reset(&s->head);
    sr_response_error err = wire_head_begin(s, 500);
    if (!err)
        err = sr_response_field(&t->response, &s->head, SR_BYTES("Content-Type"), SR_BYTES("text/plain"));
    if (err || wire_head_end(s, sizeof text - 1)) {
        t->phase = SIRIUS_BROKEN;
        return;
    }
    struct iovec iov = {text, sizeof text - 1};
    wire_whole(s, &iov, t->response.framing == SR_FRAMING_LENGTH);
    t->left = 0;
    t->phase = SIRIUS_ANSWERED;
}
