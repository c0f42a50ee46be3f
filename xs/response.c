/*
 * response: sends what an application has returned.
 *
 * Plain values (no magic, no overload) are read in place. Anything else is first copied to plain values by
 * Sirius::PSGI::Response::plain, which is Perl and may die: so no code of the application runs while a head
 * is under construction.
 */
#include "response.h"

#include "call.h"
#include "file.h"
#include "report.h"
#include "sirius.h"
#include "stream.h"
#include "text.h"
#include "trim.h"
#include "unchunk.h"
#include "wire.h"

#include "base/decimal.h"
#include "net/tempfile.h"

#include <fcntl.h>
#include <unistd.h>

typedef struct parts { /* borrowed from the value that was returned */
    int status;
    AV *headers;
    SV *body;  /* NULL: streaming */
    SV *owner; /* the object that the body stands for, and that is to be closed; NULL: the body itself */
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

/*
 * Clears `inert` if freeing one of the values could run code: only magic or a blessing can, and both need
 * this type.
 */
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

/* The body, if it is a blessed handle. NULL: it is not, or only Perl can tell. */
static SV *blessed_handle(pTHX_ SV *res)
{
    AV *av = plain_array(res);
    SV *body = av && AvFILLp(av) == 2 ? element(aTHX_ av, 2) : NULL;
    if (!body || SvGMAGICAL(body) || !SvROK(body) || !SvOBJECT(SvRV(body)))
        return NULL;
    return isGV_with_GP(SvRV(body)) || SvTYPE(SvRV(body)) == SVt_PVIO ? SvRV(body) : NULL;
}

/*
 * True if everything can be read in place. Otherwise Perl must look at it first, as at a handle of another
 * class than `asked`.
 */
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

__attribute__((noinline, returns_nonnull)) static const char *bad_status(pTHX_ SV *status)
{
    sr_bytes bytes;
    if (!sirius_bytes(aTHX_ status, &bytes))
        bytes = SR_BYTES("");
    return sirius_quote(aTHX_ "the status is ", bytes, ", not a number from 200 to 999");
}

static const char *split(pTHX_ SV *res, parts *p)
{
    AV *av = plain_array(res);
    if (!av || AvFILLp(av) < 1 || AvFILLp(av) > 2)
        return "the response is not a reference to an array of status, headers and body";
    SV *status = element(aTHX_ av, 0);
    IV number = SvIOK_notUV(status) || (SvOK(status) && looks_like_number(status)) ? SvIV(status) : 0;
    if (number < 200 || number > 999)
        return bad_status(aTHX_ status);
    p->status = (int)number;
    p->headers = plain_array(element(aTHX_ av, 1));
    if (!p->headers || AvFILLp(p->headers) % 2 == 0)
        return "the headers are not a reference to an array of names and values";
    p->body = AvFILLp(av) == 2 ? element(aTHX_ av, 2) : NULL;
    if (p->body && !SvROK(p->body))
        return "the body is neither a reference to an array nor a handle";
    return NULL;
}

/* --- heads --- */

/*
 * The bytes of a value. An integer, as Content-Length often is, is formatted here, so that perl need not make
 * a string.
 */
static bool value_bytes(pTHX_ SV *sv, char digits[SR_DECIMAL_MAX], sr_bytes *out)
{
    if ((SvFLAGS(sv) & (SVf_IOK | SVf_POK | SVf_NOK | SVf_ROK | SVp_POK | SVs_GMG)) != SVf_IOK ||
        (!SvIsUV(sv) && SvIVX(sv) < 0))
        return sirius_bytes(aTHX_ sv, out);
    *out = sr_decimal(digits + SR_DECIMAL_MAX, SvUVX(sv));
    return true;
}

static sr_response_error head_field(pTHX_ sirius *s, sr_bytes name, sr_bytes value, SV **trimmed)
{
    sr_response_error err = sr_response_field(&s->turn.wire.response, &s->head, name, value);
    if (err == SR_RESPONSE_BAD_VALUE && sirius_trim(aTHX_ trimmed, name, &value))
        err = sr_response_field(&s->turn.wire.response, &s->head, name, value);
    return err;
}

static const char *head_begin(pTHX_ sirius *s, const parts *p, SV **trimmed)
{
    sirius_turn *t = &s->turn;
    sr_buffer_reset(&s->head);
    sr_response_error err = wire_head_begin(&t->wire, p->status, s->worker.request.request->is_head);
    sr_bytes name = SR_BYTES(""), value = name;
    char digits[SR_DECIMAL_MAX];
    for (SSize_t i = 0; !err && i < AvFILLp(p->headers); i += 2) {
        if (!sirius_bytes(aTHX_ element(aTHX_ p->headers, i), &name) ||
            !value_bytes(aTHX_ element(aTHX_ p->headers, i + 1), digits, &value))
            return "a header contains characters above 0xff: encode it, for example as UTF-8";
        err = head_field(aTHX_ s, name, value, trimmed);
    }
    unchunk_begin(&s->unchunk, t->wire.response.app_chunked);
    return sirius_header_error(aTHX_ err, name, value);
}

void sirius_scratch_free(sirius_scratch *scratch)
{
    free(scratch->iov);
    free(scratch->piece);
}

/* --- arrays: one reply, whatever their size --- */

static bool iov_room(sirius_scratch *s, size_t n)
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
    if (!iov_room(&s->scratch, (size_t)AvFILLp(body) + 1))
        return "out of memory";
    struct iovec *iov = s->scratch.iov;
    for (SSize_t i = 0; i <= AvFILLp(body); i++) {
        sr_bytes bytes;
        if (!sirius_bytes(aTHX_ element(aTHX_ body, i), &bytes))
            return "the body contains characters above 0xff: encode it, for example as UTF-8";
        if (bytes.len)
            iov[n++] = (struct iovec){(char *)bytes.at, bytes.len};
        known += bytes.len;
    }
    const char *why = wire_head_end(s, known);
    if (why)
        return why;
    if (t->wire.response.framing != SR_FRAMING_LENGTH)
        n = 0;
    for (int i = 0; i < n; i++) { /* the body is cut at the application's Content-Length */
        if (iov[i].iov_len > t->wire.left)
            iov[i].iov_len = (size_t)t->wire.left;
        t->wire.left -= iov[i].iov_len;
    }
    wire_whole(s, iov, n, known);
    t->wire.phase = SIRIUS_ANSWERED;
    return NULL;
}

