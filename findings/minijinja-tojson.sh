#!/bin/sh
# minijinja 3.1.0 against Jinja2 3.1.6 as transformers sets it up: the two engines that render chat templates give other texts,
# and so other tokens, of the same messages. tojson of minijinja writes < > & and the apostrophe as \u003c and so on, and
# numbers without an exponent: 0.00001 and 10000000000000000.0, where Python writes 1e-05 and 1e+16. A call of a tool whose
# arguments hold code or small numbers is another prompt.
# Seen on 2026-11-29:
#   Jinja2    {"code": "a<b && c's", "eps": 1e-05} 1e+16
#   minijinja {"code": "a\u003cb \u0026\u0026 c\u0027s", "eps": 0.00001} 10000000000000000.0
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q minijinja==3.1.0 jinja2==3.1.6
cd "$tmp"
"$tmp/v/bin/python" -W ignore - <<'END'
import json

import jinja2.sandbox
import minijinja
# As transformers/utils/chat_template_utils.py does.
hf = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
hf.filters["tojson"] = lambda x, ensure_ascii=False, indent=None: json.dumps(x, ensure_ascii=ensure_ascii, indent=indent)
mini = minijinja.Environment(trim_blocks=True, lstrip_blocks=True)
template = "{{ tool | tojson }} {{ n }}"
context = {"tool": {"code": "a<b && c's", "eps": 1e-5}, "n": 1e16}
a, b = hf.from_string(template).render(**context), mini.render_str(template, **context)
print("Jinja2   ", a)
print("minijinja", b)
assert a == """{"code": "a<b && c's", "eps": 1e-05} 1e+16"""
assert b == r"""{"code": "a\u003cb \u0026\u0026 c\u0027s", "eps": 0.00001} 10000000000000000.0"""
assert json.loads(a.rsplit(" ", 1)[0]) == json.loads(b.rsplit(" ", 1)[0])
END
