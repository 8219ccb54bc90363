#include "grade/results_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "spec/spec.h"
#include "util/files.h"

namespace assay {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

Json number(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  return x;
}

double number_from(const json& j) {
  if (j.is_number()) return j.get<double>();
  const auto& text = j.get_ref<const std::string&>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return text == "inf" ? HUGE_VAL : -HUGE_VAL;
}

Json nullable(const std::optional<double>& x) { return x ? number(*x) : Json(nullptr); }

std::optional<double> nullable_from(const json& j) {
  return j.is_null() ? std::nullopt : std::optional(number_from(j));
}

std::optional<double> optional_from(const json& j, const char* key) {
  return j.contains(key) ? std::optional(number_from(j.at(key))) : std::nullopt;
}

Json interval_json(Interval i) { return Json::array({number(i.low), number(i.high)}); }

Interval interval_from(const json& j) { return {number_from(j.at(0)), number_from(j.at(1))}; }

// The value that a code stands for; the schema lists the codes, and may not have been asked.
template <class Value>
Value decoded(std::optional<Value> (*decode)(const std::string&), const json& j, const char* what) {
  const auto value = decode(j.get<std::string>());
  if (!value) throw Error(fmt::format("unknown {} {}", what, j.dump()));
  return *value;
}

Verdict verdict_from(const json& j) { return decoded(&verdict_from_code, j, "verdict"); }

Device device_from_json(const json& j) {
  const auto device = device_from(j.get_ref<const std::string&>());
  if (!device) throw Error(fmt::format("unknown device {}", j.dump()));
  return *device;
}

// What has nothing to say is left out.
void add(Json& j, const char* key, const std::optional<double>& x) {
  if (x) j[key] = number(*x);
}

void add(Json& j, const char* key, const std::string& text) {
  if (!text.empty()) j[key] = text;
}

Json metrics_json(const std::vector<Metric>& metrics) {
  Json j = Json::array();
  for (const Metric& m : metrics) j.push_back({{"name", m.name}, {"value", number(m.value)}});
  return j;
}

// [naive, par, submission], null where it was not run.
Json samples_json(const std::vector<TimingSample>& samples) {
  Json j = Json::array();
  for (const TimingSample& s : samples) {
    j.push_back(Json::array({nullable(s.naive), nullable(s.par), nullable(s.submission)}));
  }
  return j;
}

Json case_json(const CaseResult& r) {
  Json j{{"name", r.name},
         {"group", to_string(r.group)},
         {"verdict", code(r.verdict)},
         {"seed", std::to_string(r.seed)}};
  add(j, "shape", r.shape);
  add(j, "error", r.error);
  add(j, "bound", r.bound);
  add(j, "accuracy", r.accuracy);
  add(j, "detail", r.detail);
  j["seconds"] = number(r.seconds);
  if (!r.metrics.empty()) j["metrics"] = metrics_json(r.metrics);
  if (!r.samples.empty()) j["samples"] = samples_json(r.samples);
  return j;
}

// Files of old say SKIP of what needs a GPU, and only the detail why.
Verdict case_verdict_from(const json& j) {
  const Verdict verdict = verdict_from(j.at("verdict"));
  const bool needs_gpu =
      verdict == Verdict::skipped && j.value("detail", "").starts_with("needs a GPU");
  return needs_gpu ? Verdict::needs_gpu : verdict;
}

CaseResult case_from(const json& j) {
  CaseResult r;
  r.name = j.at("name");
  r.group = case_group(j.at("group"));
  r.verdict = case_verdict_from(j);
  r.seed = seed_from_json(j.at("seed"));
  r.shape = j.value("shape", "");
  r.error = optional_from(j, "error");
  r.bound = optional_from(j, "bound");
  r.accuracy = optional_from(j, "accuracy");
  r.detail = j.value("detail", "");
  r.seconds = number_from(j.at("seconds"));
  for (const json& m : j.value("metrics", json::array())) {
    r.metrics.push_back({m.at("name"), number_from(m.at("value"))});
  }
  for (const json& s : j.value("samples", json::array())) {
    r.samples.push_back({.naive = nullable_from(s.at(0)),
                         .par = nullable_from(s.at(1)),
                         .submission = nullable_from(s.at(2))});
  }
  return r;
}

Json mutant_json(const Mutant& m) {
  Json j{{"subject", m.subject}, {"correct", m.correct}, {"verdict", code(m.verdict)}};
  add(j, "reason", m.reason);
  j["seconds"] = number(m.seconds);
  return j;
}

// Files of old have a case for each: OK where the tests judged it rightly, and why not in words.
Mutant mutant_from_case(const json& j) {
  const CaseResult c = case_from(j);
  Mutant m{c.name, c.name == "naive" || c.name == "par", TestVerdict::not_run, c.detail, c.seconds};
  const bool built = c.verdict == Verdict::ok || c.verdict == Verdict::wrong_answer;
  if (built) {
    const bool accepted = m.correct == (c.verdict == Verdict::ok);
    m.verdict = accepted ? TestVerdict::accepted : TestVerdict::rejected;
    const std::size_t open = m.reason.find('('), close = m.reason.rfind(')');
    m.reason = close == std::string::npos ? "" : m.reason.substr(open + 1, close - open - 1);
  } else if (c.verdict != Verdict::skipped && c.verdict != Verdict::harness_error) {
    m.verdict = TestVerdict::not_built;
  }
  return m;
}

Mutant mutant_from(const json& j) {
  if (!j.contains("subject")) return mutant_from_case(j);
  return {.subject = j.at("subject"),
          .correct = j.at("correct"),
          .verdict = decoded(&test_verdict_from_code, j.at("verdict"), "verdict of tests"),
          .reason = j.value("reason", ""),
          .seconds = number_from(j.at("seconds"))};
}

Json note_json(const Note& n) { return {{"kind", code(n.kind)}, {"text", n.text}}; }

// Files of old have the text alone; these are the beginnings of all that were ever written.
Note note_from_text(const std::string& text) {
  constexpr std::pair<const char*, Note::Kind> kBeginnings[] = {
      {"ships no test.", Note::Kind::no_tests},
      {"not run", Note::Kind::tests_not_run},
      {"quick", Note::Kind::quick},
      {"other virtual machines took", Note::Kind::stolen_time},
      {"below", Note::Kind::few_repetitions},
      {"par is no faster than naive", Note::Kind::par_not_faster},
      {"naive is at its floor", Note::Kind::naive_at_floor},
      {"wrong on a timed repetition", Note::Kind::wrong_when_timed}};
  for (const auto& [beginning, kind] : kBeginnings) {
    if (text.starts_with(beginning)) return {kind, text};
  }
  return {Note::Kind::other, text};
}

Note note_from(const json& j) {
  if (j.is_string()) return note_from_text(j);
  return {decoded(&note_kind_from_code, j.at("kind"), "kind of note"), j.at("text")};
}

template <class Item>
Json list_json(const std::vector<Item>& items, Json (*convert)(const Item&)) {
  Json j = Json::array();
  for (const Item& item : items) j.push_back(convert(item));
  return j;
}

template <class Item>
std::vector<Item> list_from(const json& j, Item (*convert)(const json&)) {
  std::vector<Item> items;
  for (const json& item : j) items.push_back(convert(item));
  return items;
}

Json build_json(const BuildRecord& b) {
  Json j{{"verdict", code(b.verdict)}, {"source_hash", b.source_hash}, {"command", b.command}};
  add(j, "log", b.log);
  j["seconds"] = number(b.seconds);
  j["cached"] = b.cached;
  return j;
}

BuildRecord build_from(const json& j) {
  return {.verdict = verdict_from(j.at("verdict")),
          .source_hash = j.at("source_hash"),
          .command = j.at("command"),
          .log = j.value("log", ""),
          .seconds = number_from(j.at("seconds")),
          .cached = j.at("cached")};
}

Json place_json(const CodePlace& p) {
  return {{"name", p.name}, {"file", p.file}, {"line", p.line}, {"value", p.value}};
}

CodePlace place_from(const json& j) {
  return {.name = j.at("name"), .file = j.at("file"), .line = j.at("line"), .value = j.at("value")};
}

Json warnings_json(const CompilerWarnings& w) {
  return {{"count", w.count}, {"first", w.first}, {"cut", w.cut}};
}

CompilerWarnings warnings_from_json(const json& j) {
  return {.count = j.at("count"), .first = j.at("first"), .cut = j.at("cut")};
}

Json code_json(const CodeFacts& c) {
  Json j{{"files", c.files},
         {"code_lines", c.code_lines},
         {"comment_lines", c.comment_lines},
         {"blank_lines", c.blank_lines},
         {"duplicated_lines", c.duplicated_lines},
         {"functions", c.functions}};
  if (c.longest) j["longest"] = place_json(*c.longest);
  if (c.deepest) j["deepest"] = place_json(*c.deepest);
  if (c.most_complex) j["most_complex"] = place_json(*c.most_complex);
  if (c.warnings) j["warnings"] = warnings_json(*c.warnings);
  return j;
}

CodeFacts code_from(const json& j) {
  CodeFacts c{.files = j.at("files"),
              .code_lines = j.at("code_lines"),
              .comment_lines = j.at("comment_lines"),
              .blank_lines = j.at("blank_lines"),
              .duplicated_lines = j.at("duplicated_lines"),
              .functions = j.at("functions")};
  if (j.contains("longest")) c.longest = place_from(j.at("longest"));
  if (j.contains("deepest")) c.deepest = place_from(j.at("deepest"));
  if (j.contains("most_complex")) c.most_complex = place_from(j.at("most_complex"));
  if (j.contains("warnings")) c.warnings = warnings_from_json(j.at("warnings"));
  return c;
}

Json dimension_json(const Dimension& d) {
  return {{"name", d.name},
          {"points", nullable(d.points)},
          {"max", number(d.max)},
          {"interval", interval_json(d.interval)},
          {"why", d.why}};
}

Dimension dimension_from(const json& j) {
  return {.name = j.at("name"),
          .points = nullable_from(j.at("points")),
          .max = number_from(j.at("max")),
          .interval = interval_from(j.at("interval")),
          .why = j.at("why")};
}

Json speed_json(const ShapeSpeed& s) {
  Json speed = {{"case", s.case_name},
                {"ratio_to_par", number(s.ratio_to_par)},
                {"ratio_interval", interval_json(s.ratio_interval)},
                {"ratio_to_naive", number(s.ratio_to_naive)},
                {"points", number(s.points)}};
  if (s.ratio_to_floor > 0) speed["ratio_to_floor"] = number(s.ratio_to_floor);
  return speed;
}

ShapeSpeed speed_from(const json& j) {
  return {.case_name = j.at("case"),
          .ratio_to_par = number_from(j.at("ratio_to_par")),
          .ratio_interval = interval_from(j.at("ratio_interval")),
          .ratio_to_naive = number_from(j.at("ratio_to_naive")),
          .points = number_from(j.at("points")),
          .ratio_to_floor = j.contains("ratio_to_floor") ? number_from(j.at("ratio_to_floor")) : 0};
}

}  // namespace

