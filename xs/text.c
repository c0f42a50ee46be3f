/* text: values of the application as bytes, and what is wrong with them in words. */
#include "text.h"

#include "log/text.h"

bool sirius_bytes_of(pTHX_ SV *sv, sr_bytes *out)
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

enum { QUOTED_MAX = 100 }; /* bytes of a value in a message */

const char *sirius_quote(pTHX_ const char *before, sr_bytes value, const char *after)
{
    sr_buffer text;
    sr_buffer_init(&text);
    value.len = value.len < QUOTED_MAX ? value.len : QUOTED_MAX;
    int len = sr_logtext_add(&text, value) ? (int)sr_buffer_len(&text) : 0;
    SV *message = sv_2mortal(newSVpvf("%s'%.*s'%s", before, len, len ? sr_buffer_at(&text) : "", after));
    sr_buffer_free(&text);
    return SvPVX(message);
}

const char *sirius_header_error(pTHX_ sr_response_error err, sr_bytes name, sr_bytes value)
{
    if (err == SR_RESPONSE_BAD_NAME && name.len)
        return sirius_quote(aTHX_ "the header name ", name, " contains a character that is not allowed");
    if (err == SR_RESPONSE_BAD_VALUE)
        return sirius_quote(aTHX_ "the value of the header ", name, " contains a control character");
    if (err == SR_RESPONSE_BAD_LENGTH)
        return sirius_quote(aTHX_ "Content-Length is ", value,
                            ", which is not a number or differs from an earlier one");
    return err ? sr_response_error_text(err) : NULL;
}
