#include "input.h"

#include <unistd.h>

enum { KEEP_BYTES = 64 * 1024 }; /* larger buffers are not kept for the next request */

static GV *handle(pTHX_ PerlIO *f)
{
    GV *gv = (GV *)newSV(0);
    gv_init(gv, gv_stashpvs("Sirius", GV_ADD), "input", 5, 0);
    IO *io = GvIOn(gv);
    IoIFP(io) = f;
    IoTYPE(io) = IoTYPE_RDONLY;
    return gv;
}

SV *sirius_input_new(pTHX_ sirius_input *in)
{
    in->bytes = newSVpvs("");
    SV *ref = sv_2mortal(newRV_inc(in->bytes));
    in->file = PerlIO_openn(aTHX_ "scalar", "r", -1, 0, 0, NULL, 1, &ref);
    in->gv = handle(aTHX_ in->file);
    in->gv_flags = SvFLAGS(in->gv);
    in->io_flags = SvFLAGS(GvIOp(in->gv));
    in->stash = SvSTASH(GvIOp(in->gv));
    in->top = in->file ? *in->file : NULL;
    in->layer_flags = in->top ? in->top->flags : 0;
    return newRV_noinc((SV *)in->gv);
}

void sirius_input_fill(pTHX_ sirius_input *in, sr_bytes body)
{
    sv_setpvn(in->bytes, body.at, body.len);
}

static bool glob_untouched(const sirius_input *in)
{
    const GV *gv = in->gv;
    if (SvREFCNT(gv) != 1 || SvFLAGS(gv) != in->gv_flags || !GvGP(gv) || GvREFCNT(gv) != 1 || GvSV(gv) ||
        GvAV(gv) || GvHV(gv) || GvCV(gv) || GvFORM(gv) || !GvIOp(gv))
        return false;
    IO *io = GvIOp(gv);
    return SvREFCNT(io) == 1 && SvFLAGS(io) == in->io_flags && SvSTASH(io) == in->stash &&
           !SvMAGIC((SV *)io) && IoIFP(io) == in->file && !IoOFP(io) && IoTYPE(io) == IoTYPE_RDONLY &&
           !IoFLAGS(io) && !IoFMT_NAME(io) && !IoTOP_NAME(io) && !IoBOTTOM_NAME(io) && !IoPAGE(io) &&
           IoPAGE_LEN(io) == 60 && !IoLINES_LEFT(io);
}

bool sirius_input_reusable(pTHX_ const sirius_input *in, const SV *value)
{
    const U32 passing = PERLIO_F_EOF | PERLIO_F_ERROR;
    PERL_UNUSED_CONTEXT;
    if (SvTYPE(value) != SVt_IV || !SvROK(value) || SvREADONLY(value) || (const GV *)SvRV(value) != in->gv)
        return false;
    if (!in->file || !glob_untouched(in))
        return false;
    return *in->file == in->top && ((in->top->flags ^ in->layer_flags) & ~passing) == 0 &&
           SvREFCNT(in->bytes) == 2 && SvTYPE(in->bytes) == SVt_PV && SvLEN(in->bytes) <= KEEP_BYTES;
}

void sirius_input_empty(pTHX_ sirius_input *in)
{
    IoLINES(GvIOp(in->gv)) = 0;
    if (PerlIO_tell(in->file) != 0)
        PerlIO_seek(in->file, 0, SEEK_SET);
    in->top->flags = in->layer_flags;
    if (SvCUR(in->bytes))
        sv_setpvs(in->bytes, "");
}

void sirius_input_forget(pTHX_ sirius_input *in)
{
    SvREFCNT_dec(in->bytes);
    in->bytes = NULL;
}

SV *sirius_input_file(pTHX_ int fd)
{
    lseek(fd, 0, SEEK_SET);
    PerlIO *f = PerlIO_fdopen(fd, "r");
    if (!f)
        close(fd);
    return newRV_noinc((SV *)handle(aTHX_ f));
}
