/* resident: what this process has in RAM */
#include "base/resident.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MIB = 1 << 20, SIZE = 64 * MIB };

int main(void)
{
    sr_resident r, none = {.fd = -1};
    sr_resident_open(&r);
    if (r.fd < 0) {
        printf("1..0 # SKIP no /proc\n");
        return 0;
    }
    ok(fcntl(r.fd, F_GETFD) & FD_CLOEXEC, "close-on-exec");
    uint64_t before = sr_resident_bytes(&r);
    ok(before > MIB / 2 && before < UINT64_C(1) << 40, "a plausible size (%.1f MiB)", (double)before / MIB);
    char *block = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t reserved = sr_resident_bytes(&r);
    ok(reserved < before + SIZE / 2, "memory that was never touched does not count");
    memset(block, 1, SIZE);
    uint64_t touched = sr_resident_bytes(&r);
    ok(touched > before + SIZE / 2, "what was does (%.1f MiB more)", (double)(touched - before) / MIB);
    munmap(block, SIZE);
    ok(sr_resident_bytes(&r) < touched - SIZE / 2, "until it is given back");
    int fd = r.fd;
    sr_resident_close(&r);
    ok(fcntl(fd, F_GETFD) < 0 && r.fd == -1, "closed");
    sr_resident_close(&r);
    is_int((long long)sr_resident_bytes(&r), 0, "closed twice: nothing is known");
    is_int((long long)sr_resident_bytes(&none), 0, "never open: neither");
    return done_testing();
}
