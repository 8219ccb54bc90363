// How good the expert implementations (par) are, per challenge and timed case, from one run:
//
//   par / peer      speed of par relative to the fastest other library found at build time
//   par / roofline  the least time that the machine needs for the case's memory traffic and matrix
//                   products, by copy and matrix product measured in the same rounds, over par's
//                   time
//   naive / par     time of the plain implementation over par's
//
// Medians over rounds in which all contestants run in turn with cold caches; ratios are medians
// over rounds with their 95 % intervals. Peers: Debian's libtorch-dev, libdnnl-dev and
// libopenblas-dev. Build: ninja -C build par_and_peers. Usage: par_and_peers --help.
//
// --isa restricts par, naive and the libraries to the instructions of one level of x86-64, so that
// one machine shows how par performs on another.
#include <dlfcn.h>
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "assay/error.h"
#include "assay/parallel.h"
#include "assay/random.h"
#include "cli/context.h"
#include "measure/caches.h"
#include "measure/machine.h"
#include "measure/statistics.h"
#include "peers/peer.h"
#include "support/direct_runner.h"
#include "support/paths.h"
#include "timed_case.h"
#include "util/files.h"

namespace {

using namespace assay;
using nlohmann::json;

struct Options {
  std::vector<std::string> challenges;
  std::string case_name, json_file, isa = "native";
  int repetitions = 11, naive_repetitions = 3;
  bool no_peers = false, smoke = false;
};

// --- instructions -------------------------------------------------------------------------------

struct Isa {
  std::string name, target;  // the target is what follows -march=
  std::vector<std::pair<const char*, const char*>> environment;  // restricts the libraries to it
};

const std::vector<Isa>& isas() {
  static const std::vector<Isa> all = {
      {"native", "native", {}},
      {"v3",
       "x86-64-v3",
       {{"ATEN_CPU_CAPABILITY", "avx2"},
        {"ONEDNN_MAX_CPU_ISA", "AVX2"},
        {"DNNL_MAX_CPU_ISA", "AVX2"},
        {"OPENBLAS_CORETYPE", "Haswell"}}},
      {"v4",
       "x86-64-v4",
       {{"ATEN_CPU_CAPABILITY", "avx512"},
        {"ONEDNN_MAX_CPU_ISA", "AVX512_CORE"},
        {"DNNL_MAX_CPU_ISA", "AVX512_CORE"},
        {"OPENBLAS_CORETYPE", "SkylakeX"}}},
  };
  return all;
}

const Isa& isa_named(const std::string& name) {
  return *std::ranges::find(isas(), name, &Isa::name);
}

// Libraries read their environment when they are loaded, which has already happened: restarts the
// program with the new environment.
void hold_libraries(const Isa& isa, char** argv) {
  bool held = true;
  for (const auto& [name, value] : isa.environment) {
    const char* now = std::getenv(name);
    held = held && now != nullptr && std::strcmp(now, value) == 0;
    ::setenv(name, value, 1);
  }
  if (held) return;
  ::execv("/proc/self/exe", argv);
  throw Error(fmt::format("cannot start again: {}", std::strerror(errno)));
}

// --- the machine's limits ---------------------------------------------------------------------

// Bytes read plus written per second when all threads copy memory beyond the caches.
class CopyProbe {
 public:
  CopyProbe() : from_(kBytes, 1), to_(kBytes, 2) {}
  static constexpr std::size_t kBytes = 128u << 20;
  double seconds() {
    return seconds_of([&] {
      parallel_for(static_cast<std::int64_t>(kBytes), 1 << 20,
                   [&](std::int64_t begin, std::int64_t end) {
                     std::memcpy(to_.data() + begin, from_.data() + begin,
                                 static_cast<std::size_t>(end - begin));
                   });
    });
  }

 private:
  std::vector<char> from_, to_;
};

class MatrixProbe {
 public:
  explicit MatrixProbe(peers::MatrixProduct product)
      : product_(std::move(product)), a_(kSize), b_(kSize), c_(kSize) {
    fill_normal(a_, 1);
    fill_normal(b_, 2);
  }
  static constexpr int kN = 1024;
  static constexpr double kFlops = 2.0 * kN * kN * kN;
  const std::string& name() const { return product_.name; }
  double seconds(int threads) {
    return seconds_of([&] { product_.multiply(kN, a_.data(), b_.data(), c_.data(), threads); });
  }