/* For a body that the application has framed as chunked by itself. */
static const char *respond_chunked(pTHX_ sirius *s, AV *body)
{
    sr_bytes bytes;
    for (SSize_t i = 0; i <= AvFILLp(body); i++)
        if (!sirius_bytes(aTHX_ element(aTHX_ body, i), &bytes))
            return "the body contains characters above 0xff: encode it, for example as UTF-8";
    const char *why = wire_head_end(s, SR_LENGTH_UNKNOWN);
    if (why)
        return why;
    wire_head(s, false);
    s->turn.wire.phase = SIRIUS_STREAMING;
    sv_2mortal(SvREFCNT_inc_simple_NN((SV *)body)); /* a signal handler may change what was returned */
    for (SSize_t i = 0; i <= AvFILLp(body); i++) {
        SV *one = element(aTHX_ body, i);
        if (plain_scalar(one) && sirius_bytes(aTHX_ one, &bytes))
            sirius_stream_send(aTHX_ s, one, bytes, false);
        else
            s->turn.wire.phase = SIRIUS_BROKEN;
    }
    sirius_stream_end(aTHX_ s);
    return NULL;
}

/* --- files --- */

/* The bytes of a small file, which cost less than to pass its descriptor does. Returns -1 with errno. */
static ssize_t read_small(sirius_scratch *s, int fd, off_t offset, size_t length)
{
    if (!s->piece && !(s->piece = malloc(SIRIUS_SMALL_FILE)))
        return -1;
    return sr_tempfile_read(fd, s->piece, length,
                            offset); /* fewer from sysfs, for one, which says 4096 of all files */
}

