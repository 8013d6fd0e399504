#!/bin/sh
# accrec1.h in a real llama.cpp, against torch: llama_cpp.sh FOLDER (not in CI: builds llama.cpp of llama-cpp-python's source
# package; needs cmake, ninja, and PYTHON with torch, transformers, gguf, scikit-build-core). The right one must be
# clean, and of each fault the layer be named. BIN: the programs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${BIN:=$here/../../bin}" "${PYTHON:=python3}" "${JOBS:=2}"
mkdir -p "$1" && cd "$1"
if [ ! -x llama_cpp ]; then
	[ -d src ] || {
		"$PYTHON" -m pip download -q --no-deps --no-binary :all: --no-build-isolation llama-cpp-python==0.3.36
		mkdir src && tar xzf llama_cpp_python-*.tar.gz -C src --strip-components 1 && rm llama_cpp_python-*.tar.gz
	}
	cmake -S src/vendor/llama.cpp -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 \
		-DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DBUILD_SHARED_LIBS=OFF -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TESTS=OFF \
		-DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_CURL=OFF >cmake.log
	ninja -C build -j "$JOBS" llama >ninja.log
	c++ -std=c++17 -Wall -Wextra -Werror -I"$here/../../include" -Isrc/vendor/llama.cpp/include -Isrc/vendor/llama.cpp/ggml/include \
		"$here/llama_cpp.cpp" -o llama_cpp build/src/libllama.a build/ggml/src/libggml.a build/ggml/src/libggml-cpu.a \
		build/ggml/src/libggml-base.a -ldl -pthread
fi
wrong=0
for fault in qwen2-none qwen2-rows qwen2-scale qwen2-norm llama-none llama-rows llama-scale llama-norm; do
	rm -rf "$fault" && mkdir "$fault"
	# shellcheck disable=SC2046 # numbers
	./llama_cpp "$fault/model.gguf" "$fault/device" \
		$(PYTHONPATH="$here/../../python" "$PYTHON" "$here/llama_cpp.py" "${fault%-*}" "$fault" "${fault#*-}")
	status=0
	"$BIN/accdiff" "$fault/device" "$fault/bench" >"$fault/said" 2>&1 || status=$?
	echo "$fault: exit status $status: $(grep -m 1 : "$fault/said")"
	case $fault:$status in *-none:0) ;; *-none:*) wrong=1 ;; *:1) ;; *) wrong=1 ;; esac
done
exit $wrong
