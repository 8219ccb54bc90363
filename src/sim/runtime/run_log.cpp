#include "sim/runtime/run_log.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <type_traits>

namespace assay::sim {
namespace {

enum Kind : std::uint32_t { kLaunch = 1, kUnsupported, kNotLoaded, kNote, kFinding };

static_assert(std::is_trivially_copyable_v<Counters>);

class Writer {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void value(const T& v) { bytes.append(reinterpret_cast<const char*>(&v), sizeof v); }
  void text(std::string_view s) {
    value(std::uint64_t{s.size()});
    bytes.append(s);
  }
  std::string bytes;
};

// Every read reports whether there was enough data.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  bool value(T& v) {
    if (rest_.size() < sizeof v) return false;
    std::memcpy(&v, rest_.data(), sizeof v);
    rest_.remove_prefix(sizeof v);
    return true;
  }
  bool view(std::string_view& s) {
    std::uint64_t size = 0;
    if (!value(size) || rest_.size() < size) return false;
    s = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  bool text(std::string& s) {
    std::string_view v;
    if (!view(v)) return false;
    s = v;
    return true;
  }

 private:
  std::string_view rest_;
};

bool read_finding(Reader& in, Finding& f) {
  return in.value(f.kind) && in.text(f.kernel) && in.value(f.thread) && in.text(f.where) &&
         in.text(f.text) && in.text(f.other) && in.value(f.count);
}

void write_finding(Writer& out, const Finding& f) {
  out.value(f.kind);
  out.text(f.kernel);
  out.value(f.thread);
  out.text(f.where);
  out.text(f.text);
  out.text(f.other);
  out.value(f.count);
}

bool read_line(Reader& in, LineCounts& line) {
  std::uint64_t places = 0;
  if (!in.value(places) || places == 0) return false;
  for (std::uint64_t i = 0; i < places; ++i) {
    SourceLine place;
    if (!in.text(place.file) || !in.value(place.line)) return false;
    line.places.push_back(std::move(place));
  }
  return in.value(line.instructions) && in.value(line.active_lanes) &&
         in.value(line.shared_replays);
}

void write_line(Writer& out, const LineCounts& line) {
  out.value(std::uint64_t{line.places.size()});
  for (const SourceLine& place : line.places) {
    out.text(place.file);
    out.value(place.line);
  }
  out.value(line.instructions);
  out.value(line.active_lanes);
  out.value(line.shared_replays);
}

void add_once(std::vector<std::string>& list, std::string_view text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.emplace_back(text);
}

class Summary {
 public:
  bool add(std::uint32_t kind, std::string_view payload) {
    switch (kind) {
      case kLaunch: return add_launch(Reader(payload));
      case kUnsupported: add_once(result.unsupported, payload); return true;
      case kNotLoaded: result.not_loaded = payload; return true;
      case kNote: add_once(result.notes, payload); return true;
      case kFinding: return add_single(Reader(payload));
      default: return false;
    }
  }
  RunSummary result;

 private:
  // Findings of one launch with the same kind, kernel and line are distinguished by their order.
  using Place = std::tuple<FindingKind, std::string, std::string, std::size_t>;

  bool add_launch(Reader in) {
    std::string name;
    Residency residency;
    Counters counters;
    std::uint64_t findings = 0;
    if (!in.text(name) || !in.value(residency.warps) || !in.value(residency.limit) ||
        !in.value(counters) || !in.value(findings)) {
      return false;
    }
    const auto [at, fresh] = kernels_.try_emplace(name, result.kernels.size());
    if (fresh) result.kernels.push_back({name, 0, residency, {}, {}, {}});
    KernelSummary& kernel = result.kernels[at->second];
    kernel.launches += 1;
    // A launch that the device refused had none.
    const std::uint32_t least = kernel.residency.warps;
    if (residency.warps > 0 && (least == 0 || residency.warps < least))
      kernel.residency = residency;
    kernel.counters += counters;
    std::map<Place, std::size_t> seen;
    for (std::uint64_t i = 0; i < findings; ++i) {
      Finding f;
      if (!read_finding(in, f)) return false;
      add_finding(std::move(f), seen);
    }
    std::uint64_t lines = 0;
    if (!in.value(lines)) return false;
    for (std::uint64_t i = 0; i < lines; ++i) {
      LineReplays line;
      if (!in.text(line.where) || !in.value(line.replays)) return false;
      kernel.replays.push_back(std::move(line));
    }
    kernel.replays = by_line(std::move(kernel.replays));
    return add_lines(in, kernel);
  }

  static bool add_lines(Reader& in, KernelSummary& kernel) {
    std::uint64_t lines = 0;
    if (!in.value(lines)) return false;
    for (std::uint64_t i = 0; i < lines; ++i) {
      LineCounts line;
      if (!read_line(in, line)) return false;
      kernel.lines.push_back(std::move(line));
    }
    kernel.lines = by_place(kernel.lines);
    return true;
  }

  bool add_single(Reader in) {
    Finding f;
    if (!read_finding(in, f)) return false;
    std::map<Place, std::size_t> seen;
    add_finding(std::move(f), seen);
    return true;
  }

  void add_finding(Finding f, std::map<Place, std::size_t>& seen) {
    const std::size_t order = seen[{f.kind, f.kernel, f.where, 0}]++;
    const auto [at, fresh] =
        places_.try_emplace({f.kind, f.kernel, f.where, order}, result.findings.size());
    if (fresh) {
      result.findings.push_back(std::move(f));
    } else {
      result.findings[at->second].count += f.count;
    }
  }

  std::map<std::string, std::size_t> kernels_;
  std::map<Place, std::size_t> places_;
};

}  // namespace

void RunLog::append(std::uint32_t kind, std::string_view payload) {
  if (fd_ < 0) return;
  Writer record;
  record.value(kind);
  record.text(payload);
  std::string_view rest = record.bytes;
  while (!rest.empty()) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n <= 0) return;  // the summary then ends here
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
}

void RunLog::launch(const LaunchRecord& r) {
  Writer out;
  out.text(r.kernel);
  out.value(r.residency.warps);
  out.value(r.residency.limit);
  out.value(r.counters);
  out.value(std::uint64_t{r.findings.size()});
  for (const Finding& f : r.findings) write_finding(out, f);
  out.value(std::uint64_t{r.replays.size()});
  for (const LineReplays& line : r.replays) {
    out.text(line.where);
    out.value(line.replays);
  }
  out.value(std::uint64_t{r.lines.size()});
  for (const LineCounts& line : r.lines) write_line(out, line);
  append(kLaunch, out.bytes);
}

void RunLog::finding(const Finding& f) {
  Writer out;
  write_finding(out, f);
  append(kFinding, out.bytes);
}

void RunLog::unsupported(std::string_view what) { append(kUnsupported, what); }
void RunLog::not_loaded(std::string_view why) { append(kNotLoaded, why); }
void RunLog::note(std::string_view text) { append(kNote, text); }

RunSummary summarise(std::string_view log) {
  Summary summary;
  Reader in(log);
  std::uint32_t kind = 0;
  std::string_view payload;
  while (in.value(kind) && in.view(payload)) {
    if (!summary.add(kind, payload)) break;
  }
  return std::move(summary.result);
}

}  // namespace assay::sim
