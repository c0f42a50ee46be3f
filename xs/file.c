/* file: finds out whether the body that an application returns is a plain file, which the kernel can send. */
#include "file.h"

#include "call.h"
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

static CV *look;

static const CV *method(pTHX_ HV *stash, const char *name)
{
    GV *gv = stash ? gv_fetchmethod_autoload(stash, name, 0) : NULL;
    return gv ? GvCV(gv) : NULL; /* only compared: the next look-up may free it */
}

/*
 * look($handle): a class with its own getline must be read by it, and one with its own close be closed by it.
 * Looking up a method may warn (a base class is not loaded) or die (the base classes have no C3 order), and a
 * warning runs code of the application. Returns 3 if it has its own getline, else a sirius_close.
 */
enum { OWN_GETLINE = 3 };

XS(sirius_xs_look);
XS(sirius_xs_look)
{
    dXSARGS;
    if (items != 1)
        croak("usage: look($handle)");
    HV *class = SvSTASH(SvRV(ST(0))), *plain = gv_stashpvs("IO::Handle", GV_ADD);
    const CV *of_class = method(aTHX_ class, "getline");
    bool reads = of_class && of_class != method(aTHX_ plain, "getline");
    of_class = method(aTHX_ class, "close");
    sirius_close close = !of_class                                  ? SIRIUS_CLOSE_NONE
                         : of_class != method(aTHX_ plain, "close") ? SIRIUS_CLOSE_OWN
                                                                    : SIRIUS_CLOSE_PLAIN;
    ST(0) = sv_2mortal(newSViv(reads ? OWN_GETLINE : (IV)close));
    XSRETURN(1);
}

void sirius_file_boot(pTHX)
{
    look = newXS(NULL, sirius_xs_look, __FILE__);
}

bool sirius_file_class(pTHX_ sirius *s, SV *handle, sirius_handle *out)
{
    HV *asked = SvSTASH(handle);
    SV *answer = sirius_call(aTHX_ s, (SV *)look, sv_2mortal(newRV_inc(handle)), NULL);
    IV what = answer ? SvIV(answer) : OWN_GETLINE;
    if (what != OWN_GETLINE)
        *out = (sirius_handle){asked, (sirius_close)what};
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

bool sirius_file(pTHX_ SV *body, const sirius_handle *h, int *fd, off_t *offset, uint64_t *length)
{
    SV *handle = SvRV(body);
    IO *io = isGV_with_GP(handle) ? GvIO((GV *)handle) : SvTYPE(handle) == SVt_PVIO ? (IO *)handle : NULL;
    if (!io || SvTIED_mg((SV *)io, PERL_MAGIC_tiedscalar) || !IoIFP(io) ||
        (SvOBJECT(handle) && SvSTASH(handle) != h->class))
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
    /*
     * without a block it is empty, or is made when it is read, as those of proc and sysfs: is there as much
     * as it says?
     */
    char last;
    return st.st_blocks || *length <= SIRIUS_SMALL_FILE || pread(*fd, &last, 1, st.st_size - 1) == 1;
}