 private:
  static constexpr std::size_t kSize = static_cast<std::size_t>(kN) * kN;
  peers::MatrixProduct product_;
  std::vector<float> a_, b_, c_;
};

// The fastest library's matrix product on this machine.
std::optional<MatrixProbe> best_matrix_product(int threads) {
  std::optional<MatrixProbe> best;
  double least = 0;
  for (const auto& product : peers::matrix_products()) {
    MatrixProbe probe(product);
    double seconds = probe.seconds(threads);
    for (int i = 0; i < 3; ++i) seconds = std::min(seconds, probe.seconds(threads));
    if (best && seconds >= least) continue;
    least = seconds;
    best.emplace(std::move(probe));
  }
  return best;
}

// --- one case -----------------------------------------------------------------------------------

struct Library {
  explicit Library(const std::string& path)
      : handle(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle == nullptr) throw Error(::dlerror());
  }
  ~Library() { ::dlclose(handle); }
  Library(const Library&) = delete;
  void* handle;
};

struct PeerRow {
  std::string name;
  double seconds = 0;
  Estimate ratio;
  bool accepted = false;  // by the challenge's check
};

struct Row {
  std::string challenge, case_name, shape;
  double par = 0, naive = 0;
  std::optional<LeastWork> work{};
  double copy_bytes_per_s = 0, product_flops_per_s = 0;
  std::optional<Estimate> roofline{};
  Estimate naive_ratio{};
  std::vector<PeerRow> peers{};

  // Of those whose answers are right.
  const PeerRow* best_peer() const {
    const PeerRow* best = nullptr;
    for (const PeerRow& peer : peers) {
      if (peer.accepted && (best == nullptr || peer.seconds < best->seconds)) best = &peer;
    }
    return best;
  }
};

struct RunningPeer {
  std::string name;
  std::unique_ptr<peers::Peer> peer;
  bool accepted;
};

// `library` is par, which computes the outputs that a peer does not.
std::vector<RunningPeer> start_peers(const std::string& challenge, const CaseSpec& spec,
                                     TimedCase& timed, void* library, int threads) {
  std::vector<RunningPeer> running;
  for (const auto& entry : peers::peer_entries()) {
    if (entry.challenge != challenge) continue;
    auto peer = entry.make({spec, timed.plan(), timed.buffers(), threads});
    if (peer == nullptr) continue;
    timed.run(library, threads);
    for (const int handle : peer->outputs()) {
      const BufferView& view = timed.buffers()[static_cast<std::size_t>(handle)];
      if (view.bytes > 0) std::memset(view.data, 0xff, view.bytes);  // NaN, -1
    }
    peer->run();
    peer->store();
    const CheckResult check = timed.check();
    if (!check.pass) fmt::print(stderr, "{}: {}: {}\n", spec.name, entry.name, check.detail);
    running.push_back({entry.name, std::move(peer), check.pass});
  }
  return running;
}

double cold_seconds(peers::Peer& peer) {
  flush_caches();
  return seconds_of([&] { peer.run(); });
}

std::vector<double> divide(double amount, const std::vector<double>& seconds) {
  std::vector<double> rates;
  for (const double s : seconds) rates.push_back(amount / s);
  return rates;
}

