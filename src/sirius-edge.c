/* sirius-edge: started by the supervisor, with its settings as words and its descriptors by their numbers. */
#include "edge/edge.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

int main(int argc, char **argv)
{
    sr_settings settings;
    sr_edge *edge;
    const char *word, *why;
    if (!sr_settings_read(&settings, argc, argv, &word, &why)) {
        fprintf(stderr, "sirius-edge: %s %s\n", word, why);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    int err = sr_edge_new(&edge, &settings);
    if (err) {
        fprintf(stderr, "sirius-edge: cannot start: %s\n", strerror(err));
        return 1;
    }
    int status = sr_edge_run(edge);
    sr_edge_free(edge);
    free(settings.tmpdir);
    free(settings.server);
    return status;
}
