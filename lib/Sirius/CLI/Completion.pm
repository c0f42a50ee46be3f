package Sirius::CLI::Completion;

use strict;
use warnings;

use Sirius::Config::Options;
use Sirius::Config::Type;

my %SCRIPT = ( bash => \&_bash, fish => \&_fish, zsh => \&_zsh );

sub script {
    my ( $class, $shell, @classes ) = @_;
    my @server   = _options( Sirius::Config::Options->rows );
    my @commands = (
        { name => '', options => \@server, words => 'app' },
        {   name    => 'dev',
            text    => 'Serve an application while you work on it',
            options => \@server,
            words   => 'app'
        },
    );
    for my $command ( sort { $a->name cmp $b->name } @classes ) {
        my @rows  = _rows($command);
        my @words = map { [ $_->{typed} =~ /(\w+)/, $_->{text} ] } grep { !defined $_->{name} } @rows;
        push @commands,
            {
            name    => $command->name,
            text    => $command->summary,
            options => [ _options( grep { defined $_->{name} } @rows ), $command->passes_on ? @server : () ],
            words   => $command->passes_on ? 'app' : \@words,
            };
    }
    return $SCRIPT{$shell}->(@commands);
}

sub _bash {
    my @commands = @_;
    my $named    = join '|', map { $_->{name} } grep { length $_->{name} } @commands;
    my ( %cases, $options, $words );
    for my $command (@commands) {
        my ( $name, @all ) = $command->{name};
        for my $option ( @{ $command->{options} } ) {
            push @all, _flags($option);
            push @{ $cases{ _bash_values($option) } }, map {"$name:$_"} _flags($option)
                if $option->{kind} ne 'flag';
        }
        my $pattern = length $name ? "$name:-*" : ':-*';
        $options .= "    $pattern) _sirius_words '@all' ;;\n";
        $words   .= "    $name:*) _sirius_words '@{[ map { $_->[0] } @{ $command->{words} } ]}' ;;\n"
            if ref $command->{words};
    }
    my $values = '';
    for my $do ( sort keys %cases ) {
        $values
            .= '    ' . join( " | \\\n        ", @{ $cases{$do} } ) . ")\n        $do\n        return ;;\n";
    }
    ( my $first = $named ) =~ tr/|/ /;
    return <<"BASH";
# Completion of sirius in bash, made by: sirius --completion bash
_sirius_words() { mapfile -t COMPREPLY < <(compgen -W "\$1" -- "\$cur"); }
_sirius_paths() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen "\$@" -- "\$cur")
}
_sirius_apps() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -W "\$1" -- "\$cur"; compgen -f -X '!*.psgi' -- "\$cur"; compgen -d -- "\$cur")
}
_sirius() {
    local cur=\${COMP_WORDS[COMP_CWORD]} prev='' command=''
    COMPREPLY=()
    # bash takes --name=value for three words
    if [[ \$cur == = ]]; then
        cur='' prev=\${COMP_WORDS[COMP_CWORD - 1]}
    elif ((COMP_CWORD > 1)) && [[ \${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then
        prev=\${COMP_WORDS[COMP_CWORD - 2]}
    elif ((COMP_CWORD > 0)); then
        prev=\${COMP_WORDS[COMP_CWORD - 1]}
    fi
    if ((COMP_CWORD > 1)); then
        case \${COMP_WORDS[1]} in $named) command=\${COMP_WORDS[1]} ;; esac
    fi
    case \$command:\$prev in
$values    esac
    case \$command:\$cur in
$options$words    *)
        if ((COMP_CWORD == 1)); then _sirius_apps '$first'; else _sirius_apps ''; fi ;;
    esac
}
complete -F _sirius sirius
BASH
}

sub _bash_values {
    my $option = shift;
    my $kind   = $option->{kind};
    return "_sirius_words '@{ $option->{of} }'" if $kind eq 'words';
    return q(_sirius_apps '')                   if $kind eq 'app';
    my %paths = ( dir => '-d', file => '-f', group => '-g', user => '-u' );
    return $paths{$kind} ? "_sirius_paths $paths{$kind}" : ':';
}

