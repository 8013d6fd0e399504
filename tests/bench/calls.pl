#!/usr/bin/perl
# A stream of about N forward and backward op calls of a transformer, to see how fast two of them
# are aligned. The sides differ as real ones do: the bench hides a function, the device fuses
# attention and copies tensors here and there, paths, lines and all values differ a little.
#	calls.pl device|bench N [bare] >stream     bare: without stacks and modules
use strict;
use warnings;

my ($side, $want, $bare) = @ARGV;
die "usage: calls.pl device|bench N [bare]\n" unless ($side // '') =~ /^(device|bench)$/ && $want;
my $device = $side eq 'device';
my ($records, $seq, $calls, %number, %stack, @back) = (0, 0, 0);
binmode STDOUT;

sub text { my $n = length $_[0]; ($n < 32 ? chr(0xa0 | $n) : pack('Cn', 0xda, $n)) . $_[0] }
sub whole { pack 'Cq>', 0xd3, $_[0] }
sub real { pack 'Cd>', 0xcb, $_[0] }
sub ints { pack('Cn', 0xdc, scalar @_) . join '', map { whole($_) } @_ }
sub texts { pack('Cn', 0xdc, scalar @_) . join '', map { text($_) } @_ }

sub record {    # kind, then keys and encoded values
	my ($kind, @f) = @_;
	print "\x92", text($kind), pack('Cn', 0xde, @f / 2);
	print text($f[$_]), $f[$_ + 1] for map { 2 * $_ } 0 .. $#f / 2;
	$records++ unless $kind eq 'acc' || $kind eq 'end';
}

sub tensor {    # key, op, call, pass, io, pos, scope, stack, value, shape
	my ($key, $op, $call, $pass, $io, $pos, $scope, $stack, $value, @shape) = @_;
	my $v = $value * (1 + ($device ? 1e-4 : 0) * sin($value * 1e5));
	record('tensor', name => text("$key.$io.$pos"), src => text('00000000'), seq => whole($seq++),
		step => whole(0), rank => whole(0), key => text($key), op => text($op),
		call => whole($call), pass => text($pass), io => text($io), pos => text($pos),
		($bare ? () : (scope => text($scope), stack => text($stack))),
		type => text('torch.Tensor'), dtype => text('bf16'), shape => ints(@shape),
		'stat.max' => real(3 * $v), 'stat.min' => real(-2 * $v), 'stat.mean' => real($v / 8),
		'stat.norm' => real(20 * $v));
}

# A call with two inputs, in a module, from a line of code.
sub call {
	my ($op, $scope, $line, $in, $weight, $out, @shape) = @_;
	my $n = $number{$op}++;
	my $path = $device ? '/home/npu/model.py' : '/root/gpu/model.py';
	my @frames = ("File $path, line " . ($device ? 7 : 3) . ", in forward, \n $line",
		"File $path, line 99, in train, \n loss = model(batch)");
	if (!$bare && !$stack{$frames[0]}) {
		$stack{$frames[0]} = sprintf '%016x', scalar keys %stack;
		record('stack', id => text($stack{$frames[0]}), frames => texts(@frames));
	}
	my $id = $stack{$frames[0]} // '';
	my @who = ("$op.$n.forward", $op, $n, 'forward');
	tensor(@who, 'in', 0, $scope, $id, $in, @shape);
	tensor(@who, 'in', 1, $scope, $id, $weight, 64, 64);
	tensor(@who, 'out', 0, $scope, $id, $out, @shape);
	push @back, [$op, $n, $scope, $id, $in, $out, @shape];
	$calls += 2;
	return $out;
}

record('acc', v => whole(1), minor => whole(0), log => texts("calls.pl $side $want"));
record('source', id => text('00000000'), root => text('/nowhere'), host => text('none'),
	format => text('msprobe'));
my ($x, $salt) = (1.5, 0.37);

sub new { $salt = ($salt * 7.7 + 0.123) - int($salt * 7.7 + 0.123); return 0.5 + $salt }
for (my $l = 0; $calls < $want; $l++) {
	my $m = "Module.layers.$l";
	my ($h, @qkv) = new();
	call('Functional.layer_norm', "$m.norm.LayerNorm.forward.0", 'return F.layer_norm(x)',
		$x, new(), $h, 8, 4, 64);
	for my $p (qw(q k v)) {
		my ($w, $o) = (new(), new());
		call('Functional.linear', "$m.attn.$p.Linear.forward.0", "$p = self.$p(x)", $h, $w, $o,
			8, 4, 64);
		call('Tensor.view', "$m.attn.Attention.forward.0", "$p = $p.view(b, s, h, d)", $o, $o,
			$o, 8, 4, 4, 16);
		call('Tensor.contiguous', "$m.attn.Attention.forward.0", "$p = $p.contiguous()", $o, $o,
			$o, 8, 4, 4, 16) if $device && $l % 3 == 0;
		push @qkv, $o;
	}
	my @hidden = map { [new(), new()] } 1 .. 6;
	if ($device) {
		call('Tensor.__mul__', "$m.attn.Attention.forward.0", 'return x * cos + y * sin',
			@$_, $_->[0] * $_->[1], 8, 4, 4, 16) for @hidden;
	}
	my $o = new();
	my @core = map { new() } 1 .. 4;
	if ($device && $l % 2) {
		call('NPU.npu_fusion_attention', "$m.attn.Attention.forward.0", 'o = attention(q, k, v)',
			$qkv[0], $qkv[1], $o, 8, 4, 4, 16);
	} else {
		my $from = $qkv[0];
		my @op = qw(Torch.matmul Tensor.__div__ Functional.softmax Functional.dropout);
		$from = call($op[$_], "$m.attn.Attention.forward.0", "a = $op[$_](a)", $from, $qkv[1],
			$core[$_], 8, 4, 4, 4)
			for 0 .. 3;
		call('Torch.matmul', "$m.attn.Attention.forward.0", 'o = torch.matmul(a, v)', $from,
			$qkv[2], $o, 8, 4, 4, 16);
	}
	for my $p (qw(proj up gate down)) {
		my ($w, $y) = (new(), new());
		call('Functional.linear', "$m.$p.Linear.forward.0", "x = self.$p(x)", $o, $w, $y, 8, 4, 64);
		$o = call('Tensor.__add__', "$m.Block.forward.0", "x = x + self.$p(x)", $y, $x, $y / 2 + 1,
			8, 4, 64);
	}
	$x = $o;
}
for (reverse @back) {
	my ($op, $n, $scope, $id, $in, $out, @shape) = @$_;
	my @who = ("$op.$n.backward", $op, $n, 'backward');
	tensor(@who, 'in', 0, $scope, $id, $out / 9, @shape);
	tensor(@who, 'out', 0, $scope, $id, $in / 7, @shape);
}
record('end', n => whole($records), st => whole(0));
