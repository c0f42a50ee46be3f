#include "title.h"

#include "net/self.h"

static char shown[256];
static char name[16];

void sirius_title_name(const char *text)
{
    if (text != name)
        my_snprintf(name, sizeof name, "%.15s", text);
    sr_self_name(name);
}

int sirius_title_refused(void)
{
    return sr_self_nameless();
}

/*
 * Perl has measured the memory of the arguments, and moved away the environment that followed them
 * (perl_parse in perl.c). All of it is cleared: if the last byte of the arguments is not 0, the kernel reads
 * on into the former environment.
 */
static void show(pTHX)
{
    size_t length = strlen(shown);
    if (!length || PL_origalen <= 1)
        return;
    if (length >= PL_origalen)
        length = PL_origalen - 1;
    memset(PL_origargv[0], 0, PL_origalen);
    memcpy(PL_origargv[0], shown, length);
    for (int i = 1; i < PL_origargc; i++)
        PL_origargv[i] = NULL; /* as perl does */
}

void sirius_title_show(pTHX_ const char *text)
{
    my_snprintf(shown, sizeof shown, "%.255s", text);
    show(aTHX);
}

static Perl_ppaddr_t do_file;

/* Code that was compiled while the hook was set always calls this, even later. */
static OP *kept_do_file(pTHX)
{
    if (PL_ppaddr[OP_DOFILE] == kept_do_file) {
        PL_ppaddr[OP_DOFILE] = do_file;
        show(aTHX);
        sirius_title_name(name);
    }
    return do_file(aTHX);
}

void sirius_title_keep(void)
{
    if (PL_ppaddr[OP_DOFILE] == kept_do_file || !name[0])
        return;
    do_file = PL_ppaddr[OP_DOFILE];
    PL_ppaddr[OP_DOFILE] = kept_do_file;
}
