package Sirius::CLI::Dev;

use strict;
use warnings;

use Sirius::CLI::Runner;

sub runner {
    my $class = shift;
    return Sirius::CLI::Runner->new(
        server => 'Sirius',
        env    => $ENV{PLACK_ENV} || 'development',
        dev    => { name => 'sirius dev' }
    );
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Dev - the command "sirius dev"

=head1 SYNOPSIS

  sirius dev
  sirius dev app.psgi
  sirius dev --open --live-reload
  sirius dev --watch templates --live-reload bin/app.psgi

=head1 DESCRIPTION

C<sirius dev> serves an application while somebody works on it, at L<http://localhost:5000/>. It takes all options of L<sirius>, and
those of the group "Development". Stop it with Ctrl-C. It also stops when its terminal is closed, unless it was started with L<nohup(1)>.

Without a name it takes the application of the directory: F<app.psgi>, F<bin/app.psgi> (of C<dancer2 gen>), another file F<*.psgi> with
C<-I lib> (of C<catalyst.pl>), or a program of Mojolicious (F<script/my_app>, F<myapp.pl>).

If port 5000 is in use, it takes the next one that is free, and says so, unless a port is given by C<--port>, C<--listen> or the variable
C<PORT>.

=head2 Keys

In a terminal: C<r> loads the application again, with all modules; C<o> opens it in a browser, as C<--open> does at the start; C<c>
clears the screen, but for the address; C<q> quits. Nothing is read from STDIN if that is no terminal.

=head2 Saving a file

When you save a file of the application, the workers begin no further request, the application is loaded in a new process,
and requests that come meanwhile wait for it. No request is refused, and none that is sent after the save was noticed is
answered by the old code. Requests that are being answered are finished by the old code. What is saved within 30
milliseconds is one change; what is saved while the application loads starts it again.

Watched are all files in the folder of the F<.psgi> file whose suffix is one of program code, templates, styles, configuration or text;
the folder above instead if the F<.psgi> file is in F<bin> or F<script> beside F<lib>; the folders of C<-I>; every module that
the application has loaded, wherever it is; symbolic links that lead to the F<.psgi> file; and all files in what C<--watch> names. Hidden files except F<.env>, backups and what
editors put beside a file are ignored, as are F<.git> and other hidden folders, F<blib>, F<cover_db>, F<node_modules> and F<nytprof>.
So are folders named F<cache>, F<log>, F<logs>, F<session>, F<sessions> and F<tmp>, to which applications write, at the top, or below
one of these, F<data>, F<db>, F<htdocs>, F<public>, F<run>, F<static>, F<storage>, F<upload>, F<uploads> or F<var>. Elsewhere they
are folders as any, such as F<templates/sessions>. At the top, F<log>, F<logs>, F<session> and F<sessions> are folders as any, too, if they
have a template or program in them.

Files below a directory of C<--static> are served by the edge, and do not make the server load the application again, unless C<--watch>
names them, such as the manifest of a bundler that the application reads when it is loaded; nor do style sheets below a directory F<public>, F<static> or F<htdocs> of the application. With
C<--live-reload> pages are told of them, wherever the directory is. While somebody works on them, all files of C<--static> are sent
with C<Cache-Control: no-cache>, whatever else that says, and so are responses with Last-Modified and no Cache-Control, such as those
of Plack::Middleware::Static: browsers ask whether they have changed.

A file that the application itself writes, when it is loaded or in a request, is a change as well if it is watched. If the same file
changes again and again while the application is being loaded or answers a request, the terminal says so from the sixth time in a row
on, and the application is loaded again for it only after a pause of 1, 2, 4 ... 300 seconds, in which it serves. Other changes do
not wait, nor do those made while it is idle. Exclude such a file, or its directory, with C<--watch-exclude>, or let the application write it into a folder that is ignored.

Changes are told by inotify(7). On a network file system, at a limit of inotify or with C<--watch-scan>, the server looks at the
files twice a second instead.

=head2 Code that does not load

The server answers with status 500 and a page that shows the message of perl, the file and the lines around the one at fault.
Programs that do not accept C<text/html>, such as curl, get the same as plain text, and it is printed on the terminal. The next
save of a file that loads brings the application back. This is so from the start: the address is open even if the application has
never loaded.

An application that has been loading for 5 seconds, and again one that has for 30, is a line with the place where it is. It is given up
after C<--load-timeout>.

=head2 Modules of others

Modules from the library folders of perl are loaded once, in a process of their own, and each new process of the application
is forked from it. So a reload takes the time that your own code takes. When such a module is updated, that process is
replaced, too. A module that cannot be loaded by itself, or that keeps a socket open when it is loaded, is loaded with the
application. C<--disable-preload-modules> loads everything each time: use it if a module behaves differently with
C<sirius dev>.

=head2 The log of requests

Each request is a line on STDERR: the time of day, the method, the path, the status in a colour, the time that it took, and
the time that it had waited for a worker if that is a millisecond or more. There are colours on a terminal only, and not if the
variable C<NO_COLOR> is set. With C<--access-log> that log is written instead.

=head2 Exceptions

In the environment C<development>, which is the default, an exception of the application is shown in the browser and on the terminal: the
places in the application with the lines around them, calls in the code of frameworks, Plack and the server folded, and the request with its
parameters. If a framework answers with status 500 by itself, its response stays, and the terminal shows the
exception. Mojolicious shows and logs its exceptions itself, and puts its own handler of them in place: then the terminal has its line
alone. L<Plack::Middleware::Lint> checks the application, as with L<plackup>. C<--no-default-middleware> turns both off; so does another
environment. A call of C<exit> is a line with its place.

In pages the names of files open an editor, if C<--editor> or the variables C<VISUAL>, C<EDITOR> and C<TERM_PROGRAM> say which
(C<SIRIUS_EDITOR=vscode>): C<vscode>, C<vscode-insiders>,
C<vscodium>, C<cursor>, C<idea>, C<zed>, C<sublime> or C<emacs>, or a URL such as C<vscode://file/%f:%l>.

=head2 What the application prints

STDOUT is written at once, without a buffer.

=head2 Reloading the browser

With C<--live-reload> the server adds a script to HTML pages, which loads the page again when the code has changed. When only style
sheets have changed, it replaces these, and the page stays as it is.

It adds one line to each response of the type C<text/html> that is not compressed, and removes its length, ETag, date and digests. Parts of
pages that scripts ask for stay as they are. A Content-Security-Policy must allow the script and its connection, which come from the same
server: C<script-src 'self'; connect-src 'self'> is enough. With a policy of nonces or hashes alone the browser refuses the script, and
says so in its console; nothing else changes.

=head2 Defaults

C<--env development>, C<--workers 4>, C<--host 127.0.0.1>, C<--queue-timeout 300>, C<--slow-log 5>: a request that runs for 5 seconds is
printed with its stack. To be reached by other machines, or from outside of
a container, give C<--host 0.0.0.0>; everybody who can connect can then see source code in error pages.

C<sirius --reload> (C<-r>) and C<-R PATHS> do the same with the defaults of C<sirius>, and without the log of requests.

=head1 METHODS

=head2 runner

  my $runner = Sirius::CLI::Dev->runner;

The object that reads the options and serves, a L<Plack::Runner>.

=head1 SEE ALSO

L<sirius>.

=cut
