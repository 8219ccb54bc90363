"""What gpu_peers.py times: PyTorch's operators on the timed cases of the challenges. Does not need torch.

A Peer is one operator on one case: the dtypes and shapes of its inputs, and facts such as which
keys a query sees. If PyTorch has no short answer, the Peer holds the reason instead.
"""
import dataclasses
import json
import pathlib

SIZES = ("full", "sim")
# The keys that a query sees: all of them; those up to its own position, aligned to the last; the text and a node's
# ancestors; as many as facts["lengths"] says.
ALL, CAUSAL, TREE, LENGTHS = "all", "causal", "tree", "lengths"


class SpecError(Exception):
    """A spec that cannot be read, or a timed case that this program does not understand."""


@dataclasses.dataclass(frozen=True)
class Peer:
    challenge: str
    case: str
    sizes: str
    kind: str = ""  # the key of KINDS in gpu_peers_torch.py; "" if left out
    operator: str = ""  # what is timed, in words
    inputs: dict = dataclasses.field(default_factory=dict)  # name: (dtype, shape)
    facts: dict = dataclasses.field(default_factory=dict)
    left_out: str = ""  # the reason

    def shapes(self):
        return ", ".join(f"{name} {dtype} {list(shape)}"
                         for name, (dtype, shape) in self.inputs.items())


# --- specs ----------------------------------------------------------------------------------------


def merge_patch(target, patch):
    """RFC 7386, as assay merges: objects member by member, null removes, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def params_of(case, sizes):
    """The parameters of a case in a spec. Size "sim" means the simulator's parameters."""
    sim = case.get("sim")
    if sizes == "sim" and isinstance(sim, dict):
        return merge_patch(case["params"], sim.get("params", {}))
    return case["params"]


def peers_of_spec(spec, sizes):
    """The peers of all timed cases of a parsed spec.json."""
    name = spec["name"]
    peers = []
    for case in spec["cases"]:
        if case["group"] != "timed" or (sizes == "sim" and case.get("sim") is False):
            continue
        if name not in BUILDERS:
            left_out = "no operator is known for this challenge; add it to gpu_peers_cases.py"
            peers.append(Peer(name, case["name"], sizes, left_out=left_out))
            continue
        try:
            built = BUILDERS[name](params_of(case, sizes))
        except (KeyError, TypeError, ValueError) as error:
            raise SpecError(f"case '{case['name']}' has parameters that gpu_peers_cases.py does "
                            f"not know ({type(error).__name__}: {error}); teach its function of "
                            f"{name} to read them") from error
        peers += [Peer(name, case["name"], sizes, **fields) for fields in built]
    return peers


def read_peers(challenges, sizes):
    """The peers of every challenges/*/spec.json, in order of name."""
    files = sorted(pathlib.Path(challenges).glob("*/spec.json"))
    if not files:
        raise SpecError(f"{challenges}: no spec.json in any folder there; "
                        "run this program where assay's sources lie")
    peers = []
    for file in files:
        try:
            peers += peers_of_spec(json.loads(file.read_text(encoding="utf-8")), sizes)
        except OSError as error:
            raise SpecError(f"{file}: cannot be read ({error.strerror}); "
                            "give yourself the right to read it") from error
        except json.JSONDecodeError as error:
            raise SpecError(f"{file}: not JSON ({error}); restore the file") from error
        except SpecError as error:
            raise SpecError(f"{file}: {error}") from error
    return peers


# --- challenges -----------------------------------------------------------------------------------
# Each function returns the fields of the Peers of one case.


def layer_norm(p):
    if p.get("mode", "plain") != "plain":
        return [{"left_out": f"mode {p['mode']} is no operator of PyTorch"}]
    dtype, rows, d = p.get("dtype", "f32"), p["rows"], p["D"]
    matrix, vector = (dtype, (rows, d)), ("f32", (d,))
    inputs = {"x": matrix, "dy": matrix, "gamma": vector, "beta": vector}
    return [{"kind": "layer_norm_backward", "operator": "native_layer_norm_backward",
             "inputs": inputs, "facts": {"eps": p.get("eps", 1e-5)}}]


