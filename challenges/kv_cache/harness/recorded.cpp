// Turns recorded calls into cases: what was done with one cache becomes a script. The script ends
// where the caller does something that it cannot express: arguments from which no array can be
// read, a slot that only some implementations have, or another scale. The calls up to there make up
// a case. Sessions with a window or a quantised cache are not judged: with a window callers promise
// much, and the error allowed for a quantised cache depends on the stored values.
#include "shared/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "assay/size.h"
#include "script_builder.h"

namespace assay::kv_cache {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostOps = 2048, kMostTokens = 1 << 16, kMostElements = 1 << 22;
constexpr std::int64_t kMostPool = 1 << 16;  // entries and parents of all batches
constexpr double kMostProducts = 1 << 30;    // products of queries and keys
constexpr double kMostLooks = 1 << 24;       // reads of tokens, where forks share them

bool legal(const kvc_config& c) {
  const auto within = [](std::int64_t n, std::int64_t least, std::int64_t most) {
    return n >= least && n <= most;
  };
  return c.size == sizeof(kvc_config) && (c.dtype == ASSAY_F32 || c.dtype == ASSAY_BF16) &&
         within(c.n_layers, 1, 16) && within(c.n_kv, 1, 256) && within(c.n_q, 1, 1024) &&
         c.n_q % c.n_kv == 0 && within(c.D, 1, 1024) && within(c.Dv, 0, 1024) &&
         within(c.max_seqs, 0, 1 << 20) && c.max_tokens >= 0 && c.max_len >= 0 && c.window == -1 &&
         c.quant == 0 && within(c.sinks, 0, 1 << 20);
}

std::int64_t width(const kvc_config& c) { return c.Dv > 0 ? c.Dv : c.D; }

// An operation with the arrays that follow it.
struct Recorded {
  RecordedOp op;
  std::vector<std::int32_t> slots, parent;
  std::vector<std::int64_t> cu;

  std::int64_t rows() const { return cu.empty() ? 0 : cu.back(); }
};

bool is_batch(std::int64_t kind) { return kind == kAppend || is_attention(kind); }

template <class T>
bool take(std::span<const std::byte>& from, std::int64_t count, std::vector<T>& to) {
  if (count < 0 || static_cast<std::uint64_t>(count) > from.size() / sizeof(T)) return false;
  to.resize(to_size(count));
  if (count > 0) std::memcpy(to.data(), from.data(), to.size() * sizeof(T));
  from = from.subspan(to.size() * sizeof(T));
  return true;
}

std::optional<Recorded> parse(std::span<const std::byte> bytes) {
  Recorded found;
  std::vector<RecordedOp> head;
  if (!take(bytes, 1, head)) return std::nullopt;
  found.op = head[0];
  if (is_batch(found.op.kind)) {
    const std::int64_t n = found.op.n;
    if (n < 0 || n > kMostPool || !take(bytes, n, found.slots) || !take(bytes, n + 1, found.cu))
      return std::nullopt;
    if (found.cu[0] != 0 || !std::ranges::is_sorted(found.cu) || found.rows() > kMostTokens)
      return std::nullopt;
    const bool tree = found.op.kind == kAttendTree && (found.op.flags & kNullParent) == 0;
    if (tree && !take(bytes, found.rows(), found.parent)) return std::nullopt;
  }
  if (!bytes.empty()) return std::nullopt;
  return found;
}

// Writes the script.
class Writer {
 public:
  explicit Writer(const kvc_config& config) : c_(config) {}

  // False if the operation cannot be part of a script: it and everything after it are left out.
  bool add(const Recorded& r) {
    if (++ops_ > kMostOps || std::ssize(lines_) > kMostOps) return false;
    const RecordedOp& op = r.op;
    if (op.layer < 0 || op.layer > std::numeric_limits<std::int32_t>::max()) return false;
    new_slot_.clear();
    switch (op.kind) {
      case kCreate: return line("create");
      case kDestroy: return line("destroy");
      case kNew: return open(op, "new");
      case kFork:
        return with_slot(op.slot, [&](const std::string& slot) { return open(op, "fork", slot); });
      case kFree:
        return with_slot(
            op.slot, [&](const std::string& slot) { return line(fmt::format("free {}", slot)); });
      case kTruncate:
        return with_slot(op.slot, [&](const std::string& slot) {
          return line(fmt::format("trunc {} {}", slot, op.length));
        });
      case kLen:
        return with_slot(op.slot, [&](const std::string& slot) {
          return line(fmt::format("len@{} {}", op.layer, slot));
        });
      case kBytes: return look(opened_ * tokens_) && line("bytes");
      case kDefragment: return line("defragment");
      case kRead:
        return with_slot(op.slot, [&](const std::string& slot) { return read(op, slot); });
      case kAppend: return append(r);
      case kAttend:
      case kAttendTree:
      case kAttendShared: return attend(r);
      default: return false;
    }
  }
  // Takes the result of the latest operation.
  void result(const RecordedResult& got) {
    if (new_slot_.empty() || got.status != ASSAY_OK) return;
    names_[got.slot] = new_slot_;
  }

