"""Reads `cargo metadata`: fails if a dependency wants a newer Rust than the workspace states, or if the README states another."""

import json
import pathlib
import sys


def version(text):
    return tuple(int(part) for part in (text + ".0.0").split(".")[:3])


metadata = json.load(sys.stdin)
members = set(metadata["workspace_members"])
stated = {package["rust_version"] for package in metadata["packages"] if package["id"] in members}
if len(stated) != 1 or None in stated:
    sys.exit(f"the workspace states {stated}, one version is wanted")
(rust,) = stated

others = [package for package in metadata["packages"] if package["id"] not in members]
newer = [
    f"{package['name']} {package['version']} wants Rust {package['rust_version']}"
    for package in others
    if version(package["rust_version"] or "1") > version(rust)
]
silent = sum(1 for package in others if not package["rust_version"])

root = pathlib.Path(metadata["workspace_root"])
unsaid = [f"{name} does not say {rust}" for name in ("README.md", "CONTRIBUTING.md") if rust not in (root / name).read_text()]

for fault in newer + unsaid:
    print(fault)
if newer or unsaid:
    sys.exit(1)
print(f"Rust {rust} is enough for {len(others)} dependencies ({silent} of them do not say)")
