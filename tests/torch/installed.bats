load ../helper
# accrecord as users get it, under today's PyTorch: by make install, from a wheel, by pip from source.

record='import torch, accrecord
with accrecord.record(output_dir="rec"):
    torch.ones(2) * 3'

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	unset ACCREC_LIBRARY
}

# What was recorded here is read.
recorded() {
	[ "$(accdump-read rec | accfmt --tsv --no-header -c name | tail -n 1)" = Tensor.mul.0.forward.output.0 ]
}

@test "by make install" {
	make -s -C "$ROOT" B="$B" BIN="$BIN" PREFIX="$BATS_TEST_TMPDIR/tree" install >/dev/null
	export PYTHONPATH=$BATS_TEST_TMPDIR/tree/lib/python3/dist-packages
	"$PYTHON" -W ignore -c "$record"
	recorded
	rm -r rec
	# Under the name that a script has for it, which is nowhere else.
	printf '%s\n' "${record/torch, accrecord/torch; from maca_tools import accuracy as accrecord}" >script.py
	run -1 "$PYTHON" -W ignore script.py
	"$PYTHON" -W ignore -m accrecord script.py
	recorded
}

# A venv over that which has PyTorch, with what pip makes of its arguments in it.
pip() {
	"$PYTHON" -m venv --without-pip v
	"$PYTHON" -m pip --python v/bin/python install -q "$@"
	where='import sysconfig; print(sysconfig.get_paths()["platlib"])'
	"$PYTHON" -c "$where" >"$(v/bin/python -c "$where")/torch.pth"
	v/bin/python -W ignore -c "$record"
	PATH=$PWD/v/bin:$PATH recorded
}

@test "from the wheel" {
	wheel=$(echo "$ROOT"/dist/acctools-*_"$(uname -m)".whl)
	[ -f "$wheel" ] || skip "make wheel was not run"
	pip --no-index "$wheel"
}

@test "by pip from source" {
	[ -z "${CI-}" ] || skip "it compiles all once more"
	pip "$ROOT/python"
}