def softmax_topk(p):
    shape = (p["rows"], p["V"] + p.get("pad", 0))
    facts = {"V": p["V"], "K": p["K"], "temperature": p.get("temperature", 1.0)}
    return [{"kind": "softmax_topk", "operator": "topk, logsumexp, exp",
             "inputs": {"logits": (p.get("dtype", "f32"), shape)}, "facts": facts}]


SDPA = "scaled_dot_product_attention"


def flash_attention(p, backward):
    for name in ("q_len", "k_len", "softcap", "alibi", "sink", "kv_len", "bias", "fp8", "strides",
                 "Dv"):
        if name in p:
            return [{"left_out": f"'{name}' is not in the call of {SDPA} that is timed here"}]
    if p.get("window", -1) > 0 or p.get("layout", "bhnd") != "bhnd":
        return [{"left_out": f"windows and layouts are not in the call of {SDPA} that is timed"}]
    dtype, batch, heads = p.get("dtype", "f32"), p.get("B", 1), p.get("Hq", 1)
    nq, d = p["Nq"], p.get("D", 64)
    kv_heads, nk = p.get("Hkv", heads), p.get("Nk", nq)
    keys = (dtype, (batch, kv_heads, nk, d))
    inputs = {"q": (dtype, (batch, heads, nq, d)), "k": keys, "v": keys}
    if backward:
        inputs["dout"] = inputs["q"]
    facts = {"sees": CAUSAL if p.get("causal", True) else ALL, "scale": p.get("scale")}
    return [{"kind": "attention_backward" if backward else "attention",
             "operator": f"backward of {SDPA}" if backward else SDPA,
             "inputs": inputs, "facts": facts}]


def tree_verification(p):
    dtype, items = p.get("dtype", "f32"), p["items"] * p.get("copies", 1)
    if p["entry"] == "accept":
        nodes = sum(item["n"] for item in items)
        inputs = {"node_logits": (dtype, (nodes, p["V"])),
                  "root_logits": (dtype, (len(items), p["V"]))}
        return [{"kind": "argmax", "operator": "argmax of all rows, without the walk along trees",
                 "inputs": inputs}]
    if p["entry"] != "attention" or len(items) != 1:
        return [{"left_out": f"{len(items)} item(s) of '{p['entry']}' are no operator of PyTorch"}]
    prefix, nodes, heads, d = items[0]["P"], items[0]["n"], p["Hq"], p["D"]
    keys = (dtype, (1, prefix + nodes, p.get("Hkv", heads), d))
    return [{"kind": "attention", "operator": f"{SDPA}, boolean mask",
             "inputs": {"q": (dtype, (1, nodes, heads, d)), "k": keys, "v": keys},
             "facts": {"sees": TREE, "prefix": prefix, "scale": p.get("scale"),
                       "tokens_first": ("q", "k", "v")}}]


def play(script):
    """What the timed phase of a kv_cache script does: the lengths and rows of its only attend, in
    its order of sequences, and whether it appends all of them too."""
    length, phase, attended, appended = {}, 0, None, {}
    for statement in script.split(";"):
        words = statement.split()
        verb = words[0].partition("!")[0]
        pairs = (word.partition(":") for word in words[1:])
        entries = [(name, int(rows or 0)) for name, _, rows in pairs]
        if verb == "phase":
            phase += 1
        elif verb == "new":
            length.update((name, 0) for name, _ in entries)
        elif verb == "fork":
            length[words[2]] = length[words[1]]
        elif verb == "append":
            for name, rows in entries:
                length[name] += rows
                if phase == 1:
                    appended[name] = appended.get(name, 0) + rows
        elif verb == "attend" and phase == 1 and attended is None:
            attended = entries
        elif verb not in ("create", "destroy", "read"):
            raise ValueError(f"statement '{statement.strip()}'")
    if not attended:
        raise ValueError("no attend in the timed phase")
    lengths = [length[name] for name, _ in attended]
    if appended and [appended.get(name) for name, _ in attended] != lengths:
        raise ValueError("a timed phase that appends to sequences that were there before")
    return lengths, [rows for _, rows in attended], bool(appended)


