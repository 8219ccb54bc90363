// The modelled speed of a simulated submission on a logarithmic scale: the challenge's naive kernel
// earns nothing, its par kernel, if there is one, 85 %, and the floor, which no implementation can
// beat, full points.
#include <fmt/format.h>

#include "grade/dimensions.h"
#include "measure/statistics.h"
#include "records/share_of_floor.h"

namespace assay::grading {
namespace {

// Bytes allowed to the host beyond the naive kernel's, for lengths and flags that control the next
// launch. Copies to the device, such as page tables, give the host nothing to compute with.
constexpr double kHostAllowance = 256 << 10;

std::uint64_t known_to_host(const SimulatedWork& work) {
  return work.to_host_bytes + work.to_host_before;
}

// Tolerance, so that rounding does not put a kernel at its floor below it.
constexpr double kBelow = 1 - 1e-9;

// Empty if the host had too little data to compute the result. The model does not see host
// computation.
std::string host_work(const SimulatedWork& work, const SimulatedWork& naive) {
  const double known = static_cast<double>(known_to_host(work)),
               allowed = static_cast<double>(known_to_host(naive)) + kHostAllowance;
  if (known <= allowed && (work.counters.launches > 0 || naive.counters.launches == 0)) return "";
  return fmt::format("computes on the host: {:.3g} MB copied to it", known * 1e-6);
}

Timed model(const CaseResult& r, const Gpu& gpu, std::vector<Note>& flags) {
  const auto work = simulated_work(r.metrics), naive = simulated_work(r.metrics, kNaivePrefix),
             par = simulated_work(r.metrics, kParPrefix);
  const auto least = least_work(r.metrics);
  if (!work || !naive || !(par || least)) {
    return {.speed = {},
            .points = {},
            .missing = fmt::format("not run: {} has no counts of naive, of this or of the least "
                                   "work",
                                   r.name)};
  }
  if (auto why = host_work(*work, *naive); !why.empty())
    return {.speed = {}, .points = {}, .missing = "", .worthless = std::move(why)};
  const double seconds = modelled_time(*work, gpu).total(),
               slow = modelled_time(*naive, gpu).total();
  const double reference = par ? modelled_time(*par, gpu).total() : floor_time(*least, gpu);
  if (!(reference < slow)) {
    flags.push_back({Note::Kind::naive_at_floor, fmt::format("naive is at its floor: {}", r.name)});
  }
  if (least && seconds < kBelow * floor_time(*least, gpu)) {
    const std::string why = fmt::format(
        "{} is modelled in {:.3g} us, below its floor of {:.3g} us: what it does is not counted, "
        "or "
        "not needed by the task; earns nothing until that is explained",
        r.name, seconds * 1e6, floor_time(*least, gpu) * 1e6);
    flags.push_back({Note::Kind::other, why});
    return {.speed = {}, .points = {}, .missing = "", .worthless = "modelled below its floor"};
  }
  const double ratio = reference / seconds, floor = least ? floor_time(*least, gpu) : reference;
  const double share = share_of_speed(
      ratio, {.par_over_naive = slow / reference, .floor_over_par = reference / floor});
  return {.speed = {.case_name = r.name,
                    .ratio_to_par = ratio,
                    .ratio_interval = {ratio, ratio},
                    .ratio_to_naive = slow / seconds,
                    .points = share,
                    .ratio_to_floor = least ? floor / seconds : 0},
          .points = {share, share},
          .missing = ""};
}

}  // namespace

std::string work_on_host(const CaseResult& r) {
  const auto work = simulated_work(r.metrics), naive = simulated_work(r.metrics, kNaivePrefix);
  return work && naive ? host_work(*work, *naive) : "";
}

Dimension modelled_performance(const CaseTable& table, const Gpu& gpu,
                               std::vector<ShapeSpeed>& speeds, std::vector<Note>& flags) {
  const auto explain = [&] {
    std::vector<double> ratios;
    for (const ShapeSpeed& s : speeds) ratios.push_back(share_of_floor(s));
    return fmt::format("modelled on {}: {:.3g} times the speed of the floor over {} {}", gpu.name,
                       geometric_mean(ratios), speeds.size(),
                       speeds.size() == 1 ? "shape" : "shapes");
  };
  return performance_of(
      table, [&](const CaseResult& r) { return model(r, gpu, flags); }, explain, speeds, flags);
}

}  // namespace assay::grading
