# SPDX-License-Identifier: Apache-2.0
# Text in Perl: lines of a log are made, split, counted in hashes, changed with regular expressions,
# joined and sorted, as scripts around a robot do. Each run does the same work.
use strict;
use warnings;

my $state = 1;
sub draw { $state = ($state * 1103515245 + 12345) % 2147483648; return $state >> 8; }

my @levels = qw(debug info warn error);
my (%count, %longest, @lines);
for my $number (1 .. 45000) {
  my $text = join ' ', map { 'w' . draw() % 3000 } 1 .. draw() % 12;
  push @lines, sprintf '%06d [%s] node%d: %s', $number, $levels[draw() % 4], draw() % 500, $text;
}
for my $line (@lines) {
  my ($level, $node, $text) = $line =~ /\[(\w+)\] (node\d+): (.*)/ or die "no match: $line";
  $count{$node}{$level}++;
  $count{$_}{word}++ for split / /, $text;
  $longest{$node} = $text if length $text > length($longest{$node} // '');
}
s/w(\d)(\d+)/$2-$1/g for @lines;
my @sorted = sort { substr($a, 16) cmp substr($b, 16) } @lines;
my $all = join "\n", @sorted;
my $words = () = $all =~ /\d+-\d/g;
my $sum = 0;
$sum += $_->{word} // 0 for values %count;
die "text.pl: $words words, not $sum\n" if $words < $sum * 9 / 10 || @sorted != 45000;
