package Sirius::Dev::ErrorPage;

use strict;
use warnings;

# A page about an error. title: text; body: HTML
sub html {
    my ( $class, %page ) = @_;
    return <<"HTML";
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>$page{title}</title>
<style>
:root { color-scheme: light dark; --page: #f6f6f4; --card: #fff; --text: #1c1c1c; --soft: #6d6d6d; --line: #dcdcd8; --red: #b3261e; --at: #fbe3e1; --link: #0b57d0 }
\@media (prefers-color-scheme: dark) { :root { --page: #16181c; --card: #1f2227; --text: #e8e8e6; --soft: #9a9fa8; --line: #343941; --red: #ff8a80; --at: #4a2524; --link: #8ab4f8 } }
body { margin: 0; padding: 2rem 1rem; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif }
main { max-width: 62rem; margin: auto }
h1 { margin: 0 0 1rem; font-size: 1.4rem; color: var(--red) }
h2 { margin: 1.5rem 0 .5rem; font-size: .95rem; font-weight: 600; color: var(--soft); overflow-wrap: anywhere }
pre, table { margin: 0; padding: .8rem 1rem; background: var(--card); border: 1px solid var(--line); border-radius: 6px; font: 14px/1.55 ui-monospace, monospace }
pre { white-space: pre-wrap; overflow-wrap: anywhere }
table { display: block; overflow-x: auto; padding: .4rem 0; border-spacing: 0 }
td { padding: 0 1rem; white-space: pre; tab-size: 4 }
td:last-child { width: 100% }
td:first-child { color: var(--soft); text-align: right; user-select: none }
.at td { background: var(--at); font-weight: 600 }
p { color: var(--soft) }
a { color: var(--link) }
details { margin: .6rem 0 }
summary { cursor: pointer; overflow-wrap: anywhere }
summary + table, summary + pre { margin-top: .4rem }
.soft, .others { color: var(--soft) }
.others { font-size: .9rem }
dl { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: .15rem 1rem; margin: 0; padding: .8rem 1rem; background: var(--card); border: 1px solid var(--line); border-radius: 6px; font: 14px/1.55 ui-monospace, monospace }
dt { color: var(--soft); overflow-wrap: anywhere }
dd { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere }
</style>
</head>
<body>
<main>
<h1>$page{title}</h1>
$page{body}</main>
</body>
</html>
HTML
}

# As PSGI: HTML or text
sub response {
    my ( $class, $type, $body ) = @_;
    return [
        500,
        [   'Content-Type'   => "$type; charset=utf-8",
            'Content-Length' => length $body,
            'Cache-Control'  => 'no-store',
            'Vary'           => 'Accept',
        ],
        [$body]
    ];
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::ErrorPage - what pages about errors look like

=head1 SYNOPSIS

  my $html = Sirius::Dev::ErrorPage->html( title => 'It does not work', body => "<p>Because</p>\n" );
  return Sirius::Dev::ErrorPage->response( 'text/html', $html );

=head1 METHODS

=head2 html

A document with the title and the body, both HTML. It needs no other file, and has a light and a dark scheme.

=head2 response

A response with status 500, which is not kept.

=head1 SEE ALSO

L<Sirius::Dev::Broken>, L<Sirius::Dev::Exception>.

=cut