std::uint64_t seed_from_json(const json& j) {
  const auto& text = j.get_ref<const std::string&>();
  std::uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seed);
  if (error != std::errc() || stop != end) {
    throw Error(fmt::format("seed \"{}\" is not an unsigned 64-bit number", text));
  }
  return seed;
}

Json to_json(const CellResult& c) {
  Json j{{"model", c.key.model},
         {"challenge", c.key.challenge},
         {"attempt", c.key.attempt},
         {"device", to_string(c.key.device)},
         {"spec_hash", c.spec_hash},
         {"revision", c.revision},
         {"isolation", c.isolation},
         {"seed", std::to_string(c.seed)},
         {"finished_at", c.finished_at},
         {"build", build_json(c.build)},
         {"cases", list_json(c.cases, &case_json)},
         {"mutants", list_json(c.mutants, &mutant_json)}};
  if (c.target != kNativeTarget) j["target"] = c.target;
  if (c.tests_note) j["tests_note"] = note_json(*c.tests_note);
  if (!c.faults.empty()) j["faults"] = c.faults;
  if (c.code) j["code"] = code_json(*c.code);
  return j;
}

CellResult cell_from_json(const json& j) {
  CellResult c;
  c.key = {.model = j.at("model"),
           .challenge = j.at("challenge"),
           .attempt = j.at("attempt"),
           .device = device_from_json(j.at("device"))};
  c.spec_hash = j.at("spec_hash");
  c.revision = j.value("revision", 0);
  c.isolation = j.at("isolation");
  c.target = j.value("target", c.target);
  c.seed = seed_from_json(j.at("seed"));
  c.finished_at = j.at("finished_at");
  c.build = build_from(j.at("build"));
  c.cases = list_from(j.at("cases"), &case_from);
  c.mutants = list_from(j.at("mutants"), &mutant_from);
  if (j.contains("tests_note")) c.tests_note = note_from(j.at("tests_note"));
  c.faults = j.value("faults", c.faults);
  if (j.contains("code")) c.code = code_from(j.at("code"));
  return c;
}

