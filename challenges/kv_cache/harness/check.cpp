// Judges the adapter's results: statuses, slots, lengths and byte counts exactly; attention within
// the rounding that the conditioning of its scores allows; quantised caches by their overall error.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>

#include "assay/parallel.h"
#include "assay/poison.h"
#include "assay/size.h"
#include "assay/tolerance.h"
#include "shared/log_sum_exp.h"
#include "shared/score_rounding.h"
#include "trusted.h"

namespace assay::kv_cache {
namespace {

const char* name_of(std::int64_t kind) {
  constexpr const char* kNames[] = {"nothing",  "create",      "destroy",       "seq_new",
                                    "seq_free", "truncate",    "fork",          "append",
                                    "attend",   "len",         "bytes",         "read",
                                    "allow",    "attend_tree", "attend_shared", "defragment"};
  return kNames[kind];
}

const char* name_of(Expect e) {
  switch (e) {
    case Expect::success: return "ASSAY_OK";
    case Expect::full: return "ASSAY_ECAP";
    case Expect::no_memory: return "ASSAY_ENOMEM";
    case Expect::success_or_no_memory: return "ASSAY_OK or ASSAY_ENOMEM";
    case Expect::invalid: break;
  }
  return "ASSAY_EINVAL or ASSAY_ESTATE";
}

bool fits(Expect e, std::int64_t status) {
  if (e == Expect::success) return status == ASSAY_OK;
  if (e == Expect::full) return status == ASSAY_ECAP;
  if (e == Expect::no_memory) return status == ASSAY_ENOMEM;
  if (e == Expect::success_or_no_memory) return status == ASSAY_OK || status == ASSAY_ENOMEM;
  return status == ASSAY_EINVAL || status == ASSAY_ESTATE;
}

bool untouched(const void* data, std::int64_t bytes) { return is_unwritten(data, to_size(bytes)); }

class Checker {
 public:
  Checker(const CaseSpec& spec, const Params& p, const KvReference& r, BufferViews buffers)
      : spec_(spec), p_(p), r_(r), buffers_(buffers), results_(buffers[kResults].as<Result>()) {}

  CheckResult run() {
    for (at_ = 0; at_ < r_.ops.size() && result_.pass; ++at_) {
      const Op& op = r_.ops[at_];
      if (op.kind == kNothing) continue;
      check(op, r_.expected[at_], results_[at_]);
      note_compaction(op, results_[at_]);
    }
    o_.add_to(result_);
    lse_.add_to(result_);
    if (!quantised_) return result_;
    result_.error = worst_quantised_;
    result_.bound = 1;
    return result_;
  }

 private:
  void reject(const Op& op, const std::string& why) {
    fail(result_, fmt::format("operation {} ({}): {}", at_, name_of(op.kind), why));
  }

  void check(const Op& op, const Expected& e, const Result& got) {
    if (got.status == kTouchedAndFailed) {
      return reject(op,
                    "returned ASSAY_ENOMEM where an allocation was refused, but wrote to its "
                    "output");
    }
    if (got.status == kKeptAndFailed) {
      return reject(op, fmt::format("failed, but holds {} bytes from ctx->alloc, {} before",
                                    got.second, got.first));
    }
    if (got.status == kChangedAndFailed) {
      return reject(op, fmt::format("failed, but changed the cache: {} live bytes before, {} after",
                                    got.first, got.second));
    }
    // A malformed configuration may also be an unsupported one.
    const bool unsupported =
        op.kind == kCreate && e.status == Expect::invalid && got.status == ASSAY_ENOTSUP;
    if (!fits(e.status, got.status) && !unsupported) {
      return reject(op, fmt::format("returned {}, expected {}", got.status, name_of(e.status)));
    }
    if (e.status != Expect::success) return check_untouched(op);
    switch (op.kind) {
      case kDestroy: return check_destroy(op, got);
      case kNew: return take_slot(op, op.sequence, got.first);
      case kFork: return take_slot(op, op.forked, got.first);
      case kFree: used_[op.cache].erase(slot_[op.sequence]); return;
      case kLen:
        if (got.first != e.length) {
          reject(op, fmt::format("layer {}: got {}, expected {}", op.layer, got.first, e.length));
        }
        return;
      case kBytes: return check_bytes(op, e, got);
      case kRead: return check_read(op, e);
      case kAttend:
      case kAttendTree:
      case kAttendShared: return check_attend(op, *e.attended);
      default: return;
    }
  }