def key_value_cache(p):
    c = p["config"]
    for name, plain in (("window", -1), ("quant", 0), ("sinks", 0), ("layers", 1), ("Dv", c["D"])):
        if c.get(name, plain) != plain:
            return [{"left_out": f"a cache with '{name}' is no operator of PyTorch"}]
    dtype, heads, kv_heads, d = c.get("dtype", "f32"), c["n_q"], c["n_kv"], c["D"]
    if "ragged" in p:
        return ragged_cache(p, dtype, heads, kv_heads, d)
    lengths, rows, fills = play(p["script"])
    if len(set(rows)) != 1 or (rows[0] > 1 and len(rows) > 1):
        raise ValueError("several sequences with several rows")
    batch, longest = len(lengths), max(lengths)
    padded = len(set(lengths)) > 1
    sees = LENGTHS if padded else CAUSAL if rows[0] > 1 else ALL
    facts = {"sees": sees, "lengths": lengths, "scale": p.get("scale")}
    queries = (dtype, (batch, rows[0], heads, d))
    if fills:
        if sees != ALL:
            raise ValueError("a timed phase that appends different lengths")
        keys = (dtype, (batch, longest, kv_heads, d))
        return [{"kind": "fill_and_attend",
                 "operator": f"copies into dense K and V, {SDPA}, no paging",
                 "inputs": {"q": queries, "k": keys, "v": keys}, "facts": facts}]
    keys = (dtype, (batch, kv_heads, longest, d))
    mask = "padded, boolean mask, " if padded else "boolean mask, " if sees == CAUSAL else ""
    return [{"kind": "attention", "operator": f"{SDPA}, {mask}dense K and V, no paging",
             "inputs": {"q": queries, "k": keys, "v": keys},
             "facts": {**facts, "tokens_first": ("q",)}}]


def ragged_cache(p, dtype, heads, kv_heads, d):
    """Steps that append a token to each sequence and attend. The lengths are those of the
    challenge's generator, except for their order: high / rank, at least low."""
    r = p["ragged"]
    count, steps = r["sequences"], r["steps"]
    lengths = [max(r["low"], r["high"] // (i + 1)) for i in range(count)]
    cache = (dtype, (count, kv_heads, max(lengths) + steps, d))
    new = (dtype, (steps, count, kv_heads, d))
    inputs = {"q": (dtype, (steps, count, heads, d)), "new_k": new, "new_v": new,
              "k": cache, "v": cache}
    facts = {"lengths": lengths, "scale": p.get("scale")}
    each = f"{steps} x (append, {SDPA}"
    return [{"kind": "decode_padded", "operator": f"{each}, padded, boolean mask), no paging",
             "inputs": inputs, "facts": facts},
            {"kind": "decode_each", "operator": f"{each} for each sequence), no paging",
             "inputs": inputs, "facts": facts}]


def beam_search(p):
    plain = {"B", "K", "V", "max_new", "eos", "alpha", "model"}
    if set(p) - plain or p["K"] > p["V"]:
        options = ", ".join(sorted(set(p) - plain)) or "K > V"
        return [{"left_out": f"not in the search that is timed here: {options}"}]
    facts = {name: p[name] for name in ("B", "K", "V", "alpha")}
    facts.update(steps=p["max_new"], eos=p.get("eos", -1))
    operator = f"{p['max_new']} x (add, topk of K V, gather), fp32, without the model"
    return [{"kind": "beam_search", "operator": operator,
             "inputs": {"rows": ("f32", (p["max_new"], p["B"] * p["K"], p["V"]))}, "facts": facts}]


def ternary_training(p):
    if p["entry"] != "linear":
        return [{"left_out": f"'{p['entry']}' is a whole program, not an operator"}]
    m, rows, cols = p["M"], p["rows"], p["cols"]
    return [{"kind": "ternary_linear",
             "operator": "linear and both gradients, fp32, weights already unpacked",
             "inputs": {"x": ("f32", (m, cols)), "w": ("f32", (rows, cols)),
                        "dy": ("f32", (m, rows))}}]


BUILDERS = {
    "beam_search": beam_search,
    "dflash_verify": tree_verification,
    "flash_attention_bwd": lambda p: flash_attention(p, backward=True),
    "flash_attention_fwd": lambda p: flash_attention(p, backward=False),
    "fused_softmax_topk": softmax_topk,
    "kv_cache": key_value_cache,
    "layer_norm_backward": layer_norm,
    "ternary_training": ternary_training,
}
