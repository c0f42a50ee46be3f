#include "remote.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef SR_PORTABLE /* no other system has a call for this that needs no debugger */
bool sirius_remote_copy(pid_t pid, void *to, const void *from, size_t len)
{
    PERL_UNUSED_VAR(pid);
    PERL_UNUSED_VAR(to);
    PERL_UNUSED_VAR(from);
    PERL_UNUSED_VAR(len);
    errno = ENOSYS;
    return false;
}

bool sirius_remote_pieces(pid_t pid, const sirius_piece *pieces, size_t n)
{
    PERL_UNUSED_VAR(pid);
    PERL_UNUSED_VAR(pieces);
    errno = ENOSYS;
    return n == 0;
}
#else
bool sirius_remote_copy(pid_t pid, void *to, const void *from, size_t len)
{
    struct iovec ours = {.iov_base = to, .iov_len = len}, its = {.iov_base = (void *)from, .iov_len = len};
    ssize_t n = process_vm_readv(pid, &ours, 1, &its, 1, 0);
    if (n >= 0 && n != (ssize_t)len)
        errno = EFAULT;
    return n == (ssize_t)len;
}

bool sirius_remote_pieces(pid_t pid, const sirius_piece *pieces, size_t n)
{
    enum { AT_ONCE = 256 };
    while (n) {
        struct iovec ours[AT_ONCE], its[AT_ONCE];
        size_t some = n < AT_ONCE ? n : AT_ONCE;
        ssize_t len = 0;
        for (size_t i = 0; i < some; i++) {
            ours[i] = (struct iovec){.iov_base = pieces[i].to, .iov_len = pieces[i].len};
            its[i] = (struct iovec){.iov_base = (void *)pieces[i].from, .iov_len = pieces[i].len};
            len += (ssize_t)pieces[i].len;
        }
        ssize_t got = process_vm_readv(pid, ours, some, its, some, 0);
        if (got != len) {
            if (got >= 0)
                errno = EFAULT;
            return false;
        }
        pieces += some;
        n -= some;
    }
    return true;
}
#endif

/* Page by page: what lies after its end may not be mapped. */
size_t sirius_remote_string(pid_t pid, char *to, size_t cap, const char *from)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), used = 0;
    while (used < cap - 1) {
        size_t some = page - ((uintptr_t)from + used) % page;
        if (some > cap - 1 - used)
            some = cap - 1 - used;
        if (!sirius_remote_at(pid, to + used, from, used, some))
            break;
        const char *end = memchr(to + used, 0, some);
        if (end)
            return (size_t)(end - to);
        used += some;
    }
    return 0;
}

/* Where the name is that CopFILE gives; NULL: nowhere. */
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
    if (!CopFILEGV(cop) || !sirius_remote_copy(pid, &gv, CopFILEGV(cop), sizeof gv) ||
        !sirius_remote_copy(pid, &body, gv.sv_any, sizeof body) || !body.xiv_u.xivu_namehek)
        return NULL;
    return (const char *)((uintptr_t)body.xiv_u.xivu_namehek + STRUCT_OFFSET(HEK, hek_key) +
                          2); /* after "_<" */
#endif
}

size_t sirius_remote_file(pTHX_ pid_t pid, const COP *cop, char *to, size_t cap)
{
    const char *file = name_of_file(aTHX_ pid, cop);
    return file ? sirius_remote_string(pid, to, cap, file) : 0;
}