  const std::byte* element(int buffer, std::int64_t at) const {
    return buffers_[to_size(buffer)].as<std::byte>() + at * p_.element_bytes;
  }

  // A call that fails must leave its outputs untouched.
  void check_untouched(const Op& op) {
    const kvc_config& c = p_.config[op.cache];
    const auto clean = [&](int buffer, std::int64_t at, std::int64_t elements) {
      return untouched(element(buffer, at), elements * p_.element_bytes);
    };
    if (is_attention(op.kind)) {
      const std::int64_t rows = std::max<std::int64_t>(0, r_.pool[to_size(op.pool + 2 * op.n)]);
      const auto* lse = buffers_[kLse].as<float>() + std::max<std::int64_t>(0, op.lse_at);
      const bool lse_clean = op.lse_at < 0 || untouched(lse, rows * c.n_q * 4);
      if (!lse_clean || !clean(kO, op.o_at, rows * c.n_q * c.Dv)) return reject_touched(op);
    } else if (op.kind == kRead) {
      const std::int64_t rows = std::max<std::int64_t>(0, op.until - op.from) * c.n_kv;
      if (!clean(kReadK, op.k_at, rows * c.D) || !clean(kReadV, op.v_at, rows * c.Dv))
        return reject_touched(op);
    }
  }

  void reject_touched(const Op& op) { reject(op, "failed as it should, but wrote to its output"); }

  void check_destroy(const Op& op, const Result& got) {
    used_[op.cache].clear();
    if (got.held == 0) return;
    reject(op, fmt::format("{} bytes from ctx->alloc were never freed", got.held));
  }

  void take_slot(const Op& op, std::int64_t variable, std::int64_t slot) {
    if (slot < 0 || slot >= p_.config[op.cache].max_seqs) {
      return reject(op, fmt::format("gave slot {}, which is out of range", slot));
    }
    if (!used_[op.cache].insert(slot).second) {
      return reject(op, fmt::format("gave slot {}, which is in use", slot));
    }
    slot_[variable] = slot;
  }

  void check_bytes(const Op& op, const Expected& e, const Result& got) {
    const std::int64_t live = got.first, reserved = got.second;
    if (reserved != got.held) {
      return reject(op, fmt::format("reports {} bytes reserved, but holds {}", reserved, got.held));
    }
    if (live < 0 || live > reserved) {
      return reject(op, fmt::format("reports {} live bytes of {} reserved", live, reserved));
    }
    if (e.empty && live != 0) {
      return reject(op, fmt::format("reports {} live bytes without any token", live));
    }
    if (live < e.needed) {
      return reject(op,
                    fmt::format("reports {} live bytes, but the tokens need {}", live, e.needed));
    }
    if (compaction_[op.cache].done) check_compacted(op, got);
    if ((op.flags & kLimit) != 0) check_limits(op, got);
    if ((op.flags & kMetric) != 0) add_metrics(e, got);
  }

  // Links `bytes` before a defragmentation to `bytes` right after it.
  struct Compaction {
    std::int64_t live = -1;  // of the last `bytes`; -1: other calls came since
    bool done = false;
  };

  void note_compaction(const Op& op, const Result& got) {
    Compaction& c = compaction_[op.cache];
    if (op.kind == kBytes) {
      c = {got.first, false};
    } else if (op.kind == kDefragment) {
      c.done = got.status == ASSAY_OK;
    } else {
      c = {};
    }
  }

