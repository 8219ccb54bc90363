#!/usr/bin/env python3
"""The shipped naive implementations against torch in fp64: values, and gradients by autograd.

An independent witness of what the challenges define. Usage: torch_test.py ROOT. Exits 77 (skipped) if
torch is not installed (Debian: python3-torch).
"""
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
DEBIAN_PYTHON = "/usr/bin/python3"

try:
    import torch
except ImportError:
    if os.path.exists(DEBIAN_PYTHON) and not os.environ.get("ASSAY_TORCH_TRIED"):
        os.environ["ASSAY_TORCH_TRIED"] = "1"
        os.execv(DEBIAN_PYTHON, [DEBIAN_PYTHON, *sys.argv])
    print("skipped: no torch; install python3-torch to compare with it")
    sys.exit(SKIPPED)

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
CHALLENGES = ROOT / "challenges"

# --- the C ABI ------------------------------------------------------------------------------------

LIBC = ctypes.CDLL(None)
LIBC.aligned_alloc.restype = ctypes.c_void_p
LIBC.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
LIBC.free.argtypes = [ctypes.c_void_p]

ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int)
FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


@ALLOC
def allocate(_, size, align, space):
    align = max(align, 16)
    return LIBC.aligned_alloc(align, (size + align - 1) // align * align) if space == 0 else None


@FREE
def release(_, pointer):
    LIBC.free(pointer)


class Struct(ctypes.Structure):
    """Fields by keyword; a leading `size` is filled in."""

    def __init__(self, **fields):
        super().__init__(**fields)
        if self._fields_[0][0] == "size":
            self.size = ctypes.sizeof(self)


class Ctx(Struct):
    _fields_ = [("abi", ctypes.c_uint32), ("device", ctypes.c_int32), ("stream", ctypes.c_void_p),
                ("nthreads", ctypes.c_int32), ("alloc", ALLOC), ("free", FREE), ("priv", ctypes.c_void_p)]


class LnParams(Struct):
    _fields_ = [("size", ctypes.c_uint32), ("dtype", ctypes.c_int32), ("rows", ctypes.c_int64),
                ("D", ctypes.c_int64), ("eps", ctypes.c_float)]


class StkParams(Struct):
    _fields_ = [("size", ctypes.c_uint32), ("dtype", ctypes.c_int32), ("rows", ctypes.c_int64),
                ("V", ctypes.c_int64), ("ld", ctypes.c_int64), ("K", ctypes.c_int32),
                ("temperature", ctypes.c_float)]


class Stride(Struct):
    _fields_ = [("b", ctypes.c_int64), ("h", ctypes.c_int64), ("n", ctypes.c_int64)]


class FaParams(Struct):
    _fields_ = ([("size", ctypes.c_uint32), ("dtype", ctypes.c_int32)] +
                [(n, ctypes.c_int64) for n in ("B", "Hq", "Hkv", "Nq", "Nk", "D", "Dv")] +
                [(n, Stride) for n in ("sq", "sk", "sv", "so")] +
                [("scale", ctypes.c_float), ("causal", ctypes.c_int32), ("window", ctypes.c_int64),
                 ("math", ctypes.c_int32)])


def context():
    return Ctx(abi=1, device=-1, nthreads=2, alloc=allocate, free=release)


def pointer(tensor):
    return None if tensor is None else ctypes.c_void_p(tensor.data_ptr())


def arguments(*values):
    return [pointer(v) if v is None or isinstance(v, torch.Tensor) else ctypes.byref(v) for v in values]


FOLDER = tempfile.TemporaryDirectory(prefix="assay-torch-")


def naive(challenge):
    library = pathlib.Path(FOLDER.name) / f"{challenge}.so"
    if not library.exists():
        folder = CHALLENGES / challenge
        subprocess.run(["g++", "-std=c++20", "-O2", "-fPIC", "-shared", "-pthread", f"-I{folder}", f"-I{folder / 'baselines'}", f"-I{CHALLENGES}",
                        f"-I{ROOT / 'include'}", folder / "baselines" / "naive.cpp", "-o", library], check=True)
    return ctypes.CDLL(str(library))


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float32)


def wide(tensor):
    return tensor.double().requires_grad_()


class TorchTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(11)

    def assert_close(self, got, expected, what, tolerance=3e-5):
        expected = expected.detach()
        error = (got.double() - expected).abs().max() / expected.abs().max()
        self.assertLess(float(error), tolerance, what)


# --- challenges -------------------------------------------------------------------------------------


