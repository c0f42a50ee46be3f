/* place: which line of Perl a worker has reached, read from its memory (remote.h). */
#include "place.h"

#include "remote.h"

size_t sirius_place_copy(pTHX_ pid_t pid, char *name, size_t cap, UV *line)
{
    const COP *at;
    COP cop;
    *line = 0;
    if (!sirius_remote_copy(pid, &at, &PL_curcop, sizeof at) || !at ||
        !sirius_remote_copy(pid, &cop, at, sizeof cop))
        return 0;
    *line = (UV)CopLINE(&cop);
    return sirius_remote_file(aTHX_ pid, &cop, name, cap);
}

SV *sirius_place(pTHX_ IV pid, UV *line)
{
    char name[1024];
    size_t len = sirius_place_copy(aTHX_(pid_t) pid, name, sizeof name, line);
    return len ? newSVpvn(name, len) : NULL;
}
