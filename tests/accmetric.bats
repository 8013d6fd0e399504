load helper
D=$DATA/dumps

# The fields of a measured stream as TSV.
cells() { # columns
	accfmt --tsv --no-header -c "$1"
}

# Two columns of numbers agree to 1e-9 (of the larger), line by line.
agree() { # file, file: name and number in each line
	join -t "$(printf '\t')" <(sort "$1") <(sort "$2") | awk -F '\t' '
		{ d = $2 - $3; if (d < 0) d = -d
		  m = $2 < 0 ? -$2 : $2
		  if (($2 == "inf" || $3 == "inf" || $2 == "nan" || $3 == "nan") ? $2 != $3 : d > 1e-9 * m + 1e-15) {
			print $0; bad = 1 } }
		END { if (NR == 0) { print "nothing to compare"; bad = 1 }; exit bad }'
}

# The record of this name satisfies a condition.
holds() { # name, jq condition, file
	jq -es --arg n "$1" "[.[] | select(.name == \$n and ($2))] | length == 1" "$3" >/dev/null ||
		{ jq -c --arg n "$1" 'select(.name == $n)' "$3"; return 1; }
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
	mkdir "$TMPDIR"
}

@test "each metric of -l has an item in the page and a vector" {
	run -0 accmetric -l
	[ "${#lines[@]}" -ge 50 ]
	for l in "${lines[@]}"; do
		key=${l%% *}
		what=${l#* }
		[ -n "${what// /}" ] || { echo "$key has no definition"; return 1; }
		grep -q "^\.It Va .*\b${key//./\\.}\b" "$ROOT/man/accmetric.1" ||
			{ echo "$key: no item in accmetric.1"; return 1; }
		grep -q "^$key	" "$DATA/metric.tsv" || { echo "$key: no vector"; return 1; }
	done
	[ "$(grep -c '^ROW(' "$ROOT/lib/metric/table.h")" -eq "${#lines[@]}" ]
}

@test "pairs of tensors: what numpy finds" {
	accalign "$D/msprobe_tensor/device" "$D/msprobe_tensor/bench" | accmetric >m.acc
	exp=$D/expect/msprobe_tensor.pairs.tsv
	for c in 3=cosine 4=max_abs 6=rel_l2 7=rmse; do
		sed 1d "$exp" | cut -f "1,${c%%=*}" >want
		cells "name,m.${c#*=}" <m.acc | awk -F '\t' '$2 != ""' >got
		agree want got
	done
	[ "$(accfmt --json m.acc | jq -s '[.[] | select(."m.mode" == "tensor")] | length')" -eq \
		"$(awk 'NR > 1' "$exp" | wc -l)" ]
	accfmt --json m.acc >m
	holds Functional.gelu.0.forward.output.0 '."m.worst"[-1] >= 4 and ."m.ulp_max" > 1000 and
		."m.err_rms" > 0.001 and ."m.same" < 1 and ."m.nonfinite" == 0' m
}

@test "each tensor: what numpy finds" {
	accalign "$D/msprobe_tensor/device" "$D/msprobe_tensor/bench" | accmetric >m.acc
	for side in device=a bench=b; do
		exp=$D/expect/msprobe_tensor.${side%=*}.tsv
		for c in 4=max 5=min 6=mean 7=norm 8=nan 9=posinf 10=neginf 11=zero; do
			sed 1d "$exp" | cut -f "1,${c%%=*}" >want
			cells "name,${side#*=}.s.${c#*=}" <m.acc | awk -F '\t' '$2 != ""' >got
			agree want got
		done
	done
	# Equal bytes, equal hash; and a stream of tensors has them without a prefix.
	accdump-read "$D/msprobe_tensor/bench" | accmetric | cells name,s.hash |
		awk -F '\t' '$2 != ""' | sort >want
	cells name,b.s.hash <m.acc | awk -F '\t' '$2 != ""' | sort >got
	cmp want got
	[ "$(cut -f 2 got | grep -cx '[0-9a-f]\{16\}')" -eq "$(wc -l <got)" ]
}

@test "every record passes, in order, the same with any number of threads" {
	accalign "$D/msprobe_tensor/device" "$D/msprobe_tensor/bench" >p.acc
	accfmt --json p.acc | jq -c '[.kind, .name, .id]' >want
	accmetric -j 1 p.acc | accfmt --json >j1
	accmetric -j 5 p.acc | accfmt --json >j5
	cmp j1 j5
	jq -c '[.kind, .name, .id]' <j1 | cmp - want
	accfmt --json "$DATA/streams/unknown.acc" >want
	accmetric "$DATA/streams/unknown.acc" | accfmt --json | cmp - want
}

@test "measured again, nothing is left of the first time" {
	accalign "$D/msprobe_tensor/device" "$D/msprobe_tensor/bench" | accmetric >m.acc
	accmetric -m cosine,acu.kld m.acc | accmetric | accfmt --json >again
	accfmt --json m.acc | cmp - again
}

@test "-m chooses" {
	accalign "$DATA/metric_pairs/device" "$DATA/metric_pairs/bench" >p.acc
	keys=$(accmetric -m rmse,m.acu.kld p.acc | accfmt --json |
		jq -s -c '[.[] | keys[] | select(startswith("m."))] | unique')
	[ "$keys" = '["m.acu.kld","m.layout","m.mode","m.rmse","m.skip"]' ]
	accmetric -m +diff1,m.acu.cosine p.acc | accfmt --json >extra
	[ "$(jq -s 'map(select(has("m.diff1"))) | length > 0 and all(has("m.acu.cosine") and has("m.rmse") and
		."m.diff1" == ."m.rel_l2" and (has("m.diff2") | not))' extra)" = true ]
	run -2 accmetric -m rmse,nothing p.acc
	[[ $output == *"there is no metric 'nothing'"* ]]
	run -2 accmetric -m rmse --preset=msprobe p.acc
	run -2 accmetric --preset=other p.acc
	run -2 accmetric --rtol=-1 p.acc
}

@test "metrics that need no ratios: as among all" {
	list=cosine,one_minus_cosine,euclid,rel_l2,rmse,snr,mean_abs,max_abs,worst,nonfinite
	columns=name,m.${list//,/,m.},m.layout,a.s.max,b.s.norm
	for d in "$D"/msprobe_tensor/{device,bench} "$DATA"/metric_pairs/{device,bench} "$DATA"/layout/{a,b}; do
		sides+=("$d")
		[ $((${#sides[@]} % 2)) -eq 0 ] || continue
		accalign "${sides[@]: -2}" >pairs
		accmetric pairs | cells "$columns" >all
		[ "$(wc -l <all)" -gt 10 ]
		accmetric -m "$list" pairs | cells "$columns" | cmp - all
	done
	# Nor is the content of pairs hashed.
	[ "$(accmetric pairs | accfmt --json | jq -c 'select(has("a.s.hash") and has("m.rmse"))' | wc -l)" -gt 2 ]
	[ "$(accmetric -m rmse pairs | accfmt --json | jq -c 'select(has("a.s.hash") and has("m.rmse"))' | wc -l)" = 0 ]
}

@test "--rtol, --atol: where the share outside begins" {
	accalign "$DATA/metric_pairs/device" "$DATA/metric_pairs/bench" >p.acc
	outside() { # the three, options
		accmetric "${@:2}" p.acc | accfmt --json >m
		holds Functional.edge_1e3.0.forward.output.0 "[.\"m.outside\", .\"m.rtol\", .\"m.atol\"] == $1" m
	}
	outside '[1/3, 0, 0.002]' --rtol=0 --atol=0.002
	outside '[1, 0.0002, 0]' --rtol=0.0002 --atol=0
	outside '[1, 1.3e-6, 1e-5]'
}

@test "corner cases: what is agreement, what is not" {
	accalign "$DATA/metric_pairs/device" "$DATA/metric_pairs/bench" | accmetric | accfmt --json >m
	is() { # case, jq condition
		holds "Functional.$1.0.forward.output.0" "$2" m
	}
	is inf_sign '."m.nonfinite" == 1 and ."m.err_rms" == "Infinity" and ."m.err_max" == "Infinity"'
	is inf_sign '."m.outside" == 0.25 and ."m.same" == 0.75 and ."a.s.max" == "Infinity"'
	is nan_alike '."m.nonfinite" == 0 and ."m.max_abs" == 0.5 and ."m.same" == 0.75'
	is nan_one_side '."m.nonfinite" == 1 and ."a.s.nan" == 1 and ."b.s.nan" == 0 and ."a.s.max" == "NaN"'
	is inf_against_nan '."m.nonfinite" == 1'
	is a_all_zero '."m.cosine" == 0 and ."m.rel_l2" == 1'
	is b_all_zero '."m.cosine" == 0 and ."m.rel_l2" == "Infinity" and ."m.b_zero" == 3'
	is both_zero '."m.cosine" == 1 and ."m.rel_l2" == 0 and ."m.snr" == "Infinity"'
	is b_zero '."m.b_zero" == 2 and ."m.max_rel" == 0'
	is empty '."m.skip" == "no elements" and (has("m.cosine") | not)'
	is shapes '."m.mode" == "tensor" and (.note | contains("shape")) and ."m.max_abs" == 0'
	is squeeze '."m.worst" == [0, 2]'
	is scalar '."m.worst" == [] and ."m.max_abs" == 0.5'
	is f16_f32 '."m.ulp_max" == 0 and ."m.max_abs" > 0.0001'
	is int64 '."m.ulp_max" == 1 and ."m.ulp_hist" == [2, 2]'
}

@test "element counts that differ are said" {
	accalign "$DATA/metric_pairs/device" "$DATA/metric_pairs/bench" >p.acc
	mkdir d
	cp -R "$DATA/metric_pairs/device" d/device
	sed 's/"shape": \[\], "data_name": "Functional.scalar.0/"shape": [40], "data_name": "Functional.scalar.0/' \
		"$DATA/metric_pairs/device/dump.json" >d/device/dump.json
	cp d/device/dump_tensor_data/Functional.near.0.forward.output.0.npy \
		d/device/dump_tensor_data/Functional.scalar.0.forward.output.0.npy
	accalign d/device "$DATA/metric_pairs/bench" | accmetric | accfmt --json >m
	holds Functional.scalar.0.forward.output.0 '."m.skip" == "element counts differ: 40 and 1" and
		."b.s.max" == 1 and (has("m.cosine") | not) and (has("m.mode") | not)' m
}

@test "statistics only: differences and ratios" {
	accalign "$DATA/metric_stats/device" "$DATA/metric_stats/bench" | accmetric | accfmt --json >m
	row() { # case, [mode, four differences, four ratios, skip]
		holds "Functional.$1.0.forward.output.0" "[.\"m.mode\", .\"m.max_diff\", .\"m.min_diff\",
			.\"m.mean_diff\", .\"m.norm_diff\", .\"m.max_relerr\", .\"m.min_relerr\",
			.\"m.mean_relerr\", .\"m.norm_relerr\", .\"m.skip\"] == $2" m
	}
	row nan '["statistics", 0, "NaN", 0, 0, 0, "Infinity", 0, 0, null]'
	row inf '["statistics", "Infinity", "Infinity", "-Infinity", "Infinity", "Infinity", "Infinity",
		"Infinity", "Infinity", null]'
	row zero '["statistics", 1, 0, 0.5, 0, "Infinity", 0, "Infinity", 0, null]'
	row ints '["statistics", -1, 0, null, null, 0.125, 0, null, null, null]'
	row null '[null, null, null, null, null, null, null, null, null,
		"the recorded statistics are null"]'
	row null_one_side '["statistics", null, null, -0.5, 0, null, null, 1/3, 0, null]'
	row bool '["statistics", 0, -1, null, null, 0, 1, null, null, null]'
}

@test "a tensor against statistics only: as the recorder would have formed them" {
	accalign "$DATA/metric_pairs/device" "$DATA/metric_stats/bench" | accmetric | accfmt --json >m
	holds Functional.noise.0.forward.output.0 '."m.mode" == "statistics" and
		[."m.max_diff", ."m.min_diff", ."m.mean_diff", ."m.norm_diff"] == [0, 0, 0, 0] and
		."a.s.max" == ."b.stat.max" and (has("b.s.max") | not)' m
	accalign "$DATA/metric_stats/device" "$DATA/metric_pairs/bench" | accmetric | accfmt --json >m
	holds Functional.noise.0.forward.output.0 '."m.mode" == "statistics" and
		."m.max_relerr" > 0 and ."m.max_relerr" < 1e-5' m
}

@test "arguments are compared as values" {
	accalign "$DATA/metric_stats/device" "$DATA/metric_stats/bench" | accmetric | accfmt --json >m
	values='[."m.mode", ."m.equal", ."m.max_abs", ."m.max_rel"]'
	holds Functional.nan.0.forward.input.0 "$values == [\"value\", false, 1, 0.5]" m
	holds Functional.nan.0.forward.input.1 "$values == [\"value\", true, 0, 0]" m
}

@test "checksums: equal or not; of another kind: not compared" {
	accalign "$D/msprobe_md5/device" "$D/msprobe_md5/bench" | accmetric | accfmt --json >m
	holds Functional.embedding.0.forward.output.0 '."m.equal" == true' m
	holds Functional.gelu.0.forward.output.0 '."m.equal" == false' m
	# The CRC-32 in a torch file is one of these bytes.
	accalign "$D/msprobe_tensor/device" "$D/msprobe_md5/bench" | accmetric | accfmt --json >m
	holds Functional.embedding.0.forward.output.0 '."m.equal" == true' m
	holds Functional.gelu.0.forward.output.0 '."m.equal" == false' m
	mkdir -p a b
	leaf='{"task": "statistics", "level": "L1", "framework": "F", "data": {"Torch.x.0.forward":
		{"input_args": [], "input_kwargs": {}, "output": [{"type": "torch.Tensor", "dtype":
		"torch.bfloat16", "shape": [2], "md5": "M"}]}}}'
	sums() { # framework and checksum of each side
		sed "s/F/$1/; s/M/$2/" <<<"$leaf" >a/dump.json
		sed "s/F/$3/; s/M/$4/" <<<"$leaf" >b/dump.json
		accalign a b | accmetric | accfmt --json |
			jq -c 'select(.kind == "pair") | [."m.mode", ."m.equal", ."m.skip"]'
	}
	[ "$(sums pytorch 0123abcd pytorch 0123abcd)" = '["md5",true,null]' ]
	[ "$(sums pytorch 0123abcd pytorch 1123abcd)" = '["md5",false,null]' ]
	[ "$(sums pytorch 0123abcd pytorch 0x0123456789abcdef)" = '[null,null,"checksums of different kinds"]' ]
	[[ $(sums pytorch 0123abcd mindspore 1123abcd) == '[null,null,"checksums of bf16'* ]]
}

@test "preset msprobe: tensors, as numpy forms them" {
	accalign --preset=msprobe "$DATA/metric_pairs/device" "$DATA/metric_pairs/bench" >p.acc
	accmetric --preset=msprobe-8.3 p.acc | cells \
name,m.cosine,m.euclid,m.max_abs,m.max_rel,m.thousandth,m.five_thousandths,m.accuracy >got
	diff "$DATA/metric_msprobe.tsv" got
	accmetric --preset=msprobe p.acc | cells \
name,m.cosine,m.euclid,m.max_abs,m.max_rel,m.thousandth,m.five_thousandths >got
	cut -f 1-7 "$DATA/metric_msprobe.tsv" | diff - got
	[ -z "$(accmetric --preset=msprobe p.acc | accfmt --json | jq -r 'keys[] | select(test("s\\.max|accuracy"))')" ]
}

@test "presets: in order, the same bits, for any number of threads" {
	accalign "$DATA/metric_pairs/device" "$DATA/metric_pairs/bench" >p.acc
	some='select(.kind == "pair" and (.name | contains(".empty.") | not)) |
		with_entries(select(.key | test("^(name|m\\..*)$")))'
	for p in msprobe ptdbg msaccucmp; do
		accmetric -j 1 --preset=$p p.acc | accfmt --json >want
		[ "$(grep -c 'm\.max_abs\|m\.acu\.max_abs' want)" -gt 10 ]
		for j in 2 7; do
			accmetric -j $j --preset=$p p.acc | accfmt --json | cmp - want
		done
		# Of payload in the stream, too.
		accalign <(accdump-read --inline "$DATA/metric_pairs/device") \
			<(accdump-read --inline "$DATA/metric_pairs/bench") |
			accmetric --preset=$p | accfmt --json | jq -c "$some" >got
		jq -c "$some" <want | cmp - got
	done
}

@test "preset msprobe: statistics as its table prints them" {
	accalign --preset=msprobe "$DATA/metric_stats/device" "$DATA/metric_stats/bench" |
		accmetric --preset=msprobe >m.acc
	row() {
		cells name,m.max_diff,m.min_diff,m.mean_diff,m.norm_diff,m.max_relerr,m.min_relerr,m.mean_relerr,m.norm_relerr <m.acc |
			sed -n "s/^Functional\.$1	//p" | tr '\t' ' '
	}
	# What pandas reads of these two decimals is not what they say; its last digits are kept.
	[ "$(row last_digit.0.forward.output.0)" = \
		"0 0 -1.490116119991919e-08 -0.5 0 0 0.00026180432771584847% 20.0%" ]
	# pandas 3 reads what they say, as Python does.
	accalign --preset=msprobe-26 "$DATA/metric_stats/device" "$DATA/metric_stats/bench" |
		accmetric --preset=msprobe-26 | cells name,m.mean_diff,m.mean_relerr >new
	grep -xF 'Functional.last_digit.0.forward.output.0	-1.4901161193847656e-08	0.0002618043276091726%' new
	[ "$(row nan.0.forward.output.0)" = "0 Nan 0 0 0 Nan 0 0" ]
	[ "$(row inf.0.forward.output.0)" = "inf inf -inf inf inf inf -inf inf" ]
	[ "$(row zero.0.forward.output.0)" = "1.0 -0.0 0.5 0 inf inf inf 0" ]
	[ "$(row tiny.0.forward.output.0)" = "-1e-310 0 0 0 50.0% 0 0 0" ]
	[ "$(row ints.0.forward.output.0)" = "-1.0 0 0 0 12.5% 0 0 0" ]
	[ "$(row null.0.forward.output.0)" = "0 0 0 0 0 0 0 0" ]
	[ "$(row null_one_side.0.forward.output.0)" = "Diff Diff -0.5 0 Diff Diff 33.33333333333333% 0" ]
	[ "$(row bool.0.forward.output.0)" = "0 Diff 0 0 0 Diff 0 0" ]
	[ "$(row nan.0.forward.input.0)" = "-1.0 -1.0 -1.0 -1.0 50.0% 50.0% 50.0% 50.0%" ]
	[ "$(row nan.0.forward.input.1)" = "0 0 0 0 0 0 0 0" ]
}

@test "preset msprobe: what has no data, no partner, no readable file" {
	cp -R "$D/msprobe_tensor" d
	rm d/device/step*/rank*/dump_tensor_data/Functional.gelu.0.forward.output.0.pt
	accalign --preset=msprobe d/device d/bench >p.acc || true
	run accmetric --preset=msprobe p.acc
	accmetric --preset=msprobe p.acc 2>/dev/null | accfmt --json >m || true
	holds Functional.gelu.0.forward.output.0 '."m.cosine" == "unsupported" and
		."m.five_thousandths" == "unsupported"' m
	holds Functional.embedding.0.forward.input.2 '."m.cosine" == "unsupported"' m
}

@test "preset msprobe: the checksum of an argument is that of its text" {
	accalign --preset=msprobe "$D/msprobe_md5/device" "$D/msprobe_md5/bench" |
		accmetric --preset=msprobe | accfmt --json >m
	# crc32(b"2.0"), crc32(b"False"), crc32(b"16"): f570d16c ea0c4734 483e80d4
	[ "$(jq -r 'select(."a.type" == "bool" and ."a.value" == false) | ."a.stat.crc32"' <m | sort -u)" = ea0c4734 ]
	holds Functional.gelu.0.forward.output.0 '."m.mode" == "md5" and ."m.equal" == false' m
	[ -z "$(jq -r 'select(."a.type" == "None") | ."a.stat.crc32" // empty' <m)" ]
}

@test "preset ptdbg: tensors, as numpy forms them" {
	accalign "$DATA/metric_pairs/device" "$DATA/metric_pairs/bench" |
		accmetric --preset=ptdbg | cells \
name,m.cosine,m.max_abs,m.max_rel,m.thousandth,m.five_thousandths,m.accuracy >got
	diff "$DATA/metric_ptdbg.tsv" got
}

@test "preset msaccucmp: ten texts" {
	accalign "$DATA/metric_pairs/device" "$DATA/metric_pairs/bench" |
		accmetric --preset=msaccucmp | accfmt --json >m
	[ "$(jq -c 'select(.name == "Functional.nan_alike.0.forward.output.0") |
		[."m.acu.cosine", ."m.acu.max_abs", ."m.acu.std"]' <m)" = '["nan","nan","(nan;nan),(nan;nan)"]' ]
	[ "$(jq -c 'select(.name == "Functional.squeeze.0.forward.output.0") | to_entries |
		map(select(.key | startswith("m.acu."))) | map(.value)' <m)" = \
'["0.997409","0.500000","0.142857","0.120386","0.005388","(2.000;0.816),(2.167;1.027)","0.166667","0.288675","0.142857","0.047619"]' ]
	[ "$(jq -c 'select(.name == "Functional.flags.0.forward.output.0") | to_entries |
		map(select(.key | startswith("m.acu."))) | map(.value) | unique' <m)" = '["0.577350","0.816497","NaN"]' ]
}

@test "a gradient that is noise is measured against the one that came in" {
	accalign "$DATA/metric_bias/device" "$DATA/metric_bias/bench" | accmetric | accfmt --json >m
	# s = 0.03 rms(-10..9) = 0.1731; without it, s would be 1e-8 and e about 1
	holds Functional.bias.0.backward.output.0 '."m.err_max" < 3e-7 and ."m.err_max" > 2.8e-7 and
		."m.max_rel" > 2' m
}

@test "payload in the stream" {
	accmetric "$DATA/metric_inline.acc" >m.acc
	accfmt --json m.acc >m
	accalign "$DATA/metric_pairs/device" "$DATA/metric_pairs/bench" | accmetric | accfmt --json >f
	keys='with_entries(select(.key | test("^(m|[ab].s)\\.")))'
	jq -c "select(.name == \"noise\") | $keys" <m >got
	jq -c "select(.name == \"Functional.noise.0.forward.output.0\") | $keys" <f >want
	[ -s want ]
	cmp got want
	holds stat '."m.mode" == "statistics" and ."m.max_diff" == -1' m
	# What was measured ends here.
	[ "$(jq -r .kind <m | tr '\n' ' ')" = "source source pair pair pair " ]
	cat "$DATA/metric_inline.acc" | accmetric - | accfmt --json | cmp - m
	holds none '(."m.skip" | contains("neither data nor statistics")) and (has("a.err") | not)' m
	# From two dumps through accalign: in the order of the pairs, the two sides in turn.
	for s in device bench; do
		accdump-read --inline "$DATA/metric_pairs/$s" >"$s.acc"
	done
	accalign device.acc bench.acc >in.acc
	some='select(."m.skip" != "no elements")' # of which nothing comes
	accmetric in.acc | accfmt --json | jq -c "$some | $keys" >got
	jq -c "$some | $keys" <f >want
	[ -s want ]
	cmp got want
	# With too little of it, or in a wrong order.
	fails "100 of its 160 bytes came" accmetric "$DATA/metric_inline_short.acc"
	fails "does not continue its tensor" accmetric "$DATA/metric_inline_order.acc"
	[ -z "$(ls -A "$TMPDIR")" ]
}

@test "a damaged tensor: one line, err in its record, the others are measured, exit 2" {
	cp -R "$D/broken/pt_checksum" d
	f=Functional.gelu.0.forward.output.0.pt
	accdump-read d >t.acc || true
	fails "$f" accmetric t.acc
	accmetric t.acc 2>/dev/null | accfmt --json >m || true
	[ "$(jq -s '[.[] | select(.err != null)] | length' <m)" -eq 1 ]
	[ "$(jq -s '[.[] | select(."s.max" != null)] | length' <m)" -ge 1 ]
	run -0 accmetric --no-check t.acc
	# The presets read by themselves.
	for p in msprobe ptdbg; do
		accalign --preset "$p" d d >p.acc || true
		fails 'checksum (CRC-32) does not match' accmetric --preset "$p" p.acc
		run -0 accmetric --preset "$p" --no-check p.acc
	done
}

@test "files changed underfoot, moved, gone" {
	cp -R "$DATA/metric_pairs" d
	accalign d/device d/bench >p.acc
	run -0 accmetric p.acc
	touch -d 2001-01-01 d/device/dump_tensor_data/Functional.near.0.forward.output.0.npy
	fails Functional.near.0.forward.output.0.npy accmetric p.acc
	mv d e
	accmetric p.acc 2>errors | accfmt --json >m || true
	n=$(jq -s 'map([."a.err", ."b.err"] | map(select(. != null)) | length) | add' <m)
	[ "$(wc -l <errors)" -eq 8 ]
	[ "$(tail -n 1 errors)" = "accmetric: and $((n - 7)) more tensors that could not be read" ]
	run -0 --separate-stderr accmetric --root="$PWD/d=$PWD/e" p.acc
	run -2 accmetric --root=nonsense p.acc
}

@test "a truncated stream, a full disk" {
	accalign "$DATA/metric_pairs/device" "$DATA/metric_pairs/bench" >p.acc
	head -c -3 p.acc >cut.acc
	run -2 accmetric cut.acc
	[[ $output == *cut.acc* ]]
	run -2 --separate-stderr sh -c 'accmetric "$1" >/dev/full' sh p.acc
	[[ $stderr == *"No space left"* ]]
}

# Weights that were measured before they were paired.

# A file of safetensors of f32: text as bytes, of which all is finite. The later bytes are another text.
weights() { # FILE, NAME, rows of 512, first number of the text
	local n=$(($3 * 2048)) head
	head='{"'$2'":{"dtype":"F32","shape":['$3',512],"data_offsets":[0,'$n']}}'
	while [ $((${#head} % 8)) -ne 0 ]; do head="$head "; done
	{
		# shellcheck disable=SC2059 # the number is in the format
		printf "$(printf '\\x%02x\\0\\0\\0\\0\\0\\0\\0' "${#head}")"
		printf %s "$head"
		seq "$4" 9999999 | head -c "$n"
	} >"$1"
}
# Other bytes at a place of a file, whose size and time stay.
altered() { # FILE, where
	touch -r "$1" time
	printf 'XY' | dd of="$1" bs=1 seek="$2" conv=notrunc 2>said || { cat said; return 1; }
	touch -r time "$1"
}
# With and without --measured, but for the head, which has the command.
alike() { # stream
	accmetric "$1" | accfmt --json >without
	accmetric --measured "$1" | accfmt --json >with
	cmp without with
}
measured_pair() { # A B: each measured, or as it is ("-" before it)
	local s
	for s in "$@"; do
		case $s in
		-*) accdump-read "${s#-}" ;;
		*) accdump-read "$s" | accmetric ;;
		esac >"${s#-}.acc"
	done
	accalign "${1#-}.acc" "${2#-}.acc" >p.acc
}

@test "weights that were measured before are not read again where the hashes are the same" {
	weights a.safetensors w 1024 1000000
	cp a.safetensors b.safetensors
	measured_pair a.safetensors b.safetensors
	alike p.acc
	[ "$(jq -r 'select(.kind == "pair") | [.["m.same"] + 0, .["m.max_abs"] + 0, .["m.ulp_hist"][0]] | @tsv' with)" = \
		$'1\t0\t524288' ]
	# They are not: what is altered behind its back is believed.
	altered b.safetensors 1000000
	[ "$(accmetric p.acc | cells m.same)" != 1.0 ]
	[ "$(accmetric --measured p.acc | cells m.same)" = 1.0 ]
	# Not where a file is another now.
	touch b.safetensors
	run -2 accmetric --measured p.acc
	[[ $output == *"b.safetensors: changed since its record was made"* ]]
}

@test "weights without a partner are measured as ever" {
	tar -xzf "$DATA/weights/chunks.tar.gz" one
	weights a.safetensors w 1024 1000000
	for p in "one a.safetensors" "a.safetensors one"; do
		measured_pair $p
		alike p.acc
		[ "$(grep -c '"how":"only-' with)" -ge 3 ]
	done
}

@test "weights of which one side was measured: the other is hashed, and both are read where that differs" {
	weights a.safetensors w 1024 1000000
	cp a.safetensors b.safetensors
	for p in "a.safetensors -b.safetensors" "-a.safetensors b.safetensors"; do
		measured_pair $p
		alike p.acc
		jq -e 'select(.kind == "pair")["m.same"] == 1' with
	done
	# The device is read, the bench is not.
	altered a.safetensors 1000000
	[ "$(accmetric p.acc | cells m.same)" = 1.0 ] && return 1
	alike p.acc
	cp b.safetensors a.safetensors
	measured_pair -a.safetensors b.safetensors
	altered b.safetensors 1000000
	[ "$(accmetric p.acc | cells m.same)" = 1.0 ] && return 1
	[ "$(accmetric --measured p.acc | cells m.same)" = 1.0 ]
}

@test "weights in a part of a packed tensor are compared by its hash" {
	weights a.safetensors w 2048 1000000
	weights b.safetensors w 1024 1000000
	weights c.safetensors w 1024 $((1000000 + 1024 * 2048 / 8))
	for s in b c; do
		measured_pair a.safetensors $s.safetensors
		alike p.acc
		jq -c 'select(.kind == "pair") | [.["m.layout"], .["m.same"] + 0, .["a.s.hash"] == .["b.s.hash"]]' with
	done >got
	printf '["a.part(0,%s,1024)",1,true]\n' 0 1024 | diff - got
	altered c.safetensors 1000000
	[ "$(accmetric p.acc | cells m.same)" != 1.0 ]
	[ "$(accmetric --measured p.acc | cells m.same)" = 1.0 ]
}

@test "weights with what is not finite, of another dtype or not equal are measured as ever" {
	weights a.safetensors w 1024 1000000
	cp a.safetensors b.safetensors
	altered b.safetensors 1000000
	measured_pair a.safetensors b.safetensors
	alike p.acc
	for f in a b; do printf '\xff\xff\xff\xff' | dd of=$f.safetensors bs=1 seek=2000000 conv=notrunc 2>said; done
	measured_pair a.safetensors b.safetensors
	alike p.acc
	cp a.safetensors b.safetensors
	measured_pair a.safetensors b.safetensors
	alike p.acc
	[ "$(jq -c 'select(.kind == "pair") | [.["m.same"] + 0, .["a.s.nan"]]' with)" = '[1,1]' ]
}

# chunks.tar.gz was made by tests/weights/chunks.py.
@test "weights that are put together of whole chunks are not read again" {
	tar -xzf "$DATA/weights/chunks.tar.gz"
	accdump-read ranks | accmetric --measured | accfold --root=ranks >a.acc
	accdump-read one | accmetric --measured >b.acc
	accalign a.acc b.acc >p.acc
	alike p.acc
	same() { jq -c 'select(.kind == "pair") | [.["m.layout"], .["m.same"] + 0, .["a.err"] == null]' "$1"; }
	printf '%s\n' '[null,1,true]' '["a.part(0,0,256)",1,true]' '["a.part(0,256,256)",1,true]' '[null,1,true]' >want
	same with | diff want -
	run ! grep -q chunks with
	# An element of gate that no sample of the layout takes is believed; one of down, which lies in columns, is not.
	rank=ranks/iter_0000010/mp_rank_01/model_optim_rng.pt
	off=$(accfmt --json a.acc | jq 'select(.name | endswith("fc1.weight"))["part.off"][1]')
	altered $rank $((off + 70000))
	run -2 --separate-stderr accmetric p.acc
	accmetric --measured p.acc >m 2>said || [ $? = 2 ]
	accfmt --json m >with
	same with | sed 3q | diff <(sed 3q want) -
	off=$(accfmt --json a.acc | jq 'select(.name | endswith("fc2.weight"))["part.off"][1]')
	altered $rank $((off + 70000))
	run -2 --separate-stderr accmetric --measured p.acc
	[[ $stderr == *"checksum (CRC-32) does not match"* ]]
}
