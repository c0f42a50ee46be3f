#ifndef TAP_H
#define TAP_H
/* tap: the part of Test::More these tests need. One program, one plan; not for threads. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int tap_run, tap_failed;

__attribute__((format(printf, 2, 3))) static inline bool ok(bool passed, const char *name, ...)
{
    va_list args;
    va_start(args, name);
    printf(passed ? "ok %d - " : "not ok %d - ", ++tap_run);
    vprintf(name, args);
    printf("\n");
    va_end(args);
    tap_failed += !passed;
    return passed;
}

static inline bool is_int(long long got, long long want, const char *name)
{
    bool passed = ok(got == want, "%s", name);
    if (!passed)
        printf("# got %lld, want %lld\n", got, want);
    return passed;
}

static inline void tap_bytes(const char *label, const char *at, size_t len)
{
    printf("# %s: \"", label);
    for (size_t i = 0; i < len && i < 400; i++) {
        unsigned char c = (unsigned char)at[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\')
            putchar(c);
        else
            printf("\\x%02x", c);
    }
    printf("\"%s\n", len > 400 ? "..." : "");
}

static inline bool is_bytes(const char *got, size_t len, const char *want, const char *name)
{
    bool passed = ok(len == strlen(want) && (len == 0 || memcmp(got, want, len) == 0), "%s", name);
    if (!passed) {
        tap_bytes("got ", got, len);
        tap_bytes("want", want, strlen(want));
    }
    return passed;
}

/* For what a portable build (SR_PORTABLE) has nothing of, or does in another way. */
#ifdef SR_PORTABLE
enum { ON_LINUX = 0 };
#else
enum { ON_LINUX = 1 };
#endif

/* Whether to run tests about something that a portable build lacks. If not, says which and why. */
static inline bool on_linux(const char *what, const char *why)
{
    return ON_LINUX || !ok(true, "skipped: %s: on Linux only: %s", what, why);
}

static inline int done_testing(void)
{
    printf("1..%d\n", tap_run);
    return tap_failed != 0;
}

#endif