// The seconds that memory and matrix units need in each round.
std::vector<double> roofline(const LeastWork& work, const std::vector<double>& copy,
                             const std::vector<double>& product, double fma_flops_per_s) {
  std::vector<double> seconds;
  for (std::size_t i = 0; i < copy.size(); ++i) {
    const double memory = work.bytes * copy[i] / (2.0 * CopyProbe::kBytes);
    const double arithmetic = product.empty() ? work.flops / fma_flops_per_s
                                              : work.flops * product[i] / MatrixProbe::kFlops;
    seconds.push_back(std::max(memory, arithmetic));
  }
  return seconds;
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), machine_(describe_machine("g++")) {
    calibrate(machine_);
  }

  void challenge(const ChallengeSpec& spec) {
    const Library par(testing::compile(spec.directory + "/baselines/par.cpp", spec.name, target()));
    const Library naive(
        testing::compile(spec.directory + "/baselines/naive.cpp", spec.name, target()));
    const int threads = std::min(spec.limits.threads, machine_.cores);
    set_parallel_threads(threads);
    product_ = best_matrix_product(threads);
    for (const CaseSpec& c : spec.cases) {
      if (c.group != CaseGroup::timed) continue;
      if (!options_.case_name.empty() && c.name != options_.case_name) continue;
      rows_.push_back(measure(spec, c, par.handle, naive.handle, threads));
      print(rows_.back());
      if (options_.smoke) break;
    }
  }

  void print_header() const;
  json to_json() const;

 private:
  Row measure(const ChallengeSpec&, const CaseSpec&, void* par, void* naive, int threads);
  static void print(const Row&);
  const std::string& target() const { return isa_named(options_.isa).target; }

  Options options_;
  Machine machine_;
  CopyProbe copy_;
  std::optional<MatrixProbe> product_;
  std::vector<Row> rows_;
};

Row Bench::measure(const ChallengeSpec& challenge, const CaseSpec& spec, void* par, void* naive,
                   int threads) {
  TimedCase timed(challenge, spec, 1);
  timed.set_up(par, threads);
  timed.run(par, threads);
  const CheckResult check = timed.check();
  if (!check.pass) throw Error(fmt::format("par fails {}: {}", spec.name, check.detail));
  auto running = options_.no_peers ? std::vector<RunningPeer>{}
                                   : start_peers(challenge.name, spec, timed, par, threads);

  const int n = options_.repetitions;
  std::vector<Contestant> contestants = {
      {"par", n, [&] { return timed.run(par, threads); }},
      {"naive", options_.naive_repetitions, [&] { return timed.run(naive, threads); }},
      {"copy", n, [&] { return copy_.seconds(); }},
      {"product", product_ ? n : 0, [&] { return product_ ? product_->seconds(threads) : 0.0; }}};
  for (RunningPeer& p : running) {
    contestants.push_back({p.name, n, [&p] { return cold_seconds(*p.peer); }});
  }
  race(contestants);

  const auto& par_samples = contestants[0].samples;
  const auto& naive_samples = contestants[1].samples;
  const auto& copy = contestants[2].samples;
  const auto& product = contestants[3].samples;
  Row row{challenge.name, spec.name, timed.shape(), median(par_samples), median(naive_samples)};
  row.naive_ratio = estimate_ratio(naive_samples, {par_samples.data(), naive_samples.size()});
  row.copy_bytes_per_s = median(divide(2.0 * CopyProbe::kBytes, copy));
  if (!product.empty()) row.product_flops_per_s = median(divide(MatrixProbe::kFlops, product));
  row.work = timed.least_work();
  if (row.work) {
    row.roofline =
        estimate_ratio(roofline(*row.work, copy, product, machine_.fma_flops_per_s), par_samples);
  }
  for (std::size_t i = 0; i < running.size(); ++i) {
    const auto& samples = contestants[4 + i].samples;
    row.peers.push_back({running[i].name, median(samples), estimate_ratio(samples, par_samples),
                         running[i].accepted});
  }
  return row;
}

// --- output -------------------------------------------------------------------------------------

std::string text(const Estimate& e) {
  return fmt::format("{:.2f} ({:.2f}..{:.2f})", e.value, e.interval.low, e.interval.high);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char buffer[32];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%d %H:%M UTC", std::gmtime(&now));
  return buffer;
}

double load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

void Bench::print_header() const {
  fmt::print("{} cores of {}, {}, {}, -march={}; {}; load {:.1f} at the start\n\n", machine_.cores,
             machine_.cpu, machine_.os, machine_.compiler, target(), today(), load_average());
  fmt::print("copy {:.1f} GB/s (read + written), fp32 multiply-add {:.0f} GFLOP/s",
             machine_.copy_bytes_per_s / 1e9, machine_.fma_flops_per_s / 1e9);
  for (const std::string& version : peers::library_versions()) fmt::print("; {}", version);
  fmt::print(
      "\n\n| case | shape | par ms | best peer | peer ms | par / peer | par / roofline | "
      "naive / par |\n|---|---|---:|---|---:|---:|---:|---:|\n");
}

