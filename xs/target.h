#ifndef SIRIUS_TARGET_H
#define SIRIUS_TARGET_H
/*
 * target: where the interpreter of another process lies, which this one has not forked. It must run the very
 * perl that this process does: the program or library that has the code of perl is the same to the byte, so
 * what is known about structs here holds there.
 */
#include "sirius.h"

typedef struct sirius_target {
    pid_t pid;
    uintptr_t away; /* added to the address of a variable of our interpreter: where that of its own is */
} sirius_target;

/*
 * `base`: where a file is mapped in the process, from its first byte. Returns 1 if it is our perl, and *t is
 * set; 0 if it is anything else; -1 with errno if its memory is not readable.
 */
int sirius_target_at(pTHX_ sirius_target *t, pid_t pid, uintptr_t base);

/* A variable of its main interpreter, such as PL_op, as an address there. */
#define SIRIUS_THERE(t, variable) ((const void *)((uintptr_t) & (variable) + (t)->away))

#endif
