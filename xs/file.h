#ifndef SIRIUS_FILE_H
#define SIRIUS_FILE_H
/* file: the regular file behind the body of a response. */
#include "perlapi.h"

enum { SIRIUS_SMALL_FILE = 64 * 1024 }; /* files up to this size are read at once */

void sirius_file_boot(pTHX);

/* How the body of a response is closed, which PSGI asks of a server. */
typedef enum sirius_close {
    SIRIUS_CLOSE_PLAIN, /* as by IO::Handle, which runs no code of the application */
    SIRIUS_CLOSE_OWN,   /* by its method */
    SIRIUS_CLOSE_NONE,  /* it has no such method */
} sirius_close;

typedef struct sirius_handle {
    HV *class; /* of a blessed handle that leaves getline to IO::Handle, else NULL */
    sirius_close close;
} sirius_handle;

/*
 * Before a head is begun: looks at a blessed handle. May run code of the application. False: that died, and
 * $@ says of what.
 */
bool sirius_file_class(pTHX_ sirius *s, SV *handle, sirius_handle *out);

/*
 * Descriptor, position and remaining bytes of the regular file behind a handle without a class, or with the
 * one that sirius_file_class has found. False: it has to be read by getline. Runs no code of the application.
 * The descriptor is that of the handle, and stays the application's.
 */
bool sirius_file(pTHX_ SV *body, const sirius_handle *h, int *fd, off_t *offset, uint64_t *length);

#endif
