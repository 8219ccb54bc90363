"""A document of what a real GPU measured: par beside the floor and PyTorch, and the simulator's model
beside the measurement.

Usage: gpu_table.py GPU.json [--peers PEERS.json] [--model SIM.json]

  GPU.json     of `assay gpu --json`
  PEERS.json   of `benchmarks/gpu_peers.py --json`, from the same GPU
  SIM.json     of `assay gpu --sizes sim --modelled --json`

It prints Markdown.
"""
import argparse
import itertools
import json
import math


def microseconds(seconds):
    return "-" if seconds is None else f"{1e6 * seconds:.1f}"


def median_of(figures):
    return figures["median_s"] if figures and figures.get("median_s") else None


def fastest(peers, challenge, case):
    """PyTorch's fastest way to compute a case, or None if it has none."""
    ways = [c for c in peers["cases"] if (c["challenge"], c["case"]) == (challenge, case)]
    return min(ways, key=lambda c: c["median_s"], default=None)


def timed_cases(found):
    for challenge in found["challenges"]:
        for case in challenge["timed"]:
            yield challenge["challenge"], case


def kendall(pairs):
    """Kendall's tau-b of pairs of numbers, or nan if one side is all ties."""
    agreeing = left = right = 0
    for (a, b), (c, d) in itertools.combinations(pairs, 2):
        x, y = (a > c) - (a < c), (b > d) - (b < d)
        agreeing += x * y
        left += x != 0
        right += y != 0
    return agreeing / math.sqrt(left * right) if left and right else math.nan


def models_of(found):
    """The names of the answers other than par, in the order of their first occurrence."""
    names = {}
    for _, case in timed_cases(found):
        names.update(dict.fromkeys(case.get("answers", {})))
    return [name for name in names if name != "par"]


def speed_table(found, peers):
    models = models_of(found)
    heads = ["challenge", "case", "naive", *models, "par", "floor", "floor / par"]
    if peers:
        heads += ["PyTorch", "PyTorch / par"]
    lines = ["| " + " | ".join(heads) + " |", "|---|---|" + "--:|" * (len(heads) - 2)]
    for challenge, case in timed_cases(found):
        par, floor = median_of(case["par"]), case.get("floor_s")
        cells = [challenge, case["case"], microseconds(median_of(case["naive"]))]
        cells += [microseconds(median_of(case["answers"].get(m))) for m in models]
        cells += [microseconds(par), microseconds(floor),
                  f"{floor / par:.2f}" if floor and par else "-"]
        if peers:
            peer = fastest(peers, challenge, case["case"])
            seconds = peer["median_s"] if peer else None
            cells += [microseconds(seconds), f"{seconds / par:.2f}" if seconds and par else "-"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def checks_table(found):
    lines = ["| challenge | implementation | cases | right | optional, left out | wrong |",
             "|---|---|--:|--:|--:|---|"]
    for challenge in found["challenges"]:
        for subject in challenge["subjects"]:
            verdicts = [c["verdict"] for c in subject["checked"]]
            wrong = [f"{c['case']} ({c['verdict']})" for c in subject["checked"]
                     if c["verdict"] not in ("OK", "NS")]
            lines.append(f"| {challenge['challenge']} | {subject['name']} | {len(verdicts)} | "
                         f"{verdicts.count('OK')} | {verdicts.count('NS')} | "
                         f"{', '.join(wrong) or '-'} |")
    return "\n".join(lines)


def calibration(found):
    """Modelled and measured times of naive and par, and how well they agree."""
    lines = ["| challenge | case | implementation | modelled | measured | measured / modelled |",
             "|---|---|---|--:|--:|--:|"]
    pairs, by_challenge = [], {}
    for challenge, case in timed_cases(found):
        for name in ("naive", "par"):
            measured = median_of(case[name])
            modelled = (case[name] or {}).get("modelled_s")
            if not measured or not modelled:
                continue
            pairs.append((modelled, measured))
            by_challenge.setdefault(challenge, []).append((modelled, measured))
            lines.append(f"| {challenge} | {case['case']} | {name} | {microseconds(modelled)} | "
                         f"{microseconds(measured)} | {measured / modelled:.2f} |")
    lines += ["", "| challenge | tau | measured / modelled, geometric mean | lowest | highest |",
              "|---|--:|--:|--:|--:|"]
    for challenge, some in [*by_challenge.items(), ("all", pairs)]:
        if not some:
            continue
        ratios = [measured / modelled for modelled, measured in some]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines.append(f"| {challenge} | {kendall(some):.2f} | {mean:.2f} | {min(ratios):.2f} | "
                     f"{max(ratios):.2f} |")
    return "\n".join(lines)


def document(found, peers, modelled):
    gpu = found["gpu"]
    parts = [f"# Kernels on {gpu['name']}",
             f"Driver for CUDA {gpu['driver']}, {gpu['multiprocessors']} multiprocessors, "
             f"{gpu['memory_bytes'] / 2**30:.0f} GiB, ECC {'on' if gpu['ecc'] else 'off'}; copies "
             f"within its memory read and write {gpu['copy_bytes_per_s'] * 1e-12:.2f} TB/s. Seed "
             f"{found['seed']}. Times are medians in microseconds, with a cold L2 cache.",
             "## Right?", checks_table(found), "## Fast?"]
    if peers:
        parts.append(f"PyTorch {peers['machine'].get('torch', '')}: the fastest of its ways that "
                     "`benchmarks/gpu_peers.py` tries, in float32 as the challenges ask, on dense "
                     "inputs.")
    parts.append(speed_table(found, peers))
    if modelled:
        parts += ["## The simulator's model",
                  "At the simulator's sizes, on the data sheet of "
                  f"{modelled['gpu']['data_sheet']}. Tau is Kendall's rank correlation.",
                  calibration(modelled)]
    return "\n\n".join(parts) + "\n"


def load(path):
    if path is None:
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpu", metavar="GPU.json")
    parser.add_argument("--peers", metavar="PEERS.json")
    parser.add_argument("--model", metavar="SIM.json")
    given = parser.parse_args()
    print(document(load(given.gpu), load(given.peers), load(given.model)), end="")


if __name__ == "__main__":
    main()
