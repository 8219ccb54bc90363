"""What PyTorch takes for the timed cases of assay's CUDA challenges, on the GPU of this machine.

Needs PyTorch 2.5 or newer with CUDA, and a GPU; --list needs neither. The dtypes are those of the
cases, and float32 is not rounded to TF32. Attention is tried with every backend and way of sharing
key heads: enable_gqa (grouped), copies of K and V (repeated), query heads as rows of one head
(folded).

Each repetition draws new inputs, clears the L2 cache and holds the GPU until all launches are
queued; events on the GPU take the time. After three warm-ups there are at least 20 repetitions, and
more of what is fast. Printed are the median, both quartiles, and the error of one checked result
against float64, relative to its largest element. The GPU's settings stay as they are.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import warnings

import gpu_peers_cases

CHALLENGES = pathlib.Path(__file__).resolve().parent.parent / "challenges"
FAILED, UNUSABLE = 1, 2
SMI_FIELDS = ("name", "driver_version", "clocks.sm", "clocks.mem", "temperature.gpu",
              "ecc.mode.current")
# Newer drivers name the reasons for a lower clock "event reasons".
SMI_REASONS = ("clocks_throttle_reasons.active", "clocks_event_reasons.active")
ROW = "{:<21}{:<20}{:<11}{:>11}{:>11}{:>11}{:>6}{:>9}  {}"


class Unusable(Exception):
    """A problem that the user must fix."""


def parsed(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit status: 0; 1, a result is wrong or torch reports a fault; "
               "2, torch, a GPU, a named case or a folder to write to is missing.")
    parser.add_argument("--sizes", choices=gpu_peers_cases.SIZES, default="full",
                        help="full: the cases as they are (default); "
                             "sim: the sizes that the simulator is given")
    parser.add_argument("--challenge", action="append", metavar="NAME",
                        help="only this challenge; may be repeated")
    parser.add_argument("--case", action="append", metavar="NAME",
                        help="only cases of this name; may be repeated")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="write seconds, machine and what was left out to FILE, "
                             "anew after each case")
    parser.add_argument("--list", action="store_true",
                        help="print cases, operators and shapes, and time nothing")
    return parser.parse_args(arguments)


# --- what to time ---------------------------------------------------------------------------------


def chosen_peers(options):
    peers = gpu_peers_cases.read_peers(CHALLENGES, options.sizes)
    for option, names, known in (("--challenge", options.challenge, {p.challenge for p in peers}),
                                 ("--case", options.case, {p.case for p in peers})):
        for name in names or []:
            if name not in known:
                raise Unusable(f"{option} {name}: no timed case has it; "
                               f"known are {', '.join(sorted(known))}")
    chosen = [p for p in peers if (not options.challenge or p.challenge in options.challenge) and
              (not options.case or p.case in options.case)]
    if not chosen:
        raise Unusable("--challenge and --case have no case in common; --list prints all")
    return chosen


def print_list(peers):
    for p in peers:
        print(f"{p.challenge}  {p.case}  {p.sizes}  " +
              (f"left out: {p.left_out}" if p.left_out else f"{p.operator}: {p.shapes()}"))


# --- the machine ----------------------------------------------------------------------------------


def usable_torch():
    """The module that measures. Raises Unusable if torch or a GPU is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of a missing driver, which is reported below
        try:
            import torch
        except (ImportError, OSError) as error:
            raise Unusable(f"no PyTorch in {sys.executable} ({error}); "
                           "install a torch with CUDA, or use --list") from error
        if not torch.cuda.is_available():
            built = f"for CUDA {torch.version.cuda}" if torch.version.cuda else "without CUDA"
            raise Unusable(f"torch {torch.__version__}, built {built}, finds no CUDA GPU; "
                           "run this on a machine with an NVIDIA GPU and its driver, or use --list")
        try:
            import gpu_peers_timing
        except ImportError as error:
            raise Unusable(f"torch {torch.__version__} is too old ({error}); "
                           "install version 2.5 or newer") from error
    return gpu_peers_timing


def smi_state(uuid):
    """What nvidia-smi reports about the GPU, by field; empty if there is no nvidia-smi or it fails."""
    program = shutil.which("nvidia-smi")
    if not program:
        return {}
    for selected in ([f"--id=GPU-{uuid}"] if uuid else []), []:
        for reasons in SMI_REASONS:
            fields = (*SMI_FIELDS, reasons)
            command = [program, *selected, f"--query-gpu={','.join(fields)}",
                       "--format=csv,noheader"]
            try:
                said = subprocess.run(command, capture_output=True, text=True, timeout=20)
            except (OSError, subprocess.TimeoutExpired):
                return {}
            values = [value.strip() for value in (said.stdout.splitlines() or [""])[0].split(",")]
            if said.returncode == 0 and len(values) == len(fields):
                return dict(zip((*SMI_FIELDS, "clocks_reasons.active"), values))
    return {}


def print_state(when, state):
    if state:
        fields = ", ".join(f"{name} {value}" for name, value in state.items())
        print(f"nvidia-smi {when}: {fields}")


