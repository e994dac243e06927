"""Package managers and version control."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from typing import TYPE_CHECKING, Final

from tests.bench.failures.case import Case, files, shell

if TYPE_CHECKING:
    from pathlib import Path


def wheel(folder: Path, name: str, needs: str = "") -> None:
    """A wheel of nothing (PyPA binary distribution format)."""
    info = f"{name}-1.0.dist-info"
    parts = {
        f"{name}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {
        path: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        for path, text in parts.items()
    }
    parts[f"{info}/RECORD"] = "".join(f"{path},sha256={digest},\n" for path, digest in digests.items())
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for path, text in parts.items():
            archive.writestr(path, text)


def pip_conflict(folder: Path) -> str:
    names = [f"part_{n}" for n in range(40)]
    for name in names:
        wheel(folder / "wheels", name, "Requires-Dist: base==1.0\n")
    wheel(folder / "wheels", "base")
    wheel(folder / "wheels", "odd_one", "Requires-Dist: base==2.0\n")
    files(folder, {"requirements.txt": "\n".join([*names, "odd_one"])})
    return shell(
        folder,
        "python3 -m venv --without-pip env; pip --python env/bin/python install -v --no-index --find-links wheels -r requirements.txt",
    )


def pip_missing(folder: Path) -> str:
    names = [f"part_{n}" for n in range(60)]
    for name in names:
        wheel(folder / "wheels", name)
    files(folder, {"requirements.txt": "\n".join([*names[:30], "frobnicator>=3", *names[30:]])})
    return shell(
        folder,
        "for round in 1 2 3; do pip download --no-index --find-links wheels -d out$round -r requirements.txt; done; ls wheels",
    )


def pip_build(folder: Path) -> str:
    files(
        folder,
        {
            "frob/pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
            "frob/backend.py": "def build_wheel(*a, **k):\n    for n in range(200): print(f'copying src/frob/part_{n}.h -> build/lib/frob', flush=True)\n"
            "    raise RuntimeError('libfrob 4 is needed to build this, 3.2 was found')\n"
            "def prepare_metadata_for_build_wheel(*a, **k):\n    return build_wheel()\n",
        },
    )
    return shell(folder, "pip wheel --no-index --no-build-isolation ./frob")


def npm_lock(folder: Path) -> str:
    """Workspaces that want two versions of one package, all of them local."""
    parts = {
        f"parts/part-{n}/package.json": f'{{"name": "part-{n}", "version": "1.0.0", "scripts": {{"check": "node check.js"}}}}'
        for n in range(14)
    }
    checks = {
        f"parts/part-{n}/check.js": f"for (let i = 0; i < 12; i++) console.log(`part {n}: rule ${{i}} holds`);"
        for n in range(14)
    }
    checks["parts/part-6/check.js"] += (
        "process.exitCode = 3; console.log('part 6: the licence of left-pad is not allowed');"
    )
    files(
        folder,
        {
            **parts,
            **checks,
            "package.json": '{"name": "shop", "version": "1.0.0", "workspaces": ["parts/*"]}',
        },
    )
    return shell(folder, "npm install --offline --no-audit --no-fund && npm run check --workspaces")


def npm_script(folder: Path) -> str:
    files(
        folder,
        {
            "package.json": '{"name": "shop", "version": "1.0.0", "scripts": {"prebuild": "node steps.js", "build": "node build.js"}}',
            "steps.js": "for (let i = 0; i < 300; i++) console.log(`bundled module ${i} of the shop in ${i % 9} ms`);\n",
            "build.js": "console.log('reading the configuration');\nrequire('./settings/production');\n",
        },
    )
    return shell(folder, 'npm run build; for i in $(seq 120); do echo "uploaded log part $i"; done')


def node_crash(folder: Path) -> str:
    files(
        folder,
        {
            "orders.js": "function price(order) { return order.item.price; }\n"
            "for (let i = 0; i < 900; i++) {\n  const order = i === 433 ? {} : {item: {price: i}};\n"
            "  try { console.log(`order ${i} costs ${price(order)}`); } catch (error) { console.log(error); }\n}\n"
        },
    )
    return shell(folder, "node orders.js")


def git_merge(folder: Path) -> str:
    pages = {f"pages/page_{n:02}.txt": f"page {n}\n" * 9 for n in range(90)}
    files(folder, pages)
    script = "git init -q -b main; git add .; git commit -qm one; git checkout -q -b other; "
    script += "for f in pages/*; do echo added >> $f; done; sed -i 1s/page/PAGE/ pages/page_40.txt; git commit -qam other; git checkout -q main; "
    script += "for f in pages/*; do sed -i '1s/^/title\\n/' $f; done; sed -i 2s/page/Seite/ pages/page_40.txt; git commit -qam main; "
    return shell(folder, script + "git merge other; git status")


def git_push(folder: Path) -> str:
    script = "git init -q --bare up.git; git clone -q up.git a; git clone -q up.git b; "
    script += "cd a; git commit -q --allow-empty -m a; git push -q origin HEAD:main; cd ../b; for n in $(seq 60); do git commit -q --allow-empty -m b$n; git tag v$n; done; "
    return shell(folder, script + "GIT_TRACE=1 git push origin HEAD:main --tags")


def git_hook(folder: Path) -> str:
    hook = 'for n in $(seq 260); do echo "checking src/part_$n.py ... fine"; [ $n = 131 ] && echo "src/part_131.py:7: a private key must not be committed"; done; exit 1\n'
    files(folder, {"a/.git-hooks/pre-commit": "#!/bin/sh\n" + hook, "a/x.txt": "x\n"})
    return shell(
        folder,
        "cd a; git init -q; chmod +x .git-hooks/pre-commit; git config core.hooksPath .git-hooks; git add x.txt; git commit -m x",
    )


def git_apply(folder: Path) -> str:
    files(folder, {f"a/file_{n:02}.txt": f"first\nline {n}\nlast\n" for n in range(70)})
    script = "cd a; git init -q; git add .; git commit -qm one; sed -i s/line/LINE/ *; git diff > ../all.patch; git checkout -q .; echo other > file_33.txt; "
    return shell(folder, script + "git apply -v ../all.patch")


CASES: Final = (
    Case(
        "pip: versions conflict among 41 wheels",
        r"odd[_-]one 1\.0 depends on base==2\.0",
        pip_conflict,
        ("pip", "python3"),
    ),
    Case(
        "pip: no distribution, thrice",
        r"No matching distribution found for frobnicator",
        pip_missing,
        ("pip",),
    ),
    Case(
        "pip: a build back end fails",
        r"RuntimeError: libfrob 4 is needed to build this",
        pip_build,
        ("pip",),
        held_out=True,
    ),
    Case(
        "npm run --workspaces: one of 14 parts", r"the licence of left-pad is not allowed", npm_lock, ("npm",)
    ),
    Case(
        "npm run: a module is missing",
        r"Error: Cannot find module './settings/production'",
        npm_script,
        ("npm",),
        held_out=True,
    ),
    Case(
        "node: an exception among 900 lines",
        r"TypeError: Cannot read properties of undefined",
        node_crash,
        ("node",),
    ),
    Case(
        "git merge: one conflict in 90 files",
        r"CONFLICT \(content\): Merge conflict in pages/page_40\.txt",
        git_merge,
        ("git",),
    ),
    Case("git push: rejected, with a trace", r"! \[rejected\]", git_push, ("git",)),
    Case("git commit: a hook objects", r"a private key must not be committed", git_hook, ("git",)),
    Case("git apply: one of 70 files", r"patch failed: file_33\.txt:1", git_apply, ("git",)),
)
