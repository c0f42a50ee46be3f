/*
 * place: finds the line of Perl that a worker executes. It is read from the memory of that process, which
 * need not cooperate: it may be stopped, or in C code with all signals blocked. The worker is a fork of this
 * process, so its interpreter is at the same address. The kernel returns EPERM where it would not let us
 * debug the worker.
 */
#include "sirius.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static bool copy(pid_t pid, void *to, const void *from, size_t len)
{
    struct iovec ours = {.iov_base = to, .iov_len = len}, its = {.iov_base = (void *)from, .iov_len = len};
    return process_vm_readv(pid, &ours, 1, &its, 1, 0) == (ssize_t)len;
}

/* Copies up to the NUL, or cap - 1 bytes, page by page: the memory after the string may not be mapped. */
static size_t copy_string(pid_t pid, char *to, size_t cap, const char *from)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), used = 0;
    while (used < cap - 1) {
        size_t some = page - (uintptr_t)(from + used) % page;
        if (some > cap - 1 - used)
            some = cap - 1 - used;
        if (!copy(pid, to + used, from + used, some))
            break;
        const char *end = memchr(to + used, 0, some);
        if (end)
            return (size_t)(end - to);
        used += some;
    }
    return 0; /* no file name is that long */
}

/* The address of the name that CopFILE would return. NULL: there is none. */
static const char *name_of_file(pTHX_ pid_t pid, const COP *cop)
{
#ifdef USE_ITHREADS
    PERL_UNUSED_CONTEXT;
    PERL_UNUSED_VAR(pid);
    return CopFILE(cop);
#else
    GV gv;
    XPVGV body;
    PERL_UNUSED_CONTEXT;
    if (!CopFILEGV(cop) || !copy(pid, &gv, CopFILEGV(cop), sizeof gv) ||
        !copy(pid, &body, gv.sv_any, sizeof body))
        return NULL;
    return HEK_KEY(body.xiv_u.xivu_namehek) + 2; /* skips "_<" */
#endif
}

size_t sirius_place_copy(pTHX_ pid_t pid, char *name, size_t cap, UV *line)
{
    const COP *at;
    COP cop;
    *line = 0;
    if (!copy(pid, &at, &PL_curcop, sizeof at) || !at || !copy(pid, &cop, at, sizeof cop))
        return 0;
    const char *file = name_of_file(aTHX_ pid, &cop);
    *line = (UV)CopLINE(&cop);
    return file ? copy_string(pid, name, cap, file) : 0;
}

SV *sirius_place(pTHX_ IV pid, UV *line)
{
    char name[1024];
    size_t len = sirius_place_copy(aTHX_(pid_t) pid, name, sizeof name, line);
    return len ? newSVpvn(name, len) : NULL;
}
