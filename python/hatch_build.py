"""What hatchling puts into the wheel beside accrecord: the programs, their pages and completions,
and libaccrec, where accrecord looks for it first.

`pip install ./python` builds them here by make, of the tree that this folder lies in; `make wheel`
has built them and says where: ACCTOOLS_TREE, as `make install` leaves it, for ACCTOOLS_MACHINE.
"""
import os
import platform
import re
import subprocess
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARY = "libaccrec.so.0"
C_LIBRARY = re.compile(r"lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux[-\w]*\.so\.\d+")


def elf(path, what):
    return subprocess.run(["readelf", "-W", what, path], check=True, stdout=subprocess.PIPE,
                          encoding="utf-8").stdout


def manylinux(files):
    """The oldest C library that these files run with, which must be all that they load."""
    newest = (2, 17)
    for path in files:
        with open(path, "rb") as f:
            if f.read(4) != b"\x7fELF":
                continue
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", elf(path, "-d")):
            if not C_LIBRARY.fullmatch(name):
                raise SystemExit(f"{path} loads {name}: that is not in every Linux")
        for version in re.findall(r"Name: GLIBC_([\d.]+)", elf(path, "-V")):
            newest = max(newest, tuple(map(int, version.split(".")[:2])))
    return "manylinux_%d_%d" % newest


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        tree, machine = os.environ.get("ACCTOOLS_TREE"), os.environ.get("ACCTOOLS_MACHINE")
        system = None
        if tree is None:
            machine, system = platform.machine(), "linux"
            tree = os.path.join(self.make(), "usr")
        programs = self.below(os.path.join(tree, "bin"))
        library = os.path.join(tree, "lib", LIBRARY)
        system = system or manylinux([*programs, library])
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{system}_{machine}"
        build_data["shared_scripts"].update({p: os.path.basename(p) for p in programs})
        build_data["shared_data"].update(
            {f: os.path.relpath(f, tree) for f in self.below(os.path.join(tree, "share"))})
        build_data["force_include"][library] = f"accrecord/{LIBRARY}"

    def make(self):
        top = os.path.dirname(os.path.abspath(self.root))
        if not os.path.exists(os.path.join(top, "Makefile")):
            raise SystemExit("acctools is built in its whole source tree, which this folder is a part of")
        self.tree = tempfile.TemporaryDirectory()
        # Not what a make that runs this was told.
        env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        subprocess.run(["make", "-C", top, f"-j{os.cpu_count()}", "PREFIX=/usr",
                        f"DESTDIR={self.tree.name}", "install-run"], env=env, check=True)
        return self.tree.name

    def finalize(self, version, build_data, artifact_path):
        if hasattr(self, "tree"):
            self.tree.cleanup()

    @staticmethod
    def below(folder):
        """Its files; a wheel has no links, but what they lead to."""
        return sorted(os.path.join(d, n) for d, _, names in os.walk(folder) for n in names)