sub _fish {
    my @commands = @_;
    my $named    = join ' ', map { $_->{name} } grep { length $_->{name} } @commands;
    my $quoted   = sub { my $text = shift; return q(') . $text =~ s/([\\'])/\\$1/gr . q(') };
    my @lines
        = ( '# Completion of sirius in fish, made by: sirius --completion fish', 'complete -c sirius -f' );
    my %values = (
        app   => q{-x -a '(__fish_complete_suffix .psgi)'},
        dir   => q{-x -a '(__fish_complete_directories)'},
        file  => '-r -F',
        flag  => '',
        group => q{-x -a '(__fish_complete_groups)'},
        none  => '-x',
        user  => q{-x -a '(__fish_complete_users)'},
    );
    for my $command (@commands) {
        my $name = $command->{name};
        my $when = $quoted->(
            length $name
            ? "__fish_seen_subcommand_from $name"
            : "not __fish_seen_subcommand_from $named"
        );
        push @lines,
            "complete -c sirius -n __fish_use_subcommand -a $name -d " . $quoted->( $command->{text} )
            if length $name;
        for my $option ( @{ $command->{options} } ) {
            my $flags = join ' ', map { /\A--(.*)/ ? "-l $1" : '-s ' . substr $_, 1 } _flags($option);
            my $value
                = $option->{kind} eq 'words'
                ? '-x -a ' . $quoted->("@{ $option->{of} }")
                : $values{ $option->{kind} };
            push @lines, join ' ', grep {length} "complete -c sirius -n $when $flags", $value,
                '-d ' . $quoted->( $option->{text} );
        }
        push @lines,
            ref $command->{words}
            ? map { "complete -c sirius -n $when -a $_->[0] -d " . $quoted->( $_->[1] ) }
            @{ $command->{words} }
            : "complete -c sirius -n $when -a '(__fish_complete_suffix .psgi)'";
    }
    return join '', map {"$_\n"} @lines;
}

# As they are typed
sub _flags { return @{ shift->{flags} } }

# What may stand for the value
sub _kind {
    my $row = shift;
    return 'flag'       if $row->{type} eq 'bool' || defined $row->{bare};
    return 'words'      if $row->{of}             || $row->{suggest};
    return $row->{type} if $row->{type} =~ /\A(?:dir|group|user)\z/;
    my $value = Sirius::Config::Type->placeholder($row);
    return 'app' if $row->{name} eq 'app';
    return 'dir' if $value =~ /\ADIRS?\z/;
    return 'file'
        if $row->{type} =~ /\Apaths?\z/ || $row->{name} =~ /\A(?:control|socket)\z/ || $value eq 'FILE';
    return 'none';
}

sub _options {
    my @rows = @_;
    my @options;
    for my $row ( grep { !$_->{hidden} && !$_->{noop} } @rows ) {
        my @flags
            = $row->{typed}
            ? split /, /, $row->{typed}
            : map { length > 1 ? "--$_" : "-$_" } grep {defined} $row->{short}, $row->{name};
        push @options,
            {
            flags => \@flags,
            kind  => _kind($row),
            many  => $row->{many},
            of    => $row->{of} || $row->{suggest},
            text  => _short( $row->{text} ),
            };
    }
    return @options;
}

# Of a command, without the names of its groups
sub _rows {
    my $command = shift;
    return ( $command->rows,
        { name => 'help', short => 'h', type => 'bool', text => 'Print the options and exit' } );
}

# What an option sets, without the rest of its text
sub _short {
    my $text = shift;
    return $text =~ s/(?:[;:.,] | \().*//sr;
}

sub _zsh {
    my @commands = @_;
    my $quoted   = sub { my $text = shift; return q(') . $text =~ s/'/'\\''/gr . q(') };
    my $plain    = sub { return shift                          =~ s/([\[\]:\\])/\\$1/gr };
    my %values   = (
        app   => '_files -g "*.psgi"',
        dir   => '_files -/',
        file  => '_files',
        group => '_groups',
        none  => ' ',
        user  => '_users',
    );
    my ( $cases, @named ) = ('');
    for my $command (@commands) {
        my $name = $command->{name};
        push @named, "$name\\:" . $plain->( $command->{text} ) =~ s/ /\\ /gr if length $name;
        my @specs;
        for my $option ( @{ $command->{options} } ) {
            my $kind   = $option->{kind};
            my $value  = $kind eq 'words' ? "(@{ $option->{of} })" : $values{$kind};
            my $behind = $kind eq 'flag'  ? ''                     : ":value:$value";
            for my $flag ( _flags($option) ) {
                my $joint = $kind ne 'flag' && $flag =~ /\A--/ ? '=' : '';
                push @specs,
                    $quoted->( ( $option->{many} ? '*' : '' )
                    . "$flag$joint\["
                        . $plain->( $option->{text} )
                        . "]$behind" );
            }
        }
        if ( ref $command->{words} ) {
            my $words = join ' ',
                map { "$_->[0]\\:" . $plain->( $_->[1] ) =~ s/([ ()'"])/\\$1/gr } @{ $command->{words} };
            push @specs, $quoted->(":command:(($words))") if length $words;
        } else {
            push @specs, length $name ? () : $quoted->('1:application or command:_sirius_first'),
                $quoted->('*:application:_files -g "*.psgi"');
        }
        my $call = join( " \\\n            ", '_arguments', @specs ) . " ;;\n";
        if ( length $name ) { $cases = "    $name)\n        shift words; ((CURRENT--))\n        $call$cases" }
        else                { $cases .= "    *)\n        $call" }
    }
    return <<"ZSH";
#compdef sirius
# Completion of sirius in zsh, made by: sirius --completion zsh
_sirius_first() {
    _alternative 'commands:command:((@named))' 'files:application:_files -g "*.psgi"'
}
_sirius() {
    local command=''
    ((CURRENT > 2)) && command=\$words[2]
    case \$command in
$cases    esac
}
if [[ \$funcstack[1] == _sirius ]]; then _sirius "\$@"; else compdef _sirius sirius; fi
ZSH
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Completion - scripts that complete the words of sirius in a shell

=head1 SYNOPSIS

  sirius --completion bash >/etc/bash_completion.d/sirius

=head1 DESCRIPTION

Makes scripts for bash, fish and zsh. The options and their values come from the table in L<Sirius::Config::Options> and those of the
commands, so a script knows what the installed version knows. It runs nothing when it completes.

=head1 METHODS

=head2 script

  print Sirius::CLI::Completion->script( 'bash', 'Sirius::CLI::Ctl', 'Sirius::CLI::Top' );

The classes are those of the commands (L<Sirius::CLI::Command>), which are loaded.

=head1 SEE ALSO

L<sirius>, L<Sirius::CLI::Command>, L<Sirius::Config::Options>.

=cut
