package Sirius::CLI::Check::Middleware;

use strict;
use warnings;

use B            ();
use Scalar::Util qw(blessed refaddr reftype);

use constant MOST => 10_000;    # things to look at: an application may hold anything

my $ITSELF  = 'is not needed: the server';
my $DEVELOP = 'use it with --env development only, which adds it';

# What to do instead, by the name behind Plack::Middleware::. The times are those of docs/MIGRATING.md
# (bench/middleware)
#<<< one in a line
my %NEEDLESS = (
    'AccessLog' => 'takes 8 us of a worker for each request: use --access-log of the server instead',
    'AccessLog::Timed' => 'takes 5 us of a worker for each request: use --access-log of the server instead, with %D in --access-log-format',
    'BufferedStreaming' => "$ITSELF streams responses, and this collects them in memory; remove it",
    'Chunked' => "$ITSELF frames responses itself; remove it",
    'ContentLength' => "$ITSELF computes Content-Length itself; remove it, which saves 9 us for each request",
    'Debug' => 'shows the inside of the application to every client: use it with --env development only',
    'Head' => "$ITSELF sends no body in response to HEAD; remove it",
    'Lint' => "examines each request: $DEVELOP",
    'Refresh' => 'is for development: use sirius dev for that; HUP and sirius ctl reload load new code',
    'ReverseProxy' => 'believes every client: use --trust-proxy with the networks of your proxies instead',
    'Runtime' => 'takes 4 us for each request: use %D in --access-log-format instead, unless somebody reads X-Runtime',
    'ServerStatus::Lite' => 'reads the scoreboard of other servers: use --admin instead',
    'SizeLimit' => 'ends workers before others are ready: use --max-rss instead, which starts the successor first',
    'StackTrace' => "shows source code to every client: $DEVELOP",
    'Static' => 'occupies a worker for each file: use --static of the server instead',
    'TimeOut' => 'cannot interrupt code in C: use --request-timeout instead',
    'XForwardedFor' => 'believes more than --trust-proxy, which only believes the networks that you name: use that instead',
    'XSendfile' => "$ITSELF sends files by the kernel; remove it",
);
#>>>

# What frameworks add by themselves, so that nobody could remove it
my %ADDED = (
    Catalyst => { map { $_ => 1 } qw(ContentLength Head ReverseProxy) },
    Dancer2  => { map { $_ => 1 } qw(Head) },
);

# Classes of the components of Plack that the application consists of, from the outside to the inside
sub chain {
    my ( $class, @todo ) = @_;
    my ( %seen, @found );
    while (@todo) {
        my $it = shift @todo;
        next if !ref $it || $seen{ refaddr $it }++;
        last if keys %seen > MOST;
        my $type = reftype $it;
        if ( blessed $it && $it->isa('Plack::Component') ) {
            push @found, ref $it;
            unshift @todo, map { $it->{$_} } sort keys %$it if $type eq 'HASH';
        } elsif ( $type eq 'CODE' ) {
            unshift @todo, grep { _leads_on($_) } _closed_over($it);
        } elsif ( !blessed $it && $type eq 'ARRAY' ) {
            unshift @todo, @$it;
        }
    }
    return @found;
}

sub check {
    my ( $class, $report, %context ) = @_;
    my %added = map { %{ $ADDED{$_} } } grep { $INC{"$_.pm"} } keys %ADDED;
    my %seen;
    for my $name ( map {/\APlack::Middleware::(.+)/} $class->chain( $context{app} ) ) {
        next if !$NEEDLESS{$name} || $added{$name} || $seen{$name}++;
        next if $name =~ /\A(?:Debug|Lint|StackTrace)\z/ && $ENV{PLACK_ENV} eq 'development';
        $report->warning("Plack::Middleware::$name $NEEDLESS{$name}");
    }
    return;
}

# What a closure has of the scopes around it: to_app of Plack::Component is one around $self
sub _closed_over {
    my $code = shift;
    my $cv   = B::svref_2object($code);
    return if !$cv->isa('B::CV') || $cv->XSUB;
    my $padlist = $cv->PADLIST;
    return if !$padlist || $padlist->isa('B::SPECIAL');
    my ( $names, $values ) = $padlist->ARRAY;
    return if !$names || !$values || $names->isa('B::SPECIAL') || $values->isa('B::SPECIAL');
    my @names  = $names->ARRAY;
    my @values = $values->ARRAY;
    my @found;

    for my $i ( 0 .. $#names ) {
        my $name = $names[$i]->can('PV') ? $names[$i]->PV : undef;
        next if !defined $name || $name !~ /\A\$\w/ || !defined $values[$i] || $values[$i]->isa('B::SPECIAL');
        my $value = $values[$i]->object_2svref;
        push @found, $$value if reftype($value) =~ /\A(?:REF|SCALAR)\z/ && ref $$value;
    }
    return @found;
}

# Not into the objects of the application, which may lead anywhere
sub _leads_on {
    my $it = shift;
    return blessed $it ? $it->isa('Plack::Component') : reftype $it eq 'CODE';
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Check::Middleware - middleware that is not needed with this server

=head1 SYNOPSIS

  use Sirius::CLI::Check::Middleware;

  Sirius::CLI::Check::Middleware->check( $report, app => $app );

=head1 DESCRIPTION

An application of L<Plack::Builder> is a closure around the outermost middleware, which has the next one inside. This module follows
these, through L<Plack::App::URLMap>, L<Plack::App::Cascade> and C<enable_if> as well, and says of each that the server makes needless
what to use instead. What Catalyst and Dancer2 add themselves is not mentioned.

=head1 METHODS

=head2 chain

  my @classes = Sirius::CLI::Check::Middleware->chain($app);

=head2 check

See L<Sirius::CLI::Check>.

=head1 SEE ALSO

L<Sirius::CLI::Check>, L<Plack::Builder>.

=cut
