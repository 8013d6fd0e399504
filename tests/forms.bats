load helper
F=${BATS_TEST_DIRNAME}/forms

# What a file holds, as the table says it: TAG N STEP VALUE STEP VALUE, and KEY=VALUE; no TAG: none of this name.
held() { # file
	accdump-read "$1" 2>/dev/null | accfmt --tsv --no-header -c kind,tag,step,value,key 2>/dev/null | awk -F'\t' '
		$1 == "scalar" { if (!n[$2]++) first[$2] = $3 " " $4 + 0; last[$2] = $3 " " $4 + 0 }
		$1 == "param" { print $5 "=" $4 }
		END { for (t in n) print t, n[t], first[t], last[t] }'
}

@test "forms of logs and configurations: what each file holds" {
	bad=0
	while IFS=$'\t' read -r file _ form _ _ right; do
		got=$(held "$F/$file")
		while read -r want; do
			if [ "${want#no }" != "$want" ]; then
				! grep -q "^${want#no }[ =]" <<<"$got" && continue
			fi
			grep -qxF -- "$want" <<<"$got" || { echo "$file ($form): $want, not:"$'\n'"$got" && bad=1; }
		done < <(sed 's/; /\n/g' <<<"$right")
	done <"$F/table"
	[ "$bad" -eq 0 ]
}

@test "accdump-read --list names each form" {
	cd "$BATS_TEST_TMPDIR" || return
	accdump-read --list >list
	cut -f3 "$F/table" | while read -r form; do grep -qF -- "$form" list || { echo "$form" && exit 1; }; done
}
