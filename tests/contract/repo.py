"""The repository's own files, as git knows them."""

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def list_files(*suffixes):
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    paths = [ROOT / name for name in listed.split("\0") if name]
    return [p for p in paths if p.is_file() and (not suffixes or p.suffix in suffixes)]


@cache
def read_text(path):
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        return ""  # a picture or a model


def list_functions(path):
    tree = ast.parse(read_text(path))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def tell(path):
    return str(path.relative_to(ROOT))