void Bench::print(const Row& row) {
  const PeerRow* peer = row.best_peer();
  fmt::print("| {} {} | {} | {:.2f} | {} | {} | {} | {} | {} |\n", row.challenge, row.case_name,
             row.shape, row.par * 1e3, peer != nullptr ? peer->name : "-",
             peer != nullptr ? fmt::format("{:.2f}", peer->seconds * 1e3) : "-",
             peer != nullptr ? text(peer->ratio) : "-", row.roofline ? text(*row.roofline) : "-",
             text(row.naive_ratio));
  std::fflush(stdout);
}

json to_json(const Estimate& e) {
  return {{"value", e.value}, {"low", e.interval.low}, {"high", e.interval.high}};
}

json to_json(const Row& row) {
  json out = {{"challenge", row.challenge},
              {"case", row.case_name},
              {"shape", row.shape},
              {"par_s", row.par},
              {"naive_s", row.naive},
              {"naive_over_par", to_json(row.naive_ratio)},
              {"copy_bytes_per_s", row.copy_bytes_per_s},
              {"peers", json::array()}};
  if (row.product_flops_per_s > 0) out["product_flops_per_s"] = row.product_flops_per_s;
  if (row.work) out["work"] = {{"bytes", row.work->bytes}, {"flops", row.work->flops}};
  if (row.roofline) out["par_over_roofline"] = to_json(*row.roofline);
  for (const PeerRow& p : row.peers) {
    out["peers"].push_back({{"name", p.name},
                            {"s", p.seconds},
                            {"par_over_peer", to_json(p.ratio)},
                            {"accepted", p.accepted}});
  }
  return out;
}

json Bench::to_json() const {
  json out = {{"date", today()},
              {"target", target()},
              {"machine",
               {{"cpu", machine_.cpu},
                {"cores", machine_.cores},
                {"os", machine_.os},
                {"compiler", machine_.compiler},
                {"copy_bytes_per_s", machine_.copy_bytes_per_s},
                {"fma_flops_per_s", machine_.fma_flops_per_s}}},
              {"libraries", peers::library_versions()},
              {"matrix_product", product_ ? product_->name() : ""},
              {"cases", json::array()}};
  for (const Row& row : rows_) out["cases"].push_back(::to_json(row));
  return out;
}

// Scratch and results of libraries are reused from call to call instead of being returned to the
// system, as in a program that calls the operation in a loop.
void keep_freed_memory() {
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, INT_MAX);
  ::mallopt(M_ARENA_MAX, 1);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Compares the expert implementations with other libraries and with the machine's limits"};
  app.add_option("challenges", options.challenges, "Only these (default: all)");
  app.add_option("--case", options.case_name, "Only the timed case of this name");
  app.add_option("--json", options.json_file, "Also write the table to this file");
  app.add_option("--repetitions", options.repetitions, "Rounds")->check(CLI::Range(3, 1000));
  app.add_option("--naive-repetitions", options.naive_repetitions)->check(CLI::Range(1, 1000));
  std::vector<std::string> names;
  for (const Isa& isa : isas()) names.push_back(isa.name);
  app.add_option("--isa", options.isa,
                 "Instructions that everybody may use: this machine's, or AVX2 (v3), AVX-512 (v4)")
      ->check(CLI::IsMember(names));
  app.add_flag("--no-peers", options.no_peers, "Only par, naive and the machine");
  app.add_flag("--smoke", options.smoke,
               "Only show that it works: of each challenge one case, three rounds");
  CLI11_PARSE(app, argc, argv);
  if (options.smoke) options.repetitions = 3;
  options.naive_repetitions = std::min(options.naive_repetitions, options.repetitions);
  keep_freed_memory();
  try {
    hold_libraries(isa_named(options.isa), argv);
    Bench bench(options);
    bench.print_header();
    for (const ChallengeSpec& spec :
         cli::load_specs(cli::find_context(assay::testing::source_dir()), options.challenges)) {
      bench.challenge(spec);
    }
    if (!options.json_file.empty())
      write_file_atomically(options.json_file, bench.to_json().dump(2) + "\n");
  } catch (const std::exception& e) {
    fmt::print(stderr, "par_and_peers: {}\n", e.what());
    return 2;
  }
}
