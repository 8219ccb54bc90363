"""Each function of a challenge gets more than one value of each argument that it shares with others.

An answer that takes an argument of an optional function for granted would pass otherwise, however well the argument is
tested where the function is required. Usage: arguments_test.py ROOT.
"""
import json
import pathlib
import sys

ROOT = pathlib.Path(sys.argv[1])


def attention(p):
    """The function that is called with these parameters."""
    for name, marks in (("varlen", {"q_len"}), ("fp8", {"fp8"}), ("bias", {"bias"}), ("chained", {"chained"}),
                        ("extra", {"softcap", "alibi", "sink", "kv_len", "dlse"})):
        if marks & p.keys():
            return name
    return "plain"


def verbs(p):
    script = p.get("script", "")
    text = script if isinstance(script, str) else ";".join(script)
    words = text.replace("{", ";").replace("}", ";").split(";")
    return {word.split()[0].split("@")[0].split("!")[0].removeprefix("2.") for word in words if word.split()}


def grouped(p):
    heads = p.get("Hq", 1)
    return p.get("Hkv", heads) != heads


def has(name):
    return lambda p: name in p


def configured(name):
    return lambda p: name in p.get("config", {})


SAME = {None: "backward", "twice": "backward", "older_cache": "backward"}

# Of each challenge: the functions that a case calls, and when an argument is not the usual one.
CHALLENGES = {
    "fused_softmax_topk": (lambda p: {f"{p.get('entry', 'prob')} {p.get('dtype', 'f32')}"},
                           {name: has(name) for name in ("temperature", "pad", "null_lse")}),
    "layer_norm_backward": (lambda p: {SAME.get(p.get("mode"), p.get("mode"))}, {"eps": has("eps")}),
    "flash_attention_fwd": (lambda p: {attention(p)}, {"scale": has("scale"), "layout": has("layout"),
                                                       "grouped heads": grouped, "null_lse": has("null_lse")}),
    "flash_attention_bwd": (lambda p: {attention(p)}, {"scale": has("scale"), "layout": has("layout"),
                                                       "grouped heads": grouped}),
    "kv_cache": (lambda p: verbs(p) & {"attend", "step", "tree", "shared"}, {"scale": has("scale")}),
    "ternary_training": (lambda p: {p["entry"]} & {"logits", "generate"}, {"eps": configured("eps"),
                                                                           "tied": configured("tied")}),
}


def is_valid(case):
    """Whether the call must succeed."""
    p = case["params"]
    return not ({"null", "override", "invalid"} & p.keys()) and not str(p.get("mode", "")).startswith("invalid")


missing = []
for challenge, (functions_of, arguments) in CHALLENGES.items():
    spec = json.loads((ROOT / "challenges" / challenge / "spec.json").read_text())
    called = {}
    for case in filter(is_valid, spec["cases"]):
        for function in functions_of(case["params"]):
            called.setdefault(function, []).append(case["params"])
    assert len(called) > 1, f"{challenge}: {called.keys()}"
    for function, cases in called.items():
        for argument, is_unusual in arguments.items():
            if len(set(map(is_unusual, cases))) < 2:
                missing.append(f"{challenge}: {function} always has the same {argument}, in {len(cases)} cases")
print("\n".join(missing) or "every argument varies")
sys.exit(1 if missing else 0)
