#include "report.h"

#include "../log/sink.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { TENTH = 100 }; /* ms */

bool sr_report(sr_edge *ed, const char *text)
{
    int fd = ed->report >= 0 ? ed->report : STDERR_FILENO;
    ssize_t n;
    do
        n = sr_sink_write(fd, text, strlen(text)); /* STDERR may be a pipe that nobody reads, and blocks */
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)strlen(text);
}

int sr_report_begin(const sr_edge *ed, char *out, int32_t pid, const char *what)
{
    if (ed->report >= 0)
        return snprintf(out, SR_REPORT_BEGIN, "%d %s ", (int)pid, what);
    bool warns = strcmp(what, "more") == 0 || strcmp(what, "slow") == 0;
    return snprintf(out, SR_REPORT_BEGIN, "[sirius %d] %s: ", (int)pid, warns ? "warn" : "error");
}

bool sr_report_late(sr_edge *ed, uint32_t slot, int32_t pid, const char *what, int64_t ns, const char *end)
{
    char line[SR_TEXT_LINE_MAX + SR_REQUEST_ID_MAX + 128], text[SR_TEXT_LINE_MAX], made[SR_REQUEST_ID_MADE];
    sr_bytes id = sr_text_id(ed, slot, made);
    int len = (int)sr_text_line(ed, slot, text);
    int64_t tenths = ns / (TENTH * SR_MILLISECOND);
    int n = sr_report_begin(ed, line, pid, "timeout");
    snprintf(line + n, sizeof line - (size_t)n, "%.*s %s for %lld.%lld s, %s; request id %.*s\n", len, text,
             what, (long long)(tenths / 10), (long long)(tenths % 10), end, (int)id.len, id.at);
    return sr_report(ed, line);
}

void sr_report_lost(sr_edge *ed, uint32_t slot, int32_t pid, const char *end)
{
    char line[SR_TEXT_LINE_MAX + SR_REQUEST_ID_MAX + 256], text[SR_TEXT_LINE_MAX], client[SR_TEXT_CLIENT_MAX];
    char made[SR_REQUEST_ID_MADE];
    const sr_entry *en = &ed->entries[slot];
    bool alone = ed->report < 0;
    int len = (int)sr_text_line(ed, slot, text);
    long long tenths = (ed->engine->now - sr_queue_at(&ed->queue, slot)->ready_at) / (TENTH * SR_MILLISECOND);
    if (en->late) /* the supervisor was already told that the request takes too long */
        return;
    sr_text_client(&en->exchange->client, client);
    sr_bytes id = sr_text_id(ed, slot, made);
    int n = sr_report_begin(ed, line, alone ? (int32_t)getpid() : pid, "lost");
    if (alone)
        n += snprintf(line + n, sizeof line - (size_t)n, "worker %d ", (int)pid);
    snprintf(line + n, sizeof line - (size_t)n,
             "exited while serving %.*s for %s, after %lld.%lld s: %s; request id %.*s\n", len, text, client,
             tenths / 10, tenths % 10, end, (int)id.len, id.at);
    sr_report(ed, line);
}