  json params() const {
    json config{{"dtype", c_.dtype == ASSAY_BF16 ? "bf16" : "f32"},
                {"layers", c_.n_layers},
                {"n_q", c_.n_q},
                {"n_kv", c_.n_kv},
                {"D", c_.D},
                {"Dv", width(c_)},
                {"max_seqs", c_.max_seqs},
                {"max_tokens", c_.max_tokens},
                {"max_len", c_.max_len},
                {"sinks", c_.sinks}};
    json found{{"config", std::move(config)}, {"script", lines_}};
    if (scale_) found["scale"] = *scale_;
    return found;
  }
  bool empty() const { return lines_.empty(); }

 private:
  bool line(std::string text) {
    lines_.push_back(std::move(text));
    return true;
  }

  // Calls body with the slot's word. A number that no cache uses is written literally; for other
  // unknown numbers it is unclear which implementations have them.
  template <class Body>
  bool with_slot(std::int32_t slot, Body body) const {
    const auto found = names_.find(slot);
    if (found != names_.end()) return body(found->second);
    if (slot != -1 && slot < c_.max_seqs) return false;
    return body(fmt::format("#{}", slot));
  }

  bool open(const RecordedOp& op, const char* verb, const std::string& from = "") {
    new_slot_ = fmt::format("s{}", opened_++);
    return line(fmt::format("{}{} {} {}", verb, (op.flags & kNullV) != 0 ? "!nullout" : "", from,
                            new_slot_));
  }

  bool read(const RecordedOp& op, const std::string& slot) {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    if (op.from < -kMost || op.from > kMost || op.until < -kMost || op.until > kMost) return false;
    const std::int64_t tokens = std::max<std::int64_t>(op.until - op.from, 0);
    if (tokens == 0 && (op.flags & (kNullK | kNullV)) != 0) return false;
    if (tokens > kMostTokens || !elements(tokens * c_.n_kv * (c_.D + width(c_)))) return false;
    return line(fmt::format("read@{}{}{} {} {} {}", op.layer, word(op, kNullK, "!nullk"),
                            word(op, kNullV, "!nullv"), slot, op.from, op.until));
  }

  bool append(const Recorded& r) {
    tokens_ += r.rows();
    if (tokens_ > kMostTokens || !elements(r.rows() * c_.n_kv * (c_.D + width(c_)))) return false;
    std::string text;
    return entries(r, text) &&
           line(fmt::format("append@{}{}{}{}", r.op.layer, word(r.op, kNullK, "!nullk"),
                            word(r.op, kNullV, "!nullv"), text));
  }

  bool attend(const Recorded& r) {
    const RecordedOp& op = r.op;
    if (!std::isfinite(op.scale) || (scale_ && *scale_ != op.scale)) return false;
    scale_ = op.scale;
    products_ += static_cast<double>(r.rows() * tokens_) * c_.n_q * (c_.D + width(c_));
    if (!look(op.n * tokens_)) return false;
    if (products_ > kMostProducts || !elements(r.rows() * c_.n_q * (c_.D + width(c_) + 1)))
      return false;
    const std::string flags = std::string(word(op, kNullK, "!nullq")) + word(op, kNullV, "!nullo") +
                              word(op, kNullLse, "!nolse");
    std::string text;
    if (op.kind == kAttendTree)
      return trees(r, text) && line(fmt::format("tree@{}{}{}", op.layer, flags, text));
    if (!entries(r, text)) return false;
    if (op.kind == kAttend) return line(fmt::format("attend@{}{}{}", op.layer, flags, text));
    return line(fmt::format("shared@{}{} {}{}", op.layer, flags, op.shared, text));
  }

  static const char* word(const RecordedOp& op, std::int64_t flag, const char* text) {
    return (op.flags & flag) != 0 ? text : "";
  }

  bool entries(const Recorded& r, std::string& text) {
    return each_entry(r, [&](const std::string& slot, std::size_t b) {
      text += fmt::format(" {}:{}", slot, r.cu[b + 1] - r.cu[b]);
      return true;
    });
  }

  bool trees(const Recorded& r, std::string& text) {
    return each_entry(r, [&](const std::string& slot, std::size_t b) {
      text += fmt::format(" {}=", slot);
      for (std::int64_t i = r.cu[b]; i < r.cu[b + 1]; ++i)
        text += fmt::format("{}{}", i == r.cu[b] ? "" : ".", r.parent[to_size(i)]);
      return true;
    });
  }

