/* base64: the examples of RFC 4648 10, and what is none. */
#include "../../src/base/base64.h"
#include "guard.h"
#include "tap.h"

int main(void)
{
    static const char *const rows[][2] = {{"", ""},
                                          {"f", "Zg=="},
                                          {"fo", "Zm8="},
                                          {"foo", "Zm9v"},
                                          {"foob", "Zm9vYg=="},
                                          {"fooba", "Zm9vYmE="},
                                          {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char to[16];
        size_t bytes = strlen(rows[i][0]), len = strlen(rows[i][1]);
        sr_base64_write(to, sr_bytes_of(guarded(rows[i][0], bytes), bytes));
        is_bytes(to, SR_BASE64_LEN(bytes), rows[i][1], rows[i][1]);
        size_t n = sr_base64_read(to, sr_bytes_of(guarded(rows[i][1], len), len));
        is_bytes(to, n, rows[i][0], "and back");
    }
    static const char *const bad[] = {"Z",    "Zg",   "Zg=",  "Zh==",     "Zm9=", "Z===", "====",
                                      "Zm 9", "Zm9-", "Zm9_", "Zg==Zg==", "Z=g=", "=Zm9", "Zm9v\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char to[16];
        ok(sr_base64_read(to, sr_bytes_of(bad[i], strlen(bad[i]))) == SIZE_MAX, "not base64: %s", bad[i]);
    }
    char all[256], text[SR_BASE64_LEN(256)];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    sr_base64_write(text, sr_bytes_of(all, sizeof all));
    size_t n = sr_base64_read(text, sr_bytes_of(text, sizeof text));
    ok(n == sizeof all && memcmp(text, all, n) == 0, "all bytes, in place");
    int right = 0;
    for (int c = 0; c < 256; c++)
        right += c && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", c)
                     ? sr_base64_value((char)c) >= 0
                     : sr_base64_value((char)c) == -1;
    is_int(right, 256, "which bytes are digits");
    return done_testing();
}
