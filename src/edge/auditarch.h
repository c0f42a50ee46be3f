#ifndef SR_AUDITARCH_H
#define SR_AUDITARCH_H
/*
 * auditarch: SR_AUDITARCH is how the kernel names this machine to a filter of system calls that sandbox.c
 * writes. Not defined: it writes none here. A machine of 32 bits has most calls twice, for values of 32 and
 * of 64 bits, and which of them a C library takes changes with its version; some have one call for all that
 * is done with sockets.
 */
#include <linux/audit.h>

#ifndef __LP64__
#elif defined __x86_64__
#define SR_AUDITARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define SR_AUDITARCH AUDIT_ARCH_AARCH64
#elif defined __s390x__
#define SR_AUDITARCH AUDIT_ARCH_S390X
#elif defined __powerpc64__ && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SR_AUDITARCH AUDIT_ARCH_PPC64LE
#elif defined __powerpc64__
#define SR_AUDITARCH AUDIT_ARCH_PPC64
#elif defined __riscv && defined AUDIT_ARCH_RISCV64
#define SR_AUDITARCH AUDIT_ARCH_RISCV64
#elif defined __loongarch__ && defined AUDIT_ARCH_LOONGARCH64
#define SR_AUDITARCH AUDIT_ARCH_LOONGARCH64
#endif

#endif
