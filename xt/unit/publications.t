use strict;
use warnings;
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Channel::Item;
use Sirius::Edge::Publications;

# What waits for edges that do not read: in order, within limits, without descriptors

package Place {
    sub new { my ( $class, $pid ) = @_; return bless { got => [], pid => $pid, reads => 1 }, $class }
    sub pid { return shift->{pid} }

    sub pass {
        my ( $self, $what, $fd ) = @_;
        return 0 if !$self->{reads};
        open my $fh, '<&', $fd or die $!;
        seek $fh, 0, 0;
        push @{ $self->{got} }, do { local $/; readline $fh };
        return 1;
    }
}

package Group {
    sub new    { my ( $class, @places ) = @_; return bless { places => \@places }, $class }
    sub places { return @{ shift->{places} } }

    sub running {
        return grep { $_->pid } shift->places;
    }
}

sub item { return Sirius::Channel::Item->packed( { channel => 'a', 'http-stream' => { content => shift } } ) }
sub descriptors { return scalar( () = glob '/proc/self/fd/*' ) }

my ( $one, $two ) = map { Place->new($_) } 11, 12;
my $group = Group->new( $one, $two );
my $all   = Sirius::Edge::Publications->new($group);
my @items = map { item($_) } 'a' .. 'z';

is $all->publish( @items[ 0 .. 2 ] ), undef, 'three items';
is_deeply $_->{got}, [ @items[ 0 .. 2 ] ], 'both edges have them' for $one, $two;
is_deeply [ $all->due ], [], 'nothing is to be done';
is $all->publish( $items[3], 'x' ), 'an item is malformed, or of another version of Sirius', 'one is none';
is scalar @{ $one->{got} },         3, 'then nobody gets the other';

my $before = descriptors();
$two->{reads} = 0;
is $all->publish($_), undef, 'an edge does not read' for @items[ 3, 4 ];
is_deeply [ scalar @{ $one->{got} }, scalar @{ $two->{got} } ], [ 5, 3 ], 'the other one does not wait';
is scalar( my @due = $all->due ), 1,       'it is tried again';
is descriptors(),                 $before, 'what waits needs no descriptor';
$two->{reads} = 1;
is $all->publish( $items[5] ), undef, 'it reads again';
is_deeply $two->{got},   [ @items[ 0 .. 5 ] ], 'and has all, in order';
is_deeply [ $all->due ], [],                   'nothing waits any more';

my $most = 0;
{
    no warnings 'redefine';
    my $pass = Place->can('pass');
    local *Place::pass = sub {
        my $now = descriptors();
        $most = $now if $now > $most;
        return $pass->(@_);
    };
    is $all->publish( (@items) x 20 ), undef, 'many at once';
}
cmp_ok $most, '<=', $before + 2, 'one after the other';
for my $place ( $one, $two ) { $place->{got} = [ @items[ 0 .. 5 ] ] }

$two->{reads} = 0;
my $large = item( 'x' x 1_000_000 );
my $count = 0;
$count++ while $count < 100 && !defined $all->publish($large);
is $count,                  17,                                                   '16 MiB may wait';
is $all->publish($large),   'edge 12 does not read: 17 publications wait for it', 'the next one is refused';
is scalar @{ $one->{got} }, 23,                                                   'for all';
$two->{pid} = 13;
$all->act;
is $all->publish( $items[6] ), undef, 'its process has ended';
is_deeply $two->{got}, [ @items[ 0 .. 5 ] ], 'the next one does not get what was for that' if !$two->{reads};
$_->{pid} = undef for $one, $two;
is $all->publish( $items[7] ), 'no edge is running', 'there is none';

done_testing;
