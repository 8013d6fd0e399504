#!/bin/bash
# Packages of the libraries that are linked in, for ARCH as Debian calls it (amd64, arm64), unpacked
# into FOLDER: the system's own packages stay as they are, and their headers stand apart from those
# of its C library.
#	libs.sh ARCH FOLDER
set -euo pipefail
arch=$1 to=$2
apt=$to.apt
rm -rf "$to" "$apt"
mkdir -p "$to" "$apt"/{lists,archives}/partial
: >"$apt/status"
opt=(-q -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status"
	-o Dir::Cache="$apt" -o APT::Architecture="$arch" -o APT::Architectures="$arch"
	-o Debug::NoLocking=1 -o APT::Sandbox::User=root)
apt-get "${opt[@]}" update || true
msgpack=libmsgpack-dev
[ -z "$(apt-cache "${opt[@]}" show libmsgpack-c-dev 2>/dev/null)" ] || msgpack=libmsgpack-c-dev
(cd "$apt" && apt-get "${opt[@]}" download $msgpack zlib1g-dev libdeflate-dev libxxhash-dev \
	libpcre2-dev libyaml-dev libxlsxwriter-dev libsqlite3-dev libexpat1-dev libzstd-dev)
for deb in "$apt"/*.deb; do
	dpkg-deb -x "$deb" "$to"
done
rm -rf "$apt"
