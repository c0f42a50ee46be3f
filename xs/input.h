#ifndef SIRIUS_INPUT_H
#define SIRIUS_INPUT_H
/*
 * input: psgi.input, a real file handle without a name, as open(my $fh, '<', \$bytes) makes it.
 *
 * It has to be a plain reference to a glob, not a scalar with magic, because XS code that wants a handle
 * (addfile of Digest::MD5) does not call magic. Making one costs 2 us, so the handle of a hash in the pool is
 * used again, as long as the application has only called read, seek and tell.
 */
#include "perlapi.h"

#include "base/bytes.h"
#include "perliol.h"

typedef struct sirius_input {
    GV *gv;    /* the reference in the environment counts it, nothing else */
    SV *bytes; /* the content that the handle reads. Counted here and by the layer */
    PerlIO *file;
    PerlIOl *top; /* its only layer */
    HV *stash;    /* of the IO in gv, for comparison */
    U32 gv_flags, io_flags, layer_flags;
} sirius_input;

SV *sirius_input_new(pTHX_ sirius_input *in); /* a reference to a new, empty handle */
void sirius_input_fill(pTHX_ sirius_input *in, sr_bytes body);

/* Whether the handle can be used again. `value` is what new has returned, and is unchanged. */
bool sirius_input_reusable(pTHX_ const sirius_input *in, const SV *value);
void sirius_input_empty(
    pTHX_ sirius_input *in); /* for a reusable one: back to its start, with nothing in it */
void sirius_input_forget(pTHX_ sirius_input *in);

SV *sirius_input_file(pTHX_ int fd); /* a handle on a file, from its start; takes over fd */

#endif
