load helper
S=$BATS_TEST_DIRNAME/data/streams

@test "json: every type, strict, exact" {
	run -0 accfmt --json "$S/every-type.acc"
	[ "$(jq -r .kind <<<"$output")" = tensor ]
	[[ $output == *'"int":-5,"big":9223372036854775813,"float":0.1,"small":5e-324,"nan":"NaN","inf":"Infinity","ninf":"-Infinity","true":true,"nil":null,"empty":""'* ]]
	[ "$(jq -r .text <<<"$output")" = 'a "quote", a \ and a
line' ]
	[ "$(jq -r .utf8 <<<"$output")" = 标杆 ]
	[ "$(jq -c '[.shape, .none, .texts, .bin]' <<<"$output")" = '[[2,-3],[],["a",""],"2 bytes"]' ]
}

@test "json: a byte that is no UTF-8 becomes U+FFFD" {
	run -0 accfmt --json "$S/not-utf8.acc"
	[ "$output" = '{"kind":"tensor","name":"\ufffd"}' ]
}

@test "csv: quotes where needed, numbers read back" {
	run -0 accfmt --csv -c name,float,small,nan,ninf,big,nil,shape,texts,text "$S/every-type.acc"
	[ "${lines[0]}" = name,float,small,nan,ninf,big,nil,shape,texts,text ]
	[ "${lines[1]}" = 'x,0.1,5e-324,nan,-inf,9223372036854775813,,"[2, -3]","[a, ]","a ""quote"", a \ and a' ]
	[ "${lines[2]}" = 'line"' ]
}

@test "tsv: a row is a line" {
	run -0 accfmt --tsv --no-header -c text,name "$S/every-type.acc"
	[ "$output" = $'a "quote", a \\\\ and a\\nline\tx' ]
}

@test "md: a table" {
	run -0 accfmt --md -c name,text "$S/every-type.acc"
	[ "${lines[0]}" = '| name | text |' ]
	[ "${lines[1]}" = '|---|---|' ]
	[ "${lines[2]}" = '| x | a "quote", a \\ and a<br>line |' ]
}

@test "all columns, in the order of their appearance" {
	run -0 accfmt --csv -c all "$S/rank0.acc" "$S/rank1.acc"
	[ "${lines[0]}" = kind,name,seq,step,rank ]
	[ "${#lines[@]}" -eq 5 ]
}

@test "several streams are merged by step, rank and order" {
	run -0 accfmt --tsv --no-header -c name "$S/rank1.acc" "$S/rank0.acc"
	[ "${lines[*]}" = "a c b d" ]
}

@test "sort: numbers, then texts, then nothing; NaN beyond all; ties keep their order" {
	run -0 accfmt --tsv --no-header -c name -s v "$S/sort.acc"
	[ "${lines[*]}" = "two two again ten nan text none" ]
	run -0 accfmt --tsv --no-header -c name --sort=-v "$S/sort.acc"
	[ "${lines[*]}" = "nan ten two two again text none" ]
}

@test "table: short numbers, no empty columns, then the findings; the status passes" {
	run -1 accfmt "$S/judged.acc"
	[[ ${lines[0]} == name*a.dtype*a.shape*m.max_abs*m.rel_l2*bad ]]
	[[ ${lines[2]} == *"0.3333  error" ]]
	[ "${lines[3]}" = "Torch.add.0.forward is wrong" ]
	[[ $output != *$'\033'* ]]
}

@test "table: on a terminal it fits the width and has colour, unless NO_COLOR" {
	run -1 script -qec "stty cols 60; accfmt $S/judged.acc" /dev/null
	[[ $output == *$'\033[31m'* ]]
	while IFS= read -r l; do
		l=$(sed 's/\x1b\[[0-9;]*m//g; s/\r//' <<<"$l")
		[ "${#l}" -le 60 ]
	done <<<"$output"
	run -1 env NO_COLOR=1 script -qec "accfmt $S/judged.acc" /dev/null
	[[ $output != *$'\033'* ]]
}

@test "msprobe's columns take Python's spelling" {
	run -1 accfmt --csv -c msprobe "$S/judged.acc"
	[[ ${lines[0]} == "NPU Name,Bench Name,NPU Dtype"*"Result,Err_message,NPU_Stack_Info,Data_name" ]]
	[[ ${lines[1]} == 'Torch.add.0.forward.input.0,Torch.add.0.forward.input.0,,,"[2, 3]",'*',0.0,'*',pass,[],'* ]]
	[[ ${lines[2]} == *',error,"[""off""]",'* ]]
}

@test "list names the formats; an unknown one is wrong usage" {
	run -0 accfmt --list
	[ "$(cut -d' ' -f1 <<<"$output" | tr '\n' ' ')" = "table json csv tsv md " ]
	run -2 --separate-stderr accfmt -f xls "$S/sort.acc"
	[[ $stderr == "accfmt: no format is called 'xls'"* ]]
}
