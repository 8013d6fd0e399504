# What cluster.bats and tests/hosts share: the recipes of acc-cluster(7), and machines to run them on, with nothing outside of the
# folder where one is. Its caller sets ROOT and ends what runs with slurm_ends and hosts_end, however it leaves.

# recipe N [RANKS]: the N-th example of the page, for so many ranks in the place of its two
recipe() {
	awk -v n="$1" '/^\.Ed/ { on = 0 } on { print } /^\.Bd/ { on = ++i == n }' "$ROOT/man/acc-cluster.7" |
		sed "s/\\\\e/\\\\/g; s/\\\\-/-/g
			s/seq 0 1/seq 0 $((${2-2} - 1))/; s/--expect-ranks=2/--expect-ranks=${2-2}/; s/--array=0-1/--array=0-$((${2-2} - 1))/"
}

# Hosts of ssh, 127.0.0.1 and on, each with an sshd; those of more than one see only DIR/N as ./dev. Why there are none is in sshd.log.
hosts_start() { # port, hosts [, DIR]
	local i key
	for key in host key; do
		ssh-keygen -q -t ed25519 -N '' -f $key </dev/null
	done
	mkdir -p /run/sshd bin 2>sshd.log || return 1
	for i in $(seq "$2"); do
		set -- "$1" "$2" "${3-}" "$(command -v sshd)" -f /dev/null -h "$PWD/host" -p "$1" -o ListenAddress="127.0.0.$i" -o UsePAM=no \
			-o AuthorizedKeysFile="$PWD/key.pub" -o StrictModes=no -o PidFile="$PWD/sshd$i.pid"
		if [ -z "$3" ]; then
			"${@:4}" 2>sshd.log || return 1
		else
			unshare -m sh -c 'mount --bind "$0" dev && exec "$@"' "$3/$((i - 1))" "${@:4}" 2>sshd.log || return 1
		fi
	done
	printf '#!/bin/sh\nexec %s -F /dev/null -q -p %s -i %s/key -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no "$@"\n' \
		"$(command -v ssh)" "$1" "$PWD" >bin/ssh
	chmod +x bin/ssh
	for _ in $(seq 50); do
		! bin/ssh "127.0.0.$2" true 2>sshd.log </dev/null || return 0
		sleep 0.2
	done
	return 1
}

hosts_end() {
	local p
	for p in sshd*.pid; do
		[ ! -s "$p" ] || kill "$(cat "$p")" 2>/dev/null || true
	done
}

# A Slurm of so many nodes, each of them this machine. Why there is none is in slurm/why.
slurm_starts() { # [nodes]
	local h i n=${1-1} base=$((20000 + $$ % 10000))
	h=$(hostname -s)
	mkdir -p slurm/state slurm/d
	chmod 700 slurm
	head -c 1024 /dev/urandom >slurm/key
	chmod 400 slurm/key
	munged --force --socket="$PWD/slurm/munge" --key-file="$PWD/slurm/key" --pid-file="$PWD/slurm/munge.pid" \
		--log-file="$PWD/slurm/munge.log" --seed-file="$PWD/slurm/seed" >slurm/why 2>&1 || return 1
	# A container has no cgroups that are its own; with this name no node asks for them.
	printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=%s/slurm/cgroup\n' "$PWD" >slurm/cgroup.conf
	cat >slurm/slurm.conf <<-END
		ClusterName=t
		SlurmctldHost=$h(127.0.0.1)
		SlurmUser=root
		AuthType=auth/munge
		AuthInfo=socket=$PWD/slurm/munge
		StateSaveLocation=$PWD/slurm/state
		SlurmdSpoolDir=$PWD/slurm/d/%n
		SlurmctldPidFile=$PWD/slurm/ctld.pid
		SlurmdPidFile=$PWD/slurm/d.%n.pid
		SlurmctldLogFile=$PWD/slurm/ctld.log
		SlurmdLogFile=$PWD/slurm/d.%n.log
		SlurmctldPort=$base
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SchedulerType=sched/builtin
		SelectType=select/cons_tres
		SelectTypeParameters=CR_CPU
		SlurmdParameters=config_overrides
		NodeName=n[0-$((n - 1))] NodeHostname=$h NodeAddr=127.0.0.1 Port=[$((base + 10000))-$((base + 9999 + n))] CPUs=1 RealMemory=500 State=UNKNOWN
		PartitionName=p Nodes=ALL Default=YES State=UP OverSubscribe=FORCE
	END
	export SLURM_CONF=$PWD/slurm/slurm.conf
	slurmctld >slurm/why 2>&1 3>&- || return 1
	for i in $(seq 0 $((n - 1))); do
		mkdir "slurm/d/n$i"
		slurmd -N "n$i" >slurm/why 2>&1 3>&- || return 1
	done
	for _ in $(seq 150); do
		[ "$(sinfo -h -o '%t %D' 2>slurm/why)" != "idle $n" ] || break
		sleep 0.2
	done
	# Containers may let it start, and no job of it.
	timeout 30 srun -n 1 true 2>slurm/why
}

slurm_ends() {
	local p
	for p in slurm/*.pid; do
		[ ! -s "$p" ] || kill "$(cat "$p")" 2>/dev/null || true
	done
}
