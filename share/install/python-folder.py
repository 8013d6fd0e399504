"""Prints the folder of packages beneath PREFIX that this Python reads, or nothing.

python-folder.py PREFIX
"""
import site
import sys

folders = [f for f in site.getsitepackages() if f.startswith(sys.argv[1] + "/lib")]
# One for all versions of Python, where there is one.
for f in sorted(folders, key=lambda f: "/python3/" not in f)[:1]:
    print(f)
