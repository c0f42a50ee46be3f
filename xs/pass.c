/* pass: notes with descriptors between two processes of the server. */
#include "pass.h"

bool sirius_send(pTHX_ int line, SV *bytes, const int *fds, int n)
{
    STRLEN len;
    const char *at = SvPVbyte(bytes, len);
    return sr_packets_send(line, at, len, fds, n) == 0;
}

SV *sirius_receive(pTHX_ int line, int fds[SIRIUS_PASSED_MAX], int *n)
{
    SV *bytes = newSV(SIRIUS_PASSED_BYTES);
    *n = SIRIUS_PASSED_MAX;
    ssize_t got = sr_packets_receive(line, SvPVX(bytes), SIRIUS_PASSED_BYTES, fds, n);
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
