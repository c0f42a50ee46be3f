#ifndef SIRIUS_REPORT_H
#define SIRIUS_REPORT_H
/*
 * report: lines of the error log about the request at hand, with its method, its target, its client and its
 * id. May run code of the application.
 */
#include "perlapi.h"

/* Log an error, or a warning, with the name of the request. `error` may be NULL. */
void sirius_log(pTHX_ sirius *s, const char *what, SV *error);
void sirius_warn(pTHX_ sirius *s, const char *what);

/* The application has answered 500 by itself: what it has said about that counts as an exception. */
void sirius_report_error(pTHX_ sirius *s);

#endif
