"""Answers that compile almost instantly: every function reports that it is not supported.

Uses only the standard library.
"""
import json

ENOTSUP = 2  # ASSAY_ENOTSUP


def source_of(root, challenge, remark):
    spec = json.loads((root / "challenges" / challenge / "spec.json").read_text())
    # The arguments are never looked at.
    functions = [f'extern "C" int {name}() {{ return {ENOTSUP}; }}\n' for name in spec["symbols"]["required"]]
    return "".join(functions) + f"// {remark}\n"


def challenges_of(root):
    return sorted(path.parent.name for path in root.glob("challenges/*/spec.json"))


def submit(root, submissions, models, challenges, same=False):
    """Gives each model an answer to each challenge. With `same` all answers are identical, so only one is built."""
    for model in models:
        for challenge in challenges:
            folder = submissions / model / challenge
            folder.mkdir(parents=True)
            (folder / "submission.cpp").write_text(source_of(root, challenge, "anybody" if same else model))
