"""What the lines of `ops.py` come to: a summary on the terminal, tables as Markdown, and how many operators differ.

    report.py ops.jsonl exported.txt ops.md
"""

import collections
import json
import re
import sys
from pathlib import Path

from ops import CLIENT

MISSING = re.compile(r"(acl\w+) or \w+GetWorkspaceSize not (?:in|found)")
BY_NAME = re.compile(r"(aclop\w+|aclCreateTensorDesc|aclCreateDataBuffer|aclSetTensor\w+): not simulated")
REFUSED = re.compile(r"call (aclnn\w+) failed, error code is (\d+)")


def reason(line):
    """Why a case did not pass, as kind and text."""
    error = line["error"]
    if found := MISSING.search(error):
        return "missing", f"`{found[1]}` is not exported"
    if BY_NAME.search(error) or "current working operator name is" in error:
        return "missing", "takes the older way, operators by name, which is refused"
    if "Only contiguous_format or preserve_format" in error:
        return "client", "knows no memory formats"
    if line["op"] in CLIENT:
        return "client", CLIENT[line["op"]]
    if found := REFUSED.search(error):
        said = [text for text in error.splitlines() if text.startswith(f"{found[1]}: ")]
        return "refused", f"`{found[1]}` refuses with {found[2]}: {said[0].split(': ', 1)[1] if said else '?'}"
    return "wrong", re.sub(r"\s+", " ", error)[:160]


def main():
    raw, exported, page = map(Path, sys.argv[1:4])
    ops, called = {}, collections.defaultdict(lambda: [0, 0])
    for text in raw.open():
        line = json.loads(text)
        if "ok" not in line:
            continue
        op = ops.setdefault(line["op"], {"cases": 0, "failed": 0, "reasons": collections.Counter()})
        op["cases"] += 1
        if not line["ok"]:
            op["failed"] += 1
            op["reasons"][(*reason(line), line["dtype"])] += 1
        for name in line["called"]:
            called[name][0] += 1
            called[name][1] += not line["ok"]
    names = set(exported.read_text().split())
    operators = {name for name in names if f"{name}GetWorkspaceSize" in names}
    kinds = collections.Counter()
    rows = []
    for name, op in ops.items():
        if not op["failed"]:
            kinds["passed"] += 1
            continue
        found = {kind for kind, _, _ in op["reasons"]}
        worst = next(kind for kind in ("wrong", "refused", "client", "missing") if kind in found)
        kinds[worst] += 1
        merged = collections.defaultdict(list)
        for kind, text, dtype in op["reasons"]:
            merged[(kind, text)].append(dtype)
        for (kind, text), dtypes in merged.items():
            dtypes = ", ".join(dict.fromkeys(dtypes))
            rows.append((name, f"{op['cases'] - op['failed']} of {op['cases']}", dtypes, kind, text.replace("|", "\\|")))
    cases, failed = sum(op["cases"] for op in ops.values()), sum(op["failed"] for op in ops.values())
    summary = [
        f"{len(ops)} operators of torch, {cases} cases, {cases - failed} passed",
        f"{kinds['passed']} operators pass in all cases",
        f"{kinds['refused']} have cases that the library refuses, {kinds['missing']} need functions that are not exported",
        f"{kinds['client']} differ by torch_npu's own doing, {kinds['wrong']} differ otherwise",
        f"{len(operators)} aclnn operators are exported, {len(operators & called.keys())} of them were called",
    ]
    print("\n".join(summary))
    with page.open("w") as out:
        out.write("".join(f"* {line}\n" for line in summary))
        out.write("\n| operator | passed | element types | kind | reason |\n|---|---|---|---|---|\n")
        out.write("".join(f"| `{a}` | {b} | {c} | {d} | {e} |\n" for a, b, c, d, e in rows))
    sys.exit(min(kinds["wrong"], 100))


if __name__ == "__main__":
    main()