Json to_json(const Score& s) {
  Json j{{"verdict", code(s.verdict)},
         {"total", nullable(s.total)},
         {"interval", interval_json(s.interval)},
         {"letter", s.letter},
         {"capped", s.capped},
         {"dimensions", list_json(s.dimensions, &dimension_json)},
         {"speeds", list_json(s.speeds, &speed_json)},
         {"flags", list_json(s.flags, &note_json)}};
  add(j, "modelled_on", s.modelled_on);
  add(j, "gpu_sheet", s.gpu_sheet);
  return j;
}

Score score_from_json(const json& j) {
  Score s;
  s.verdict = verdict_from(j.at("verdict"));
  s.total = nullable_from(j.at("total"));
  s.interval = interval_from(j.at("interval"));
  s.letter = j.at("letter");
  s.capped = j.at("capped");
  s.dimensions = list_from(j.at("dimensions"), &dimension_from);
  s.speeds = list_from(j.at("speeds"), &speed_from);
  s.flags = list_from(j.at("flags"), &note_from);
  s.modelled_on = j.value("modelled_on", "");
  s.gpu_sheet = j.value("gpu_sheet", "");
  return s;
}

namespace {

// The state in which it was found says nothing of the cells: their metrics have their own.
Json to_json(const GpuMachine& g) {
  Json j{{"name", g.name},
         {"driver", g.driver},
         {"compute_capability", g.compute_capability},
         {"multiprocessors", g.multiprocessors},
         {"memory_bytes", number(g.memory_bytes)},
         {"ecc", g.ecc},
         {"copy_bytes_per_s", number(g.copy_bytes_per_s)},
         {"bf16_flops_per_s", number(g.bf16_flops_per_s)},
         {"isolation", g.isolation}};
  if (g.driver_release) j["driver_release"] = *g.driver_release;
  if (g.max_sm_mhz) j["max_sm_mhz"] = number(*g.max_sm_mhz);
  if (g.mig) j["mig"] = *g.mig;
  return j;
}

GpuMachine gpu_from_json(const json& j) {
  GpuMachine g;
  g.name = j.at("name");
  g.driver = j.at("driver");
  g.compute_capability = j.at("compute_capability");
  g.multiprocessors = j.at("multiprocessors");
  g.memory_bytes = number_from(j.at("memory_bytes"));
  g.ecc = j.at("ecc");
  g.copy_bytes_per_s = number_from(j.at("copy_bytes_per_s"));
  g.bf16_flops_per_s = number_from(j.at("bf16_flops_per_s"));
  g.isolation = j.at("isolation");
  if (j.contains("driver_release")) g.driver_release = j.at("driver_release").get<std::string>();
  if (j.contains("max_sm_mhz")) g.max_sm_mhz = number_from(j.at("max_sm_mhz"));
  if (j.contains("mig")) g.mig = j.at("mig").get<bool>();
  return g;
}

}  // namespace

Json to_json(const Machine& m) {
  Json j{{"cpu", m.cpu},
         {"kernel", m.kernel},
         {"os", m.os},
         {"compiler", m.compiler},
         {"cores", m.cores},
         {"memory_bytes", m.memory_bytes},
         {"l3_bytes", m.l3_bytes},
         {"copy_bytes_per_s", number(m.copy_bytes_per_s)},
         {"fma_flops_per_s", number(m.fma_flops_per_s)}};
  if (m.gpu) j["gpu"] = to_json(*m.gpu);
  return j;
}

Machine machine_from_json(const json& j) {
  Machine m;
  m.cpu = j.at("cpu");
  m.kernel = j.at("kernel");
  m.os = j.at("os");
  m.compiler = j.at("compiler");
  m.cores = j.at("cores");
  m.memory_bytes = j.at("memory_bytes");
  m.l3_bytes = j.at("l3_bytes");
  m.copy_bytes_per_s = number_from(j.at("copy_bytes_per_s"));
  m.fma_flops_per_s = number_from(j.at("fma_flops_per_s"));
  if (const auto gpu = j.find("gpu"); gpu != j.end()) m.gpu = gpu_from_json(*gpu);
  return m;
}

}  // namespace assay