static const char *respond_small(sirius *s, int fd, off_t offset, size_t length)
{
    sirius_turn *t = &s->turn;
    ssize_t n = read_small(&s->scratch, fd, offset, length);
    if (n < 0)
        return "the file of the body cannot be read";
    const char *why = wire_head_end(s, (uint64_t)n);
    if (why)
        return why;
    uint64_t send = t->wire.response.framing != SR_FRAMING_LENGTH ? 0
                    : t->wire.left < (uint64_t)n                  ? t->wire.left
                                                                  : (uint64_t)n;
    struct iovec iov = {s->scratch.piece, (size_t)send};
    t->wire.left -= send;
    wire_whole(s, &iov, send != 0, (uint64_t)n);
    t->wire.phase = SIRIUS_ANSWERED;
    return NULL;
}

/* By sendfile, if nobody can change the file meanwhile. */
static const char *respond_file(sirius *s, int fd, off_t offset, uint64_t length)
{
    sirius_turn *t = &s->turn;
    if (length <= SIRIUS_SMALL_FILE)
        return respond_small(s, fd, offset, (size_t)length);
    const char *why = wire_head_end(s, length);
    if (why)
        return why;
    uint64_t send = t->wire.response.framing != SR_FRAMING_LENGTH ? 0
                    : t->wire.left < length                       ? t->wire.left
                                                                  : length;
    if (send)
        wire_file(s, fd, offset, send, length);
    else
        wire_whole(s, NULL, 0, length);
    t->wire.left -= send;
    t->wire.phase = SIRIUS_ANSWERED;
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
    t->wire.phase = SIRIUS_STREAMING;
    SV *writer = t->wire.response.framing == SR_FRAMING_NONE ? &PL_sv_undef : sirius_writer(aTHX_ s);
    SV *sent =
        sirius_call(aTHX_ s, sv_2mortal(newRV_inc((SV *)get_cv("Sirius::PSGI::Response::send_body", GV_ADD))),
                    body, writer);
    if (!sent) {
        if (t->wire.phase == SIRIUS_STREAMING)
            t->wire.phase = SIRIUS_BROKEN;
        sirius_log(aTHX_ s, "the body object died", ERRSV);
    } else if (t->wire.phase == SIRIUS_STREAMING) {
        sirius_stream_end(aTHX_ s);
    }
    return NULL;
}

/* --- all of them --- */

static const char *respond_body(pTHX_ sirius *s, const parts *p, const sirius_handle *h, SV **writer,
                                SV **over)
{
    int fd;
    off_t offset;
    uint64_t length;
    if (!p->body) {
        const char *why = wire_head_end(s, SR_LENGTH_UNKNOWN);
        if (why)
            return why;
        s->turn.wire.phase = SIRIUS_STREAMING;
        wire_head(s, true);
        *writer = sirius_writer(aTHX_ s);
        return NULL;
    }
    AV *elements = plain_array(p->body);
    if (elements)
        return s->turn.wire.response.app_chunked ? respond_chunked(aTHX_ s, elements)
                                                 : respond_array(aTHX_ s, elements);
    if (s->turn.wire.response.app_chunked || !sirius_file(aTHX_ p->body, h, &fd, &offset, &length)) {
        *over = p->owner;
        return respond_object(aTHX_ s, p->body);
    }
    *over = p->owner ? p->owner : p->body;
    return respond_file(s, fd, offset, length);
}

/*
 * All of the body was sent, or is safe (wire_file): from now on the application may do with its file what it
 * likes. The client does not wait for what the application does in its `close`.
 */
