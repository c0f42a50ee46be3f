#ifndef SIRIUS_LEAF_H
#define SIRIUS_LEAF_H
/*
 * leaf: what runs within the innermost sub and leaves no context of its own: a sub in C, or a function of perl such as match or
 * sleep. The operation that perl is at tells: its kind, and for a call the glob or the name of a method in it.
 */
#include "known.h"
#include "snapshot.h"

/*
 * Adds "JSON::XS::encode (XS)" or "CORE::match (C)". False: there is nothing to add, or it is not certain. `lasts`: the operation is
 * not freed while it runs. *fresh is set if something was looked up just now, and may not be what it was.
 */
bool sirius_leaf_add(pTHX_ sirius_known *k, pid_t pid, const sirius_point *p, bool lasts, sr_buffer *out,
                     bool *fresh);

#endif