# --- results --------------------------------------------------------------------------------------


def write_json(path, report):
    if path is None:
        return
    temporary = path.with_name(path.name + ".part")
    try:
        temporary.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        raise Unusable(f"{path}: cannot be written ({error.strerror}); "
                       "name a file in a folder that exists and may be written") from error


def row_of(peer, backend, way, seconds, error):
    low, median, high = statistics.quantiles(seconds, n=4, method="inclusive")
    operator = peer.operator if way in ("", "plain") else f"{peer.operator} ({way})"
    return {"challenge": peer.challenge, "case": peer.case, "sizes": peer.sizes,
            "operator": operator, "backend": backend, "median_s": median, "low_s": low,
            "high_s": high, "repetitions": len(seconds), "error": error}


def print_row(row):
    microseconds = (f"{row[name] * 1e6:.1f}" for name in ("median_s", "low_s", "high_s"))
    print(ROW.format(row["challenge"], row["case"], row["backend"], *microseconds,
                     row["repetitions"], f"{row['error']:.0e}", row["operator"]), flush=True)


def untimed(peer, why, backend="", way=""):
    """The report's entry for an operator without a time."""
    return {"challenge": peer.challenge, "case": peer.case, "sizes": peer.sizes,
            "operator": peer.operator, "backend": backend, "way": way, "why": why}


def print_left_out(entries, timed):
    """Prints a line per reason, with the backends that it applies to. For backends that were `timed`
    another way it names the way."""
    reasons = {}
    for entry in entries:
        backend = entry["backend"]
        name = f"{backend} ({entry['way']})" if backend in timed else backend
        names = reasons.setdefault((entry["challenge"], entry["case"], entry["why"]), [])
        if name and name not in names:
            names.append(name)
    for (challenge, case, why), names in reasons.items():
        who = f"{', '.join(names)}: " if names else ""
        print(f"{challenge:<21}{case:<20}left out: {who}{why}", flush=True)


def time_peer(peer, timing, timer, device, report):
    left_out = [untimed(peer, peer.left_out)] if peer.left_out else []
    timed = set()
    for backend, way in timing.attempts(peer):
        try:
            seconds, error = timing.measure(peer, backend, way, timer, device)
        except timing.Refused as why:
            left_out.append(untimed(peer, str(why), backend, way))
        except timing.Failed as why:
            report["failed"].append(untimed(peer, str(why), backend, way))
            print(f"{peer.challenge:<21}{peer.case:<20}FAILED: {backend} {way}: {why}",
                  file=sys.stderr, flush=True)
        else:
            report["cases"].append(row_of(peer, backend, way, seconds, error))
            print_row(report["cases"][-1])
            timed.add(backend)
    print_left_out(left_out, timed)
    report["left_out"] += left_out


def time_machine(timing, timer, device, report):
    rates = (("copy_bytes_per_s", timing.copy_rate, 1e9, "GB/s, copy of 1 GiB, read and written"),
             ("bf16_flops_per_s", timing.product_rate, 1e12, "Tflop/s, 8192^3 product in bf16"))
    for key, rate, unit, text in rates:
        try:
            report[key] = rate(timer, device)
            print(f"{report[key] / unit:.1f} {text}", flush=True)
        except (RuntimeError, timing.Failed, timing.Refused) as fault:
            report["failed"].append({"operator": key, "why": str(fault)})
            print(f"{key}: FAILED: {fault}", file=sys.stderr)


def run(options):
    peers = chosen_peers(options)
    if options.list:
        print_list(peers)
        return 0
    timing = usable_torch()
    report = {"schema": 1, "machine": {}, "copy_bytes_per_s": None, "bf16_flops_per_s": None,
              "cases": [], "left_out": [], "failed": []}
    write_json(options.json, report)  # shows before the work if the path cannot be written
    device = timing.prepare()
    machine = report["machine"] = timing.machine(device)
    machine["before"] = smi_state(machine["uuid"])
    machine["driver"] = machine["before"].get("driver_version")
    print(f"{machine['gpu']}, torch {machine['torch']}, CUDA {machine['cuda']}, "
          f"cuDNN {machine['cudnn']}")
    print_state("before", machine["before"])
    timer = timing.Timer(device)
    time_machine(timing, timer, device, report)
    print(ROW.format("challenge", "case", "backend", "median us", "low us", "high us", "reps",
                     "error", "operator"))
    for peer in peers:
        time_peer(peer, timing, timer, device, report)
        write_json(options.json, report)
    machine["after"] = smi_state(machine["uuid"])
    print_state("after", machine["after"])
    write_json(options.json, report)
    if report["failed"]:
        print(f"gpu_peers.py: {len(report['failed'])} operator(s) failed and have no time; "
              "see FAILED above", file=sys.stderr)
    return FAILED if report["failed"] else 0


def main():
    try:
        return run(parsed(sys.argv[1:]))
    except (Unusable, gpu_peers_cases.SpecError) as error:
        print(f"gpu_peers.py: {error}", file=sys.stderr)
        return UNUSABLE


if __name__ == "__main__":
    sys.exit(main())