static void close_body(pTHX_ sirius *s, SV *body, sirius_close how)
{
    if (how == SIRIUS_CLOSE_NONE)
        return;
    if (how == SIRIUS_CLOSE_PLAIN && isGV_with_GP(SvRV(body))) {
        do_close((GV *)SvRV(body), FALSE);
        return;
    }
    sirius_finish(aTHX_ s, true);
    if (!sirius_call(aTHX_ s,
                     sv_2mortal(newRV_inc((SV *)get_cv("Sirius::PSGI::Response::close_body", GV_ADD))), body,
                     NULL))
        sirius_log(aTHX_ s, "the close of the body died", ERRSV);
}

/*
 * Does everything that needs code of the application, before the head is begun. NULL: it has failed, and the
 * error is logged.
 */
static __attribute__((noinline)) SV *make_readable(pTHX_ sirius *s, SV *res, sirius_handle *h, SV **owner)
{
    bool inert, asked = false;
    HV *of = NULL;
    SV *handle = blessed_handle(aTHX_ res);
    if (handle) {
        of = SvSTASH(handle);
        res = sv_mortalcopy(res); /* its owner may drop it meanwhile */
        asked = sirius_file_class(aTHX_ s, handle, h);
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
    if (s->turn.wire.phase != SIRIUS_UNANSWERED) { /* an overload of this response has called the responder */
        sirius_fail(aTHX_ s, "an overloaded value in the response called the responder", NULL);
        return NULL;
    }
    AV *av = plain_array(res);
    if (av && AvFILLp(av) == 3) { /* of `plain`, since from an application this would be invalid there */
        *owner = sv_2mortal(av_pop(av));
        h->close = SIRIUS_CLOSE_OWN;
    }
    return res;
}

void sirius_respond(pTHX_ sirius *s, SV *res, bool may_stream, SV **writer)
{
    bool inert = false;
    sirius_handle handle = {.close = SIRIUS_CLOSE_PLAIN};
    SV *owner = NULL, *over = NULL, *trimmed = NULL;
    if (!readable(aTHX_ res, NULL, &inert) && !(res = make_readable(aTHX_ s, res, &handle, &owner)))
        return;
    /*
     * inert: not for the argument of a responder, since the application has returned a sub, which holds what
     * it has closed over
     */
    s->turn.inert = inert && !may_stream;
    parts p = {.owner = owner};
    const char *why = split(aTHX_ res, &p);
    if (!why && !p.body && !may_stream)
        why = "the response has no body: only a responder of psgi.streaming may leave it out";
    ENTER;
    if (!why)
        why = head_begin(aTHX_ s, &p, &trimmed);
    if (!why)
        why = respond_body(aTHX_ s, &p, &handle, writer, &over);
    LEAVE;
    if (over)
        over = sv_mortalcopy(over); /* what follows may run code of the application */
    if (trimmed)
        sirius_trim_log(aTHX_ s, trimmed);
    if (why)
        sirius_fail(aTHX_ s, why, NULL);
    if (over)
        close_body(aTHX_ s, over, handle.close);
}

void sirius_fail(pTHX_ sirius *s, const char *what, SV *error)
{
    static char text[] = "Internal Server Error\n";
    sirius_turn *t = &s->turn;
    sirius_log(aTHX_ s, what, error);
    if (t->wire.phase != SIRIUS_UNANSWERED) {
        if (t->wire.phase == SIRIUS_STREAMING)
            t->wire.phase = SIRIUS_BROKEN;
        return;
    }
    sr_buffer_reset(&s->head);
    sr_response_error err = wire_head_begin(&t->wire, 500, s->worker.request.request->is_head);
    if (!err)
        err =
            sr_response_field(&t->wire.response, &s->head, SR_BYTES("Content-Type"), SR_BYTES("text/plain"));
    if (err || wire_head_end(s, sizeof text - 1)) {
        t->wire.phase = SIRIUS_BROKEN;
        return;
    }
    struct iovec iov = {text, sizeof text - 1};
    t->wire.flags |= SR_REPLY_OWN;
    wire_whole(s, &iov, t->wire.response.framing == SR_FRAMING_LENGTH, sizeof text - 1);
    t->wire.left = 0;
    t->wire.phase = SIRIUS_ANSWERED;
}
