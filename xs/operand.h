#ifndef SIRIUS_OPERAND_H
#define SIRIUS_OPERAND_H
/*
 * operand: what the operation of a call refers to in another perl, a glob or the name of a method. With
 * threads that is among the lexical variables of the sub that calls: `values` is the first of these there.
 *
 * `call` is a finding of LEAF_SUB or LEAF_METHOD.
 */
#include "lookup.h"

/* The sub of the glob, or that a reference in its place refers to; NULL: there is none. */
const CV *sirius_operand_sub(pid_t pid, const sirius_finding *call, SV *const *values);

/* The name of the method. Returns its length; 0: it is not there, or has no room. */
size_t sirius_operand_method(pid_t pid, const sirius_finding *call, SV *const *values, char *to, size_t cap);

/* Whether that sub is called so in its package. */
bool sirius_operand_names(const sirius_finding *sub, sr_bytes name);

#endif
