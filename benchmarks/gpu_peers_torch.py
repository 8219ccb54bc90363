"""The operators of gpu_peers_cases.py in PyTorch, each with its result in float64.

A work has draw(), which makes fresh inputs; run(), which is timed and returns its results; and
check(results), which gives pairs (name, result, the same in float64). run() must never wait for the
GPU: the timer holds the stream until all launches of run() are queued.
"""
import random

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend

from gpu_peers_cases import CAUSAL, LENGTHS, TREE

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
# The largest error of a result, relative to its largest element in float64. The error of TF32 is larger, and that of a
# wrong mask far larger.
BOUNDS = {"f32": 1e-4, "bf16": 3e-2, "f16": 4e-3}
BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}

# --- attention ------------------------------------------------------------------------------------


def ancestors(count, device):
    """Which nodes see which in a tree with randomly drawn parents, as [count, count] of bool."""
    draws = random.Random(1)
    rows = []
    for i in range(count):
        parent = draws.randrange(i + 1) - 1
        row = list(rows[parent]) if parent >= 0 else [False] * count
        row[i] = True
        rows.append(row)
    return torch.tensor(rows, dtype=torch.bool, device=device)


def lengths_mask(lengths, longest, device):
    """[B, 1, 1, longest]: the first of each sequence's keys."""
    ends = torch.tensor(lengths, device=device)
    return (torch.arange(longest, device=device)[None, :] < ends[:, None])[:, None, None, :]


def visible(facts, queries, keys, device):
    """A mask [B or 1, 1, queries, keys] of bool, or None if all keys are seen."""
    if facts["sees"] == CAUSAL:
        mask = torch.ones(queries, keys, dtype=torch.bool, device=device)
        return mask.tril(keys - queries)[None, None]
    if facts["sees"] == TREE:
        prefix = torch.ones(queries, facts["prefix"], dtype=torch.bool, device=device)
        return torch.cat([prefix, ancestors(queries, device)], 1)[None, None]
    if facts["sees"] == LENGTHS:
        return lengths_mask(facts["lengths"], keys, device)
    return None