class LayerNorm(TorchTest):
    def test_gradients(self):
        for rows, d, eps in ((7, 33, 1e-5), (64, 256, 1e-3), (3, 1000, 1e-6)):
            with self.subTest(rows=rows, D=d):
                self.compare(rows, d, eps)

    def compare(self, rows, d, eps):
        x, dy = normal(rows, d) * 2 + 1, normal(rows, d)
        gamma, beta = normal(d), normal(d)
        wx, wg, wb = wide(x), wide(gamma), wide(beta)
        wy = torch.nn.functional.layer_norm(wx, (d,), wg, wb, eps)
        wy.backward(dy.double())

        library, ctx = naive("layer_norm_backward"), context()
        p = LnParams(dtype=0, rows=rows, D=d, eps=eps)
        library.ln_cache_bytes.restype = ctypes.c_size_t
        cache = torch.empty(library.ln_cache_bytes(ctypes.byref(p)) + 1, dtype=torch.uint8)
        y, dx, dgamma, dbeta = (torch.full_like(t, float("nan")) for t in (x, x, gamma, beta))
        self.assertEqual(library.ln_forward(*arguments(ctx, p, x, gamma, beta, y, cache)), 0)
        self.assertEqual(library.ln_backward(*arguments(ctx, p, dy, x, gamma, cache, dx, dgamma, dbeta)), 0)
        for got, expected, what in ((y, wy, "y"), (dx, wx.grad, "dx"), (dgamma, wg.grad, "dgamma"),
                                    (dbeta, wb.grad, "dbeta")):
            self.assert_close(got, expected, what)


class SoftmaxTopK(TorchTest):
    def test_values_and_indices(self):
        for rows, v, k, temperature in ((5, 100, 7, 1.0), (3, 5000, 50, 0.7), (2, 64, 64, 3.0)):
            with self.subTest(V=v, K=k):
                self.compare(rows, v, k, temperature)

    def compare(self, rows, v, k, temperature):
        # Distinct logits: torch does not define the order of equal ones.
        x = torch.stack([torch.randperm(v) for _ in range(rows)]).float() * (12.0 / v) - 6
        p = StkParams(dtype=0, rows=rows, V=v, ld=v, K=k, temperature=temperature)
        idx = torch.full((rows, k), -7, dtype=torch.int32)
        prob, lse = torch.empty(rows, k), torch.empty(rows)
        library, ctx = naive("fused_softmax_topk"), context()
        self.assertEqual(library.softmax_topk(*arguments(ctx, p, x, idx, prob, lse)), 0)
        z = x.double() / p.temperature
        expected = torch.softmax(z, 1).topk(k, 1)
        self.assertTrue(torch.equal(idx.long(), expected.indices))
        self.assert_close(prob, expected.values, "prob")
        self.assert_close(lse, torch.logsumexp(z, 1), "lse")


def attention(q, k, v, scale, causal):
    """o and lse in fp64; bottom-right aligned."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = scale * q @ k.transpose(2, 3)
    if causal:
        nq, nk = s.shape[2:]
        visible = torch.arange(nk)[None, :] <= torch.arange(nq)[:, None] + nk - nq
        s = s.masked_fill(~visible, float("-inf"))
    return torch.softmax(s, 3) @ v, torch.logsumexp(s, 3)


class Attention(TorchTest):
    SHAPES = ((1, 2, 2, 40, 40, 32, True), (2, 4, 2, 33, 70, 64, True), (1, 4, 1, 50, 30, 32, False))

    def problem(self, b, hq, hkv, nq, nk, d, causal):
        q, k, v = normal(b, hq, nq, d), normal(b, hkv, nk, d), normal(b, hkv, nk, d)
        stride = lambda t: Stride(b=t.stride(0), h=t.stride(1), n=t.stride(2))
        p = FaParams(dtype=0, B=b, Hq=hq, Hkv=hkv, Nq=nq, Nk=nk, D=d, Dv=d, sq=stride(q), sk=stride(k),
                     sv=stride(v), so=stride(q), scale=d**-0.5, causal=int(causal), window=-1)
        return p, q, k, v

    @unittest.skipUnless((CHALLENGES / "flash_attention_fwd").exists(), "no such challenge")
    def test_forward(self):
        for shape in self.SHAPES:
            with self.subTest(shape=shape):
                p, q, k, v = self.problem(*shape)
                o, lse = torch.full_like(q, float("nan")), torch.empty(q.shape[:3])
                library, ctx = naive("flash_attention_fwd"), context()
                self.assertEqual(library.fa_forward(*arguments(ctx, p, q, k, v, o, lse)), 0)
                expected_o, expected_lse = attention(*(t.double() for t in (q, k, v)), p.scale, p.causal)
                self.assert_close(o, expected_o, "o")
                self.assert_close(lse, expected_lse, "lse")

    @unittest.skipUnless((CHALLENGES / "flash_attention_bwd").exists(), "no such challenge")
    def test_backward(self):
        for shape in self.SHAPES:
            with self.subTest(shape=shape):
                p, q, k, v = self.problem(*shape)
                dout = normal(*q.shape)
                wq, wk, wv = wide(q), wide(k), wide(v)
                wo, wlse = attention(wq, wk, wv, p.scale, p.causal)
                wo.backward(dout.double())
                o, lse = wo.detach().float().contiguous(), wlse.detach().float().contiguous()
                dq, dk, dv = (torch.full_like(t, float("nan")) for t in (q, k, v))
                library, ctx = naive("flash_attention_bwd"), context()
                self.assertEqual(
                    library.fa_backward(*arguments(ctx, p, dout, q, k, v, o, lse, dq, dk, dv)), 0)
                for got, expected, what in ((dq, wq.grad, "dq"), (dk, wk.grad, "dk"), (dv, wv.grad, "dv")):
                    self.assert_close(got, expected, what)


if __name__ == "__main__":
    unittest.main()