  template <class Body>
  bool each_entry(const Recorded& r, Body body) {
    pool_ += 2 * r.op.n + 1 + std::ssize(r.parent);
    if (pool_ > kMostPool) return false;
    for (std::size_t b = 0; b < r.slots.size(); ++b) {
      if (!with_slot(r.slots[b], [&](const std::string& slot) { return body(slot, b); }))
        return false;
    }
    return true;
  }

  bool elements(std::int64_t more) {
    elements_ += more;
    return elements_ <= kMostElements;
  }
  bool look(std::int64_t tokens) {
    looks_ += static_cast<double>(tokens);
    return looks_ <= kMostLooks;
  }

  const kvc_config c_;
  std::vector<std::string> lines_;
  std::map<std::int32_t, std::string> names_;  // of the slots, by the latest use of each number
  std::string new_slot_;                       // opened by the latest operation
  std::optional<float> scale_;
  std::int64_t ops_ = 0, opened_ = 0, tokens_ = 0, elements_ = 0, pool_ = 0;
  double products_ = 0, looks_ = 0;
};

// Whether the operation's rows come next and are complete.
bool rows_follow(const RecordedCall& call, std::size_t& at, const Recorded& r,
                 const kvc_config& c) {
  if (r.rows() == 0) return true;
  const std::int64_t element = c.dtype == ASSAY_BF16 ? 2 : 4;
  const auto next = [&](Handle handle, std::int64_t width) {
    if (at >= call.arrays.size()) return false;
    const RecordedCall::Array& array = call.arrays[at++];
    return array.handle == handle &&
           static_cast<std::int64_t>(array.bytes.size()) == r.rows() * width * element;
  };
  if (r.op.kind != kAppend) return next(kQ, std::int64_t{c.n_q} * c.D);
  return next(kK, std::int64_t{c.n_kv} * c.D) && next(kV, std::int64_t{c.n_kv} * width(c));
}

// Whether every invalid call has a single fault: with two, either status may come first.
bool faults_are_single(const Script& script) {
  const kvc_config& c = script.params.config[0];
  Model model(script.params);
  for (const Op& op : script.ops) {
    const bool crowded = model.live_sequences(0) >= c.max_seqs;
    std::int64_t held = 0;  // tokens of the fullest layer
    for (std::int32_t l = 0; l < c.n_layers; ++l) held = std::max(held, model.tokens(0, l));
    if (model.apply(op, script.pool.data()) != Expect::invalid) continue;
    const std::int64_t more = op.kind == kAppend ? script.pool[to_size(op.pool + 2 * op.n)] : held;
    const bool full = held + more > std::min(c.max_len, c.max_tokens);
    if (op.kind == kAppend && full) return false;
    if (op.kind == kNew && crowded) return false;
    if (op.kind == kFork && (crowded || held + more > c.max_tokens)) return false;
  }
  return true;
}

}  // namespace

std::optional<json> recorded_params(const RecordedCall& call) {
  const auto params = call.params_as<Params>();
  if (!params || call.entry != 0 || !legal(params->config[0])) return std::nullopt;
  const kvc_config& c = params->config[0];
  Writer writer(c);
  for (std::size_t i = 0; i < call.arrays.size();) {
    if (call.arrays[i].handle != kRecordedOp) return std::nullopt;
    const auto recorded = parse(call.arrays[i++].bytes);
    if (!recorded || (recorded->op.kind == kCreate) != writer.empty()) return std::nullopt;
    const bool nulls = (recorded->op.flags & (kNullK | kNullV | kNullParent)) != 0;
    if (nulls && recorded->rows() > 0) return std::nullopt;
    // A record that breaks off here ran out of room, or the tests crashed.
    if (!rows_follow(call, i, *recorded, c) || !writer.add(*recorded)) break;
    if (i < call.arrays.size() && call.arrays[i].handle == kRecordedResult) {
      RecordedResult got;
      if (call.arrays[i].bytes.size() != sizeof got) return std::nullopt;
      std::memcpy(&got, call.arrays[i++].bytes.data(), sizeof got);
      writer.result(got);
    }
    if (recorded->op.kind == kDestroy) break;
  }
  if (writer.empty()) return std::nullopt;
  return writer.params();
}

bool adopt_inputs(const CaseSpec& spec, BufferViews buffers) {
  const Script script = compile_script(spec, 0);
  if (!faults_are_single(script)) return false;
  std::ranges::copy(script.ops, buffers[kOps].as<Op>());
  std::ranges::copy(script.pool, buffers[kPool].as<std::int64_t>());
  const Params& p = script.params;
  const auto largest = [&](int handle) {
    return largest_magnitude(buffers[to_size(handle)], p.element_bytes == 2);
  };
  return attention_stays_finite(largest(kQ), largest(kK), largest(kV), static_cast<double>(p.scale),
                                p.config[0].D);
}

}  // namespace assay::kv_cache
