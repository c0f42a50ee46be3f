#ifndef SIRIUS_NAMING_H
#define SIRIUS_NAMING_H
/*
 * naming: names of subs and files of another perl, looked up in its memory (remote.h), in printable ASCII.
 * They are right if what they were asked for is there before and after; else they may be garbage, and harm
 * nobody.
 */
#include "sirius.h"

#include "base/buffer.h"

typedef struct sirius_name_head { /* before a name in the memory of perl */
    U32 hash;
    I32 len;
} sirius_name_head;

/* The name of a sub, as it was when that was read */
typedef struct sirius_name_at {
    const HV *package;
    const HEK *name; /* NULL: it has none, or was not given one */
    sirius_name_head head;
} sirius_name_at;

/*
 * Adds "Package::sub" of a sub whose body was copied to *body: it may be gone by now. A name that it was
 * given may be another one by now: then it has none. False: it has no name; *out may have grown. A package of
 * Plack for app.psgi is "main".
 */
bool sirius_naming_sub(pid_t pid, sr_buffer *out, const XPVCV *body, const sirius_name_at *given);

/*
 * The same without the name that it may have been given: "Package::__ANON__", the package being the one of
 * its code.
 */
bool sirius_naming_code(pid_t pid, sr_buffer *out, const XPVCV *body);

/* Adds the file of a statement, which was copied to *cop. */
bool sirius_naming_file(pTHX_ pid_t pid, sr_buffer *out, const COP *cop);

#endif
