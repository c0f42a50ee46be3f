package Sirius::Edge::Types;

use strict;
use warnings;

use Plack::MIME ();

use constant TYPE_MAX => 127;    # SR_TYPE_MAX in src/static/types.h

# What Plack::MIME does not know (version 1.0051)
my %MORE = (
    '7z'        => 'application/x-7z-compressed',
    avif        => 'image/avif',
    br          => 'application/octet-stream',
    cjs         => 'application/javascript',
    docx        => 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
    eot         => 'application/vnd.ms-fontobject',
    epub        => 'application/epub+zip',
    flac        => 'audio/flac',
    geojson     => 'application/geo+json',
    glb         => 'model/gltf-binary',
    gltf        => 'model/gltf+json',
    heic        => 'image/heic',
    jsonld      => 'application/ld+json',
    jxl         => 'image/jxl',
    m3u8        => 'application/vnd.apple.mpegurl',
    m4a         => 'audio/mp4',
    map         => 'application/json',
    md          => 'text/markdown',
    mjs         => 'application/javascript',
    oga         => 'audio/ogg',
    opus        => 'audio/ogg',
    otf         => 'font/otf',
    pptx        => 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
    ts          => 'video/mp2t',
    wasm        => 'application/wasm',
    webmanifest => 'application/manifest+json',
    weba        => 'audio/webm',
    woff2       => 'font/woff2',
    xz          => 'application/x-xz',
    zst         => 'application/zstd',
);

# Anything may be in that hash: the application can change it
sub text {
    my %type  = %MORE;
    my $known = $Plack::MIME::MIME_TYPES;
    for my $extension ( ref $known eq 'HASH' ? keys %$known : () ) {
        my $type = $known->{$extension};
        next                   if !defined $type || ref $type || length $type > TYPE_MAX;
        next                   if $type !~ m{\A[\w!#\$&^.+-]+/[\w!#\$&^.+-]+\z}a;
        $type{ lc $1 } = $type if $extension =~ /\A\.([\w+-]{1,31})\z/a;
    }
    return join ' ', map {"$_:$type{$_}"} sort keys %type;
}

1;

=encoding utf8

=head1 NAME

Sirius::Edge::Types - media types by file extension

=head1 SYNOPSIS

  use Sirius::Edge::Types;

  my $text = Sirius::Edge::Types->text;    # "3gp:video/3gpp 7z:application/x-7z-compressed ..."

=head1 DESCRIPTION

The types of L<Plack::MIME>, and some that it does not know. What the application has added with C<< Plack::MIME->add_type >> while it
was loaded is among them; the callback of C<set_fallback> is not called.

=head1 METHODS

=head2 text

The table as text for an edge, which looks up the types of the files of C<--static> in it.

=head1 SEE ALSO

L<Plack::MIME>, L<Sirius::Edge::Setup>.

=cut
