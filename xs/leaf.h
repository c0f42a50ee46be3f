#ifndef SIRIUS_LEAF_H
#define SIRIUS_LEAF_H
/*
 * leaf: what runs within the innermost sub and leaves no context of its own: a sub in C, or a function of
 * perl such as match or sleep. The operation that perl is at tells: its kind, and for a call the glob or the
 * name of a method in it.
 */
#include "known.h"
#include "snapshot.h"

typedef struct sirius_leaf_at {
    const sirius_point *point;
    bool lasts;  /* its operation is not freed while it runs */
    bool stands; /* it was the same point before and after the inner calls were read */
} sirius_leaf_at;

/*
 * Adds "JSON::XS::encode (XS)", "CORE::match (C)" or, where only the name of a method is certain,
 * "->selectall_arrayref (method)". False: there is nothing to add, or it is not certain. *fresh is set if
 * something was looked up just now, and may not be what it was.
 */
bool sirius_leaf_add(pTHX_ sirius_known *k, const sirius_target *t, const sirius_leaf_at *l, sr_buffer *out,
                     bool *fresh);

#endif
