/* file: finds out whether the body that an application returns is a plain file, which the kernel can send. */
#include "sirius.h"

#include "perliol.h" /* PERLIO_F_UTF8 */

#include <sys/stat.h>
#include <unistd.h>

/*
 * Layers that change bytes would be bypassed. PerlIO_get_layers is no help: it asks each layer for its
 * argument, and for :via that calls a method.
 */
static bool raw_layers(pTHX_ PerlIO *f)
{
    for (const PerlIOl *l = *f; l; l = l->next)
        if (!l->tab || (strNE(l->tab->name, "unix") && strNE(l->tab->name, "perlio")) ||
            l->flags & (PERLIO_F_UTF8 | PERLIO_F_CRLF))
            return false;
    return true;
}

static CV *inherits;

/*
 * A class with its own getline must be read by it. Looking up a method may warn (a base class is not loaded)
 * or die (the base classes have no C3 order), and a warning runs code of the application.
 */
XS(sirius_xs_inherits);
XS(sirius_xs_inherits)
{
    dXSARGS;
    if (items != 1)
        croak("usage: inherits($handle)");
    GV *gv = gv_fetchmethod_autoload(SvSTASH(SvRV(ST(0))), "getline", 0);
    const CV *own = gv ? GvCV(gv) : NULL; /* only compared: the next look-up may free it */
    gv = gv_fetchmethod_autoload(gv_stashpvs("IO::Handle", GV_ADD), "getline", 0);
    ST(0) = boolSV(!own || (gv && GvCV(gv) == own));
    XSRETURN(1);
}

void sirius_file_boot(pTHX)
{
    inherits = newXS(NULL, sirius_xs_inherits, __FILE__);
}

bool sirius_file_class(pTHX_ sirius *s, SV *handle, HV **class)
{
    HV *asked = SvSTASH(handle);
    SV *answer = sirius_call(aTHX_ s, (SV *)inherits, sv_2mortal(newRV_inc(handle)), NULL);
    *class = answer == &PL_sv_yes ? asked : NULL;
    return answer != NULL;
}

/*
 * Where the next getline would read: the position of the descriptor less what is buffered. PerlIO_tell does
 * not know of sysread.
 */
static off_t position(pTHX_ PerlIO *f, int fd)
{
    if (PerlIOBase(f)->flags & PERLIO_F_WRBUF && PerlIO_flush(f) != 0)
        return -1;
    SSize_t buffered = PerlIO_has_cntptr(f) ? PerlIO_get_cnt(f) : 0;
    return lseek(fd, 0, SEEK_CUR) - (buffered > 0 ? buffered : 0);
}

bool sirius_file(pTHX_ SV *body, const HV *class, int *fd, off_t *offset, uint64_t *length)
{
    SV *handle = SvRV(body);
    IO *io = isGV_with_GP(handle) ? GvIO((GV *)handle) : SvTYPE(handle) == SVt_PVIO ? (IO *)handle : NULL;
    if (!io || SvTIED_mg((SV *)io, PERL_MAGIC_tiedscalar) || !IoIFP(io) ||
        (SvOBJECT(handle) && SvSTASH(handle) != class))
        return false;
    PerlIO *f = IoIFP(io);
    struct stat st;
    /* first, because a layer may be written in Perl, and then its fileno is code too */
    if (!raw_layers(aTHX_ f))
        return false;
    *fd = PerlIO_fileno(f);
    if (*fd < 0 || fstat(*fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return false;
    if ((*offset = position(aTHX_ f, *fd)) < 0)
        return false;
    *length = st.st_size > *offset ? (uint64_t)(st.st_size - *offset) : 0;
    return true;
}
