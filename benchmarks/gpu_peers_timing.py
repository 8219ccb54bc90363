"""Times the works of gpu_peers_torch.py, and the GPU's rates of copies and of matrix products."""
import contextlib
import statistics
import time
import warnings

import torch
from torch.nn.attention import sdpa_kernel

from gpu_peers_torch import BACKENDS, BOUNDS, KINDS


class Refused(Exception):
    """A backend of attention does not accept the case, or its time cannot be separated from the host's."""


class Failed(Exception):
    """A result is wrong, or torch reports a fault."""


class Timer:
    """Times run() of works by events on the GPU, with L2 flushed and all launches queued.

    A kernel that sleeps holds the stream while the host launches. If the first event has passed by the
    time the last launch is queued, the sleep was too short and the repetition does not count.
    """

    WARM_UPS, LEAST, MOST, SECONDS = 3, 20, 200, 0.4
    CYCLES_A_SECOND = 2e9  # about the clock of an H100; a slower one only sleeps longer
    LONGEST_HOLD = 0.5

    def __init__(self, device):
        l2 = getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0) or 64 << 20
        self.flush = torch.empty(2 * l2, dtype=torch.uint8, device=device)

    def samples(self, work):
        """Seconds of each repetition: at least LEAST, or as many as SECONDS allow."""
        hold = 2e-4
        for _ in range(self.WARM_UPS):
            launching, _ = self.once(work, hold)
            hold = min(max(2e-4, 3 * launching), self.LONGEST_HOLD)
        taken = []
        begin = time.perf_counter()
        while len(taken) < self.LEAST or (len(taken) < self.MOST and
                                          time.perf_counter() - begin < self.SECONDS):
            _, seconds = self.once(work, hold)
            if seconds is not None:
                taken.append(seconds)
                continue
            hold *= 2
            if hold > self.LONGEST_HOLD:
                raise Refused("cannot be timed: it begins before all its launches are queued, so "
                              "that its time would hold the host's")
        return taken

    def once(self, work, hold):
        """Seconds of the launches on the host, and of the GPU; None if the GPU began before all were queued."""
        work.draw()
        self.flush.zero_()
        self.flush.view(torch.int64).max()  # read, so that nothing left in L2 needs writing back
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(int(hold * self.CYCLES_A_SECOND))
        begin.record()
        start = time.perf_counter()
        results = work.run()
        end.record()
        launching = time.perf_counter() - start
        held = not begin.query()
        end.synchronize()
        del results
        return launching, begin.elapsed_time(end) * 1e-3 if held else None


def error_of(got, expected):
    """The largest error, relative to the largest element of `expected`. NaN is kept."""
    if got.shape != expected.shape:
        raise Failed(f"shape {list(got.shape)} instead of {list(expected.shape)}")
    return float((got.double() - expected).abs().max() / expected.abs().max())


def checked(work):
    """Runs the work once and returns its largest error, which is within the work's bound."""
    work.draw()
    worst = 0.0
    for name, got, expected in work.check(work.run()):
        error = error_of(got, expected)
        if not error <= work.bound:
            raise Failed(f"{name} is wrong by {error:.1e} of its largest element, "
                         f"more than {work.bound:.0e}")
        worst = max(worst, error)
    return worst


def attempts(peer):
    """(backend, way) of everything that may compute a peer; empty if the peer is left out."""
    if peer.left_out:
        return []
    work, backends = KINDS[peer.kind]
    ways = work.ways_of(peer) if hasattr(work, "ways_of") else ("",)
    return [(backend, way) for backend in backends for way in ways]


def measure(peer, backend, way, timer, device):
    """Seconds of each repetition and the error of a checked result. Raises Refused or Failed."""
    chosen = sdpa_kernel([BACKENDS[backend]]) if backend else contextlib.nullcontext()
    try:
        with warnings.catch_warnings(), chosen:
            warnings.simplefilter("ignore")  # torch's reasons why other backends were not taken
            work = KINDS[peer.kind][0](peer, way, device)
            error = checked(work)
            return timer.samples(work), error
    except (RuntimeError, ArithmeticError) as fault:
        text = (str(fault).splitlines() or [""])[0]
        if backend and "No available kernel" in text:
            raise Refused(f"does not take {peer.inputs['q'][0]} with this mask and "
                          "these heads") from fault
        raise Failed(f"{type(fault).__name__}: {text}") from fault


class Plain:
    """A work that consists of one function."""

    def __init__(self, run):
        self.run = run

    def draw(self):
        pass


def copy_rate(timer, device):
    """Bytes read and written per second by a copy of 1 GiB."""
    source = torch.randn(1 << 28, device=device)
    target = torch.empty_like(source)
    seconds = statistics.median(timer.samples(Plain(lambda: target.copy_(source))))
    if not torch.equal(source, target):
        raise Failed("the copy of 1 GiB differs from its source")
    return 2 * source.numel() * source.element_size() / seconds


def product_rate(timer, device, n=8192):
    """Floating-point operations per second of a product of n x n matrices in bf16."""
    a, b = (torch.randn(n, n, device=device, dtype=torch.bfloat16) for _ in range(2))
    c = torch.empty_like(a)
    seconds = statistics.median(timer.samples(Plain(lambda: torch.mm(a, b, out=c))))
    error = error_of(c[:64], a[:64].double() @ b.double())
    if not error <= BOUNDS["bf16"]:
        raise Failed(f"the product in bf16 is wrong by {error:.1e}")
    return 2 * n**3 / seconds


def machine(device):
    p = torch.cuda.get_device_properties(device)
    return {"gpu": p.name, "compute_capability": f"{p.major}.{p.minor}",
            "multiprocessors": p.multi_processor_count,
            "memory_bytes": p.total_memory, "l2_bytes": getattr(p, "L2_cache_size", None),
            "uuid": str(getattr(p, "uuid", "")), "torch": str(torch.__version__),
            "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}


def prepare(seed=1):
    """The device to measure on. float32 stays float32: no TF32."""
    torch.manual_seed(seed)
    torch.set_grad_enabled(False)
    torch.set_float32_matmul_precision("highest")
    return torch.device("cuda", torch.cuda.current_device())