  void check_compacted(const Op& op, const Result& got) {
    const std::int64_t before = compaction_[op.cache].live;
    if (before >= 0 && got.first > before) {
      return reject(op, fmt::format("{} live bytes after a defragmentation, {} before it",
                                    got.first, before));
    }
    if (got.held - got.first > got.first / 4 + KVC_LEFTOVER) {
      reject(op, fmt::format("holds {} bytes after a defragmentation, with {} live", got.held,
                             got.first));
    }
  }

  void check_limits(const Op& op, const Result& got) {
    const std::int64_t live = spec_.params.at("live_limit"), held = spec_.params.at("held_limit");
    if (got.first > live) {
      return reject(op, fmt::format("{} live bytes, {} are enough", got.first, live));
    }
    if (got.held > held) reject(op, fmt::format("holds {} bytes, {} are enough", got.held, held));
  }

  void add_metrics(const Expected& e, const Result& got) {
    const auto held = static_cast<double>(got.held), needed = static_cast<double>(e.needed);
    result_.metrics.push_back({"held_bytes", held});
    if (e.needed > 0) result_.metrics.push_back({"held_over_needed", held / needed});
    if (e.needed > 0) {
      result_.metrics.push_back({"allocated_over_needed", static_cast<double>(got.total) / needed});
    }
  }

  // --- read ---

  void check_read(const Op& op, const Expected& e) {
    const kvc_config& c = p_.config[op.cache];
    std::int64_t k_at = op.k_at, v_at = op.v_at;
    for (const Run& run : e.read) {
      const bool later = run.phase == 1;
      compare_read(op, "k", element(later ? kLaterK : kK, run.k_at), element(kReadK, k_at),
                   run.n * c.n_kv * c.D);
      compare_read(op, "v", element(later ? kLaterV : kV, run.v_at), element(kReadV, v_at),
                   run.n * c.n_kv * c.Dv);
      k_at += run.n * c.n_kv * c.D;
      v_at += run.n * c.n_kv * c.Dv;
    }
  }

  void compare_read(const Op& op, const char* what, const std::byte* expected, const std::byte* got,
                    std::int64_t elements) {
    if (p_.config[op.cache].quant == 0) {
      if (std::memcmp(expected, got, to_size(elements * p_.element_bytes)) == 0) return;
      return reject(op, fmt::format("{} differs from what was appended", what));
    }
    double error = 0, norm = 0;
    for (std::int64_t i = 0; i < elements; ++i) {
      const double x = value(expected, i), d = value(got, i) - x;
      error += d * d;
      norm += x * x;
    }
    const double limit = spec_.params.at("read_limit");
    if (!(std::sqrt(error) <= limit * std::sqrt(norm))) {
      reject(op, fmt::format("{} is {:.4f} from what was appended, {} is allowed", what,
                             std::sqrt(error / norm), limit));
    }
  }

  double value(const std::byte* data, std::int64_t i) const {
    if (p_.element_bytes == 2) {
      return static_cast<double>(bf16_to_float(reinterpret_cast<const std::uint16_t*>(data)[i]));
    }
    return static_cast<double>(reinterpret_cast<const float*>(data)[i]);
  }

  // --- attention ---

  void check_attend(const Op& op, const Attended& a) {
    const kvc_config& c = p_.config[op.cache];
    if (c.quant != 0) return check_quantised(op, a);
    std::mutex mutex;
    parallel_for(a.rows, 16, [&](std::int64_t begin, std::int64_t end) {
      RowJudge o(fmt::format("operation {}: o", at_), {}),
          lse(fmt::format("operation {}: lse", at_), {});
      for (std::int64_t row = begin; row < end; ++row) {
        for (std::int64_t h = 0; h < c.n_q; ++h) check_head(op, a, row, h, o, lse);
      }
      const std::lock_guard lock(mutex);
      judge(o, o_);
      judge(lse, lse_);
    });
  }

