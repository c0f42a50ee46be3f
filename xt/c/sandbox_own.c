/*
 * sandbox_own: the filter that sandbox.c writes where libseccomp is missing, by the same tries as
 * xt/c/sandbox.c
 */
#undef SR_SECCOMP
#define EDGE OWN_EDGE
#define KEEPER OWN_KEEPER
#define BOTH OWN_BOTH
#include "edge/sandbox.c"
#undef EDGE
#undef KEEPER
#undef BOTH

#include "sandbox.c"
