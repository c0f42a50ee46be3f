/*
 * alternate: one connection to each of several servers, which are asked in turn, 50 requests each, for so
 * many seconds. What disturbs the machine disturbs all of them alike, so their latencies can be compared to a
 * few percent where those of one server cannot. Prints, for each, the number of requests, and p50, p99 and
 * p99.9 in ns.
 *   cc -O2 -o /tmp/alternate bench/alternate.c && /tmp/alternate SECONDS PATH PORT PORT ...
 */
#include "loopback.h"

#include <string.h>
#include <unistd.h>

enum { SERVERS = 8, IN_A_ROW = 50, LATENCIES = 1 << 23 };

static int order(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    static uint32_t *ns[SERVERS];
    static size_t n[SERVERS];
    int fd[SERVERS], servers = argc - 3;
    char text[4096];
    if (servers < 1 || servers > SERVERS) {
        fprintf(stderr, "usage: alternate SECONDS PATH PORT [PORT ...]\n");
        return 1;
    }
    int len = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", argv[2]);
    for (int i = 0; i < servers; i++) {
        fd[i] = connect_to(atoi(argv[3 + i]));
        if (!(ns[i] = malloc(LATENCIES * sizeof *ns[i])))
            fail("malloc");
    }
    int64_t until = now() + (int64_t)(atof(argv[1]) * 1e9);
    while (now() < until)
        for (int i = 0; i < servers; i++)
            for (int k = 0; k < IN_A_ROW && n[i] < LATENCIES; k++) {
                char in[4096];
                int64_t began = now();
                if (write(fd[i], text, (size_t)len) != len)
                    fail("write");
                ssize_t got = read(fd[i], in, sizeof in);
                if (got < 12 || memcmp(in, "HTTP/1.1 200", 12) != 0)
                    fail("no 200");
                ns[i][n[i]++] = (uint32_t)(now() - began);
            }
    for (int i = 0; i < servers; i++) {
        qsort(ns[i], n[i], sizeof *ns[i], order);
        printf("%zu %u %u %u\n", n[i], ns[i][n[i] / 2], ns[i][n[i] * 99 / 100], ns[i][n[i] * 999 / 1000]);
    }
    return 0;
}