  void judge(const RowJudge& part, RowJudge& all) {
    if (!part.pass() && result_.pass) {
      CheckResult why;
      part.add_to(why);
      fail(result_, why.detail);
    }
    all.merge(part);
  }

  void check_head(const Op& op, const Attended& a, std::int64_t row, std::int64_t head,
                  RowJudge& o_judge, RowJudge& lse_judge) const {
    const kvc_config& c = p_.config[op.cache];
    const auto Dv = to_size(c.Dv);
    const auto at = to_size(row * c.n_q + head);
    const double bound =
        attention_roundings(static_cast<double>(a.keys[to_size(row)]), c.D, a.conditioning[at]);
    const bool f32 = p_.element_bytes == 4;
    const std::byte* o = element(kO, op.o_at);
    std::vector<double> got(Dv);
    for (std::size_t d = 0; d < Dv; ++d) got[d] = value(o, static_cast<std::int64_t>(at * Dv + d));
    const auto part = [&](const std::vector<double>& all) {
      return std::span<const double>(all).subspan(at * Dv, Dv);
    };
    RowJudge judge(fmt::format("operation {}: o", at_),
                   {f32 ? 4.0 : 2.0, bound * kEps32 + (f32 ? 0 : 2 * kEpsBf16)});
    const auto index = static_cast<std::int64_t>(at);
    judge.row(index, got, part(a.o), part(a.plain_o), part(a.scale_o));
    o_judge.merge(judge);
    if (op.lse_at < 0) return;
    const double lse =
        static_cast<double>(buffers_[kLse].as<float>()[op.lse_at + static_cast<std::int64_t>(at)]);
    judge_log_sum_exp(fmt::format("operation {}: lse", at_), index, lse, a.lse[at], a.plain_lse[at],
                      bound * kEps32, lse_judge);
  }

  // Judges the error over all outputs of the call against the unquantised reference.
  void check_quantised(const Op& op, const Attended& a) {
    const double limit = spec_.params.at("o_limit"), lse_limit = spec_.params.at("lse_limit");
    const std::byte* o = element(kO, op.o_at);
    double error = 0, norm = 0, worst_lse = 0;
    for (std::size_t i = 0; i < a.o.size(); ++i) {
      const double d = value(o, static_cast<std::int64_t>(i)) - a.o[i];
      error += d * d;
      norm += a.o[i] * a.o[i];
    }
    for (std::size_t i = 0; op.lse_at >= 0 && i < a.lse.size(); ++i) {
      const double lse =
          static_cast<double>(buffers_[kLse].as<float>()[op.lse_at + static_cast<std::int64_t>(i)]);
      const double d = std::abs(lse - a.lse[i]);
      if (!(d <= worst_lse)) worst_lse = d;
    }
    const double relative = norm > 0 ? std::sqrt(error / norm) : error;
    quantised_ = true;
    worst_quantised_ = std::max({worst_quantised_, relative / limit, worst_lse / lse_limit});
    if (!(relative <= limit)) {
      return reject(
          op, fmt::format("o is {:.4f} from the exact attention, {} is allowed", relative, limit));
    }
    if (!(worst_lse <= lse_limit)) {
      reject(op,
             fmt::format("lse is {:.4f} from the exact one, {} is allowed", worst_lse, lse_limit));
    }
  }

  const CaseSpec& spec_;
  const Params& p_;
  const KvReference& r_;
  BufferViews buffers_;
  const Result* results_;
  CheckResult result_;
  std::size_t at_ = 0;
  Compaction compaction_[kCaches];
  std::set<std::int64_t> used_[kCaches];
  std::map<std::int64_t, std::int64_t> slot_;
  RowJudge o_{"o", {}}, lse_{"lse", {}};
  bool quantised_ = false;
  double worst_quantised_ = 0;
};

}  // namespace

CheckResult check_outputs(const CaseSpec& spec, const Params& p, const KvReference& r,
                          BufferViews buffers) {
  return Checker(spec, p, r, buffers).run();
}

}  // namespace assay::kv_cache
