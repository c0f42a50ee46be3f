/* pass: notes with descriptors between two processes of the server. */
#include "pass.h"

#include "net/passing.h"

bool sirius_send(pTHX_ int line, SV *bytes, const int *fds, int n)
{
    STRLEN len;
    const char *at = SvPVbyte(bytes, len);
    return sr_passing_send(line, at, len, fds, n, 0) >= 0;
}

SV *sirius_receive(pTHX_ int line, int fds[SIRIUS_PASSED_MAX], int *n)
{
    SV *bytes = newSV(SIRIUS_PASSED_BYTES);
    ssize_t got;
    do {
        *n = SIRIUS_PASSED_MAX;
        got = sr_passing_receive(line, SvPVX(bytes), SIRIUS_PASSED_BYTES, fds, n, NULL, 0);
        /* ECONNRESET, once: the other end was closed and had not read all. What it had written is still there */
    } while (got < 0 && errno == ECONNRESET);
    if (got > 0) {
        SvPOK_only(bytes);
        SvCUR_set(bytes, got);
        *SvEND(bytes) = 0;
        return bytes;
    }
    SvREFCNT_dec(bytes);
    if (got == 0)
        errno = 0;
    return NULL;
}
