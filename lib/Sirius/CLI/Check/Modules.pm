package Sirius::CLI::Check::Modules;

use strict;
use warnings;

# A module in C; whether it is the one in Perl that runs now; the package of Debian; what it makes faster:
# times of one call, measured with perl 5.36 on one machine. What matters is how the two relate
my @TABLE = (
    [   'WWW::Form::UrlEncoded::XS',
        sub { return _loaded('WWW::Form::UrlEncoded::PP') && !_loaded('WWW::Form::UrlEncoded::XS') },
        'libwww-form-urlencoded-xs-perl',
        'a query or form of 10 fields is parsed in 1.2 us instead of 15'
    ],
    [   'Cookie::Baker::XS',       sub { return _loaded('Cookie::Baker') && !_loaded('Cookie::Baker::XS') },
        'libcookie-baker-xs-perl', 'a Cookie field with 5 cookies is parsed in 0.6 us instead of 9'
    ],
    [   'Cpanel::JSON::XS',       \&_json,
        'libcpanel-json-xs-perl', 'an object of 1 KB is encoded in 7 us instead of 160'
    ],
    [   'URL::Encode::XS',
        sub { return _loaded('Dancer2::Core::Request') && !_loaded('URL::Encode::XS') },
        'liburl-encode-xs-perl',
        'Dancer2 decodes a value of 40 characters in 0.1 us instead of 1.6'
    ],
    [   'Class::XSAccessor',        sub { return _loaded('Moo') && !_loaded('Class::XSAccessor') },
        'libclass-xsaccessor-perl', 'Moo reads an attribute in 0.03 us instead of 0.12'
    ],
    [   'Type::Tiny::XS', sub { return _loaded('Type::Tiny') && !_loaded('Type::Tiny::XS') },
        'libtype-tiny-xs-perl',
        'a value of type ArrayRef[Int] with 10 elements is checked in 0.2 us instead of 4'
    ],
);

sub check {
    my ( $class, $report ) = @_;
    for my $row (@TABLE) {
        my ( $module, $missing, $package, $saves ) = @$row;
        next if !eval { $missing->() };
        my $mend
            = _installed($module)
            ? 'is installed, but not used: is an environment variable set that forbids it, or is it too old?'
            : "would help: $saves; install it (Debian: $package)";
        $report->warning("$module $mend");
    }
    return;
}

sub _installed {
    my $file = shift() =~ s{::}{/}gr . '.pm';
    return grep { !ref && -e "$_/$file" } @INC;
}

# Those who choose among several say which one they have
sub _json {
    return 1 if _loaded('JSON') && JSON->can('backend') && JSON->backend eq 'JSON::PP';
    return 1 if _loaded('JSON::MaybeXS') && JSON::MaybeXS::JSON() eq 'JSON::PP';
    return _loaded('Mojo::JSON') && !Mojo::JSON::JSON_XS();
}

sub _loaded {
    my $file = shift() =~ s{::}{/}gr . '.pm';
    return $INC{$file} ? 1 : 0;
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Check::Modules - modules in C that would make the application faster

=head1 SYNOPSIS

  use Sirius::CLI::Check::Modules;

  Sirius::CLI::Check::Modules->check($report);

=head1 DESCRIPTION

Some modules use a faster one that is written in C, if it is installed. This one looks at what the application has loaded, after
its first request, and names those that are missing, with what they save.

=head1 METHODS

=head2 check

See L<Sirius::CLI::Check>.

=head1 SEE ALSO

L<Sirius::CLI::Check>.

=cut
