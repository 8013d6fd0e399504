load helper
# The recipes of acc-cluster(7), as they stand there, on two ranks. What a machine lacks is skipped.

. "$ROOT/tests/cluster.bash"

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	tar -xzf "$DATA/parallel.tar.gz"
	mkdir dev bench
	cp -r mc2-scale-noise/step0 dev
	cp -r mc2-noise/step0 bench
}

teardown_file() {
	cd "$BATS_FILE_TMPDIR" || return
	slurm_ends
	hosts_end
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
	rm -rf out
	mkdir out
}

# The fault of rank 1 is named, and followed to rank 0.
told() {
	[[ $output == *"rank 1, step 0: NPU.npu_mm_all_reduce_base.1.forward: output 0 has statistics off"* ]] &&
		[[ $output == *"rank 0 receives it through communication"* ]]
}

needs() {
	for p; do command -v "$p" >/dev/null || skip "no $p here"; done
}

@test "acc-cluster: GNU parallel on one machine" {
	needs parallel
	recipe 1 >r.sh
	grep -q accfirstbad r.sh
	run -1 sh r.sh
	told
	rm -r out/*
	sed 's/seq 0 1/seq 0 0/' r.sh >lost.sh
	run -2 sh lost.sh
	[[ $output == *"of 2 ranks of the device 1 is missing: 1"* ]]
}

@test "acc-cluster: over ssh, where the remote PATH is not set" {
	needs parallel ssh sshd ssh-keygen
	hosts_start $((20000 + $$ % 20000)) 1 || {
		hosts_end
		skip "no way in by ssh here: $(head -n 1 sshd.log)"
	}
	printf '%s 127.0.0.1\n' 0 1 >ranks
	recipe 2 | sed "s:/opt/acctools/bin:$BIN:" >r.sh
	grep -q -e --inline r.sh
	PATH=$PWD/bin:$PATH run sh r.sh
	hosts_end
	[ "$status" -eq 1 ]
	told
}

@test "acc-cluster: a job fails if something cannot be read, not if two runs differ" {
	recipe 3 >one.sh
	recipe 4 >all.sh
	for r in 0 1; do SLURM_ARRAY_TASK_ID=$r sh one.sh; done
	run -0 sh all.sh
	run -1 accfmt out/all.acc
	told
	mkdir gone
	mv dev/step0/rank1 gone
	SLURM_ARRAY_TASK_ID=1 run -2 sh one.sh
	run -1 sh all.sh
	mv gone/rank1 dev/step0
}

@test "acc-cluster: a Slurm array, and what waits for it" {
	needs sbatch slurmctld slurmd munged
	[ "$(id -u)" -eq 0 ] || skip "a Slurm of one's own needs root here"
	slurm_starts || {
		slurm_ends
		skip "no Slurm runs here: $(tail -n 1 slurm/why)"
	}
	recipe 3 >one.sh
	recipe 4 >all.sh
	recipe 5 >r.sh
	sed -i "2i PATH=$BIN:\$PATH" one.sh all.sh
	run -1 timeout 100 sh r.sh
	slurm_ends
	told
}

@test "acc-cluster: mpirun, a process a rank" {
	needs mpirun
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2 true 2>err ||
		skip "mpirun does not run here: $(head -n 1 err)"
	recipe 6 | sed 's/mpirun/& --oversubscribe/' >r.sh
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	run -1 sh r.sh
	told
}

@test "acc-cluster: stages of a pipeline against one card" {
	mv dev dev.tp && mv bench bench.tp
	mkdir dev bench
	cp -r pp2-noise/step0 dev
	cp -r one/step0 bench
	recipe 7 >r.sh
	run -0 sh r.sh
	[ "$(grep -c "none adds more error" <<<"$output")" -eq 2 ]
	rm -r dev bench
	mv dev.tp dev && mv bench.tp bench
}