def repeated(t, heads):
    """Key heads [B, Hkv, N, D], repeated for each of `heads` query heads."""
    b, kv_heads, n, d = t.shape
    return t.unsqueeze(2).expand(b, kv_heads, heads // kv_heads, n, d).reshape(b, heads, n, d)


def folded_mask(mask, group):
    """A query's mask, repeated for each of the `group` query heads that became its rows."""
    return None if mask is None else mask.repeat(1, 1, group, 1)


def attend(q, k, v, way, mask=None, causal=False, scale=None):
    """Heads first. `way` is how query heads share key heads: "plain", not at all; "grouped", by
    enable_gqa; "repeated", by copies of K and V; "folded", as rows of one head, whose mask is a
    folded_mask."""
    b, heads, n, d = q.shape
    if way == "folded":
        kv_heads = k.shape[1]
        rows = q.reshape(b, kv_heads, heads // kv_heads * n, d)
        o = F.scaled_dot_product_attention(rows, k, v, attn_mask=mask, scale=scale)
        return o.reshape(b, heads, n, d)
    if way == "repeated":
        k, v = repeated(k, heads), repeated(v, heads)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=scale,
                                          enable_gqa=way == "grouped")


def attend64(q, k, v, mask, scale):
    """Plain attention in the precision of q. Heads first."""
    k, v = repeated(k, q.shape[1]), repeated(v, q.shape[1])
    scores = torch.matmul(q, k.transpose(2, 3)) * (q.shape[3]**-0.5 if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.matmul(torch.softmax(scores, 3), v)


# --- works ----------------------------------------------------------------------------------------


class Work:
    def __init__(self, peer, way, device):
        self.facts, self.way, self.device = peer.facts, way, device
        self.bound = max(BOUNDS[dtype] for dtype, _ in peer.inputs.values())
        self.inputs = {name: torch.empty(shape, dtype=DTYPES[dtype], device=device)
                       for name, (dtype, shape) in peer.inputs.items()}
        self.prepare()

    def prepare(self):
        """Prepares what does not depend on values, such as masks."""

    def draw(self):
        for t in self.inputs.values():
            t.normal_()

    def __getitem__(self, name):
        return self.inputs[name]


class LayerNormBackward(Work):
    def draw(self):
        super().draw()
        x = self["x"]
        _, self.mean, self.rstd = torch.ops.aten.native_layer_norm(
            x, [x.shape[1]], self["gamma"], self["beta"], self.facts["eps"])

    def run(self):
        x = self["x"]
        return torch.ops.aten.native_layer_norm_backward(
            self["dy"], x, [x.shape[1]], self.mean, self.rstd, self["gamma"], self["beta"],
            [True, True, True])

    def check(self, results):
        x, dy, gamma = (self[name].double() for name in ("x", "dy", "gamma"))
        centred = x - x.mean(1, keepdim=True)
        rstd = (centred.square().mean(1, keepdim=True) + self.facts["eps"]).rsqrt()
        xhat, g = centred * rstd, dy * gamma
        dx = rstd * (g - g.mean(1, keepdim=True) - xhat * (g * xhat).mean(1, keepdim=True))
        return list(zip(("dx", "dgamma", "dbeta"), results, (dx, (dy * xhat).sum(0), dy.sum(0))))


class SoftmaxTopK(Work):
    def scaled(self, logits):
        temperature = self.facts["temperature"]
        return logits if temperature == 1 else logits / temperature

    def run(self):
        z = self.scaled(self["logits"][:, :self.facts["V"]])
        lse = torch.logsumexp(z, 1)
        largest, indices = torch.topk(z, self.facts["K"], 1)
        return indices, torch.exp(largest - lse[:, None]), lse

    def check(self, results):
        indices, probabilities, lse = results
        z = self.scaled(self["logits"][:, :self.facts["V"]].double())
        expected_lse = torch.logsumexp(z, 1)
        largest = torch.topk(z, self.facts["K"], 1).values
        return [("logits at the indices", z.gather(1, indices), largest),
                ("probabilities", probabilities, torch.exp(largest - expected_lse[:, None])),
                ("lse", lse, expected_lse)]


class Attention(Work):
    @staticmethod
    def ways_of(peer):
        q, k = (peer.inputs[name][1] for name in "qk")
        first = peer.facts.get("tokens_first", ())
        heads, queries = (q[2], q[1]) if "q" in first else (q[1], q[2])
        kv_heads, keys = (k[2], k[1]) if "k" in first else (k[1], k[2])
        if heads == kv_heads:
            return ("plain",)
        square = peer.facts["sees"] == CAUSAL and queries == keys
        return ("grouped", "repeated") if square else ("grouped", "folded")

    def prepare(self):
        q, k = self.heads_first("q"), self.heads_first("k")
        self.scale = self.facts["scale"]
        self.visible = visible(self.facts, q.shape[2], k.shape[2], self.device)
        # is_causal aligns to the first key, which is the same if there are as many queries as keys.
        self.causal = self.facts["sees"] == CAUSAL and q.shape[2] == k.shape[2]
        mask = None if self.causal else self.visible
        self.mask = folded_mask(mask, q.shape[1] // k.shape[1]) if self.way == "folded" else mask

    def heads_first(self, name):
        t = self[name]
        return t.transpose(1, 2) if name in self.facts.get("tokens_first", ()) else t

    def attended(self, q, k, v):
        return attend(q, k, v, self.way, self.mask, self.causal, self.scale)

    def run(self):
        return (self.attended(*map(self.heads_first, "qkv")),)

    def check(self, results):
        q, k, v = (self.heads_first(name).double() for name in "qkv")
        return [("o", results[0], attend64(q, k, v, self.visible, self.scale))]


class AttentionBackward(Attention):
    def draw(self):
        super().draw()
        self.leaves = [self.heads_first(name).detach().requires_grad_() for name in "qkv"]
        with torch.enable_grad():
            self.o = self.attended(*self.leaves)

    def run(self):
        return torch.autograd.grad(self.o, self.leaves, self["dout"])

    def check(self, results):
        leaves = [self.heads_first(name).detach().double().requires_grad_() for name in "qkv"]
        with torch.enable_grad():
            o = attend64(*leaves, self.visible, self.scale)
        gradients = torch.autograd.grad(o, leaves, self["dout"].double())
        return list(zip(("dq", "dk", "dv"), results, gradients))


class FillAndAttend(Work):
    @staticmethod
    def ways_of(peer):
        shared = peer.inputs["q"][1][2] != peer.inputs["k"][1][2]
        return ("grouped", "folded") if shared else ("plain",)

    def run(self):
        cache = []
        for name in "kv":
            rows = self[name].transpose(1, 2)
            cache.append(torch.empty(rows.shape, dtype=rows.dtype, device=self.device).copy_(rows))
        return (attend(self["q"].transpose(1, 2), *cache, self.way, scale=self.facts["scale"]),)

    def check(self, results):
        q, k, v = (self[name].transpose(1, 2).double() for name in "qkv")
        return [("o", results[0], attend64(q, k, v, None, self.facts["scale"]))]


class DecodePadded(Work):
    """Steps of one token per sequence, over a cache of the longest length with a mask."""

    @staticmethod
    def ways_of(peer):
        shared = peer.inputs["q"][1][2] != peer.inputs["k"][1][1]
        return ("grouped", "folded") if shared else ("plain",)

    def prepare(self):
        self.steps, count, heads, _ = self["q"].shape
        _, kv_heads, self.longest, _ = self["k"].shape
        self.sequences = torch.arange(count, device=self.device)
        ends = torch.tensor(self.facts["lengths"], device=self.device)
        self.ends = [ends + step for step in range(self.steps)]
        masks = [self.mask_after(step) for step in range(self.steps)]
        group = heads // kv_heads
        self.masks = [folded_mask(mask, group) for mask in masks] if self.way == "folded" else masks

    def mask_after(self, step):
        ends = [length + step + 1 for length in self.facts["lengths"]]
        return lengths_mask(ends, self.longest, self.device)

    def append(self, step):
        for cache, new in (("k", "new_k"), ("v", "new_v")):
            self[cache][self.sequences, :, self.ends[step]] = self[new][step]

    def attend(self, step):
        q = self["q"][step].unsqueeze(2)
        return attend(q, self["k"], self["v"], self.way, self.masks[step],
                      scale=self.facts["scale"])

    def run(self):
        outputs = []
        for step in range(self.steps):
            self.append(step)
            outputs.append(self.attend(step))
        return outputs

    def check(self, results):
        # Later steps wrote only after what an earlier step sees.
        k, v = self["k"].double(), self["v"].double()
        places = torch.arange(len(self.facts["lengths"]), device=self.device)
        pairs = []
        for step, o in enumerate(results):
            for new, cache in (("new_k", k), ("new_v", v)):
                stored = cache[places, :, self.ends[step]]
                pairs.append((f"stored {new} of step {step}", stored, self[new][step].double()))
            q = self["q"][step].unsqueeze(2).double()
            o64 = attend64(q, k, v, self.mask_after(step), self.facts["scale"])
            pairs.append((f"o of step {step}", o, o64))
        return pairs


class DecodeEach(DecodePadded):
    """Like DecodePadded, but with one call of attention per sequence and without a mask."""

    def attend(self, step):
        q, k, v = self["q"][step].unsqueeze(2), self["k"], self["v"]
        outputs = []
        for i, length in enumerate(self.facts["lengths"]):
            one, seen = slice(i, i + 1), slice(0, length + step + 1)
            outputs.append(attend(q[one], k[one, :, seen], v[one, :, seen], self.way,
                                  scale=self.facts["scale"]))
        return torch.cat(outputs)


class ArgMax(Work):
    def run(self):
        return [torch.argmax(t, 1) for t in self.inputs.values()]

    def check(self, results):
        return [(name, t.gather(1, at[:, None])[:, 0], t.double().max(1).values)
                for (name, t), at in zip(self.inputs.items(), results)]


class BeamSearch(Work):
    def draw(self):
        super().draw()
        self.log_probabilities = torch.log_softmax(self["rows"], 2)

    def search(self, rows):
        """All steps in the precision of `rows` [steps, B K, V]: the scores and the texts."""
        f, dtype = self.facts, rows.dtype
        b, beams, eos = f["B"], f["K"], f["eos"]
        acc = torch.full((b, beams), float("-inf"), dtype=dtype, device=self.device)
        acc[:, 0] = 0  # every item starts with one beam
        length = torch.zeros((b, beams), dtype=dtype, device=self.device)
        finished = torch.zeros((b, beams), dtype=torch.bool, device=self.device)
        texts = torch.full((b, beams, f["steps"]), -1, dtype=torch.int64, device=self.device)
        # A finished beam has a single continuation, in the place of eos, which costs nothing.
        stay = torch.full((f["V"],), float("-inf"), dtype=dtype, device=self.device)
        stay[max(eos, 0)] = 0
        for step in range(f["steps"]):
            row = rows[step].view(b, beams, f["V"])
            if eos >= 0:
                row = torch.where(finished[:, :, None], stay, row)
            total = (acc[:, :, None] + row).view(b, -1)
            grown = length + (~finished).to(dtype)
            if eos >= 0:
                score = (total.view(b, beams, -1) / grown.pow(f["alpha"])[:, :, None]).view(b, -1)
                _, flat = torch.topk(score, beams, 1)
                acc = total.gather(1, flat)
            else:  # all beams have the same length, so their sums decide
                acc, flat = torch.topk(total, beams, 1)
            parent = torch.div(flat, f["V"], rounding_mode="floor")
            token = flat - parent * f["V"]
            length, ended = grown.gather(1, parent), finished.gather(1, parent)
            texts = texts.gather(1, parent[:, :, None].expand(-1, -1, f["steps"]))
            texts[:, :, step] = torch.where(ended, -1, token)
            finished = ended | (token == eos)
        return acc / length.pow(f["alpha"]), texts

    def run(self):
        return self.search(self.log_probabilities)

    def check(self, results):
        scores, texts = results
        expected, _ = self.search(self.log_probabilities.double())
        if int(texts.max()) >= self.facts["V"] or int(texts[:, :, 0].min()) < 0:
            raise ArithmeticError("a text holds what is no token")
        return [("scores", scores, expected)]


class TernaryLinear(Work):
    def draw(self):
        super().draw()
        self["w"].clamp_(-1.49, 1.49).round_().mul_(0.02)  # -s, 0 and +s

    def run(self):
        x, w, dy = self["x"], self["w"], self["dy"]
        return F.linear(x, w), torch.mm(dy, w), torch.mm(dy.t(), x)

    def check(self, results):
        x, w, dy = (self[name].double() for name in ("x", "w", "dy"))
        return list(zip(("y", "dx", "dw"), results, (x @ w.t(), dy @ w, dy.t() @ x)))


# By Peer.kind: the class, and the attention backends to try it with.
KINDS = {
    "layer_norm_backward": (LayerNormBackward, ("",)),
    "softmax_topk": (SoftmaxTopK, ("",)),
    "attention": (Attention, tuple(BACKENDS)),
    "attention_backward": (AttentionBackward, tuple(BACKENDS)),
    "fill_and_attend": (FillAndAttend, tuple(BACKENDS)),
    "decode_padded": (DecodePadded, tuple(BACKENDS)),
    # math launches more kernels than the GPU's queue holds, so it could not be timed.
    "decode_each": (DecodeEach, ("cudnn", "flash", "efficient")),
    "argmax": (ArgMax, ("",)),
    "beam_search": (BeamSearch, ("",)),
    "ternary_linear": (TernaryLinear, ("",)),
}
