/*
 * file: is the body that an application returns a plain file, so that the kernel can send it?
 */
#include "sirius.h"

#include "perliol.h" /* PERLIO_F_UTF8 */

#include <sys/stat.h>
#include <unistd.h>

/* Layers that change bytes would be passed by. */
static bool raw_layers(pTHX_ PerlIO *f)
{
    AV *layers = (AV *)sv_2mortal((SV *)PerlIO_get_layers(aTHX_ f));
    for (SSize_t i = 0; i + 2 <= AvFILLp(layers); i += 3) {
        SV *name = AvARRAY(layers)[i], *flags = AvARRAY(layers)[i + 2];
        if (!name || !flags || !SvPOK(name) || (strNE(SvPVX(name), "unix") && strNE(SvPVX(name), "perlio")) ||
            (SvIOK(flags) && (SvIV(flags) & (PERLIO_F_UTF8 | PERLIO_F_CRLF))))
            return false;
    }
    return true;
}

/* A class with a getline of its own means something by it. */
static bool own_getline(pTHX_ SV *handle)
{
    if (!SvOBJECT(handle))
        return false;
    GV *own = gv_fetchmethod_autoload(SvSTASH(handle), "getline", 0);
    GV *std = gv_fetchmethod_autoload(gv_stashpvs("IO::Handle", GV_ADD), "getline", 0);
    return own && (!std || GvCV(own) != GvCV(std));
}

/* Where the next getline would read: the descriptor's position less what is buffered. PerlIO_tell knows
 * nothing of sysread. */
static off_t position(pTHX_ PerlIO *f, int fd)
{
    if (PerlIOBase(f)->flags & PERLIO_F_WRBUF && PerlIO_flush(f) != 0)
        return -1;
    SSize_t buffered = PerlIO_has_cntptr(f) ? PerlIO_get_cnt(f) : 0;
    return lseek(fd, 0, SEEK_CUR) - (buffered > 0 ? buffered : 0);
}

bool sirius_file(pTHX_ SV *body, int *fd, off_t *offset, uint64_t *length)
{
    SV *handle = SvRV(body);
    IO *io = isGV_with_GP(handle) ? GvIO((GV *)handle) : SvTYPE(handle) == SVt_PVIO ? (IO *)handle : NULL;
    if (!io || SvTIED_mg((SV *)io, PERL_MAGIC_tiedscalar) || !IoIFP(io) || own_getline(aTHX_ handle))
        return false;
    PerlIO *f = IoIFP(io);
    struct stat st;
    if (!raw_layers(aTHX_ f)) /* first: a layer may be written in Perl, and then its fileno is */
        return false;
    *fd = PerlIO_fileno(f);
    if (*fd < 0 || fstat(*fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return false;
    if ((*offset = position(aTHX_ f, *fd)) < 0)
        return false;
    *length = st.st_size > *offset ? (uint64_t)(st.st_size - *offset) : 0;
    return true;
}
